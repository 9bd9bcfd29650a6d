//! Ends of attempts: told again, told together, told one by one.

use model::{Millis, State};
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::succeeded;
use crate::site::{Site, hello, spec};

#[tokio::test]
async fn an_end_that_is_told_twice_is_acknowledged_twice_and_counts_once() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.serve().await;
    // As after an acknowledgement that was lost.
    worker.say(Ours::Complete(succeeded(&offer))).await;
    let ack = worker.ack().await;
    assert!(!ack.stale, "it is the same end, and it counts");
    // Another end of the same attempt does not.
    let ending = v1::Ending::Permanent.into();
    worker.say(Ours::Complete(v1::Complete { ending, ..succeeded(&offer) })).await;
    assert!(worker.ack().await.stale);
    assert_eq!(site.record(job).await.state, State::Succeeded);
    assert_eq!(site.counter("succeeded").await, 1);
    assert_eq!(site.counter("stale_results").await, 1);
}

#[tokio::test]
async fn nothing_is_kept_of_what_succeeds_and_leaves_nothing_if_its_type_says_so() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Type, &spec().r#type, r#"{"forget": true}"#).await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let mut waiting = site.jobs.clone();
    let request = v1::WaitRequest { ids: vec![job], timeout_ms: 60_000 };
    site.store.hold("job");
    let (waited, ()) = tokio::join!(waiting.wait(request), async {
        site.until("it was seen", async || site.store.has_held("job").then_some(())).await;
        worker.say(Ours::Complete(succeeded(&offer))).await;
        assert!(!worker.ack().await.stale);
        site.store.let_go("job");
    });
    let waited = waited.expect("it answers").into_inner();
    assert!(waited.all_final && waited.jobs[0].state() == v1::State::Succeeded);
    let gone = site.jobs.clone().get(v1::GetRequest { id: job }).await;
    assert_eq!(gone.expect_err("nobody knows of it").code(), tonic::Code::NotFound);
    assert_eq!(site.counter("succeeded").await, 1);

    let followed = site.submit(spec()).await;
    let offer = worker.offer().await;
    site.store.hold("logs");
    let request = v1::LogsRequest { id: followed, attempt: 0, follow: true };
    let mut output = waiting.logs(request).await.expect("it answers").into_inner();
    let (last, ()) = tokio::join!(output.message(), async {
        site.until("it was seen", async || site.store.has_held("logs").then_some(())).await;
        worker.say(Ours::Complete(succeeded(&offer))).await;
        worker.ack().await;
        site.store.let_go("logs");
    });
    let last = last.expect("it goes on").expect("it says that it is over");
    assert!(last.done && last.pieces.is_empty(), "{last:?}");

    let printed = site.submit(spec()).await;
    let offer = worker.offer().await;
    let attempt = Some(crate::puppet::attempt(&offer));
    let (stream, bytes) = (v1::Stream::Out.into(), b"done"[..].into());
    let output = v1::LogChunk { attempt, stream, bytes, ..v1::LogChunk::default() };
    worker.say_all(vec![Ours::Log(output), Ours::Complete(succeeded(&offer))]).await;
    worker.ack().await;
    assert_eq!(site.record(printed).await.state, State::Succeeded);
}

#[tokio::test]
async fn a_job_that_starts_and_ends_at_once_is_seen_to_run_and_written_once() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let request = v1::WatchRequest::default();
    let watch = site.jobs.clone().watch(request).await.expect("it answers");
    let mut watch = watch.into_inner();
    // A start would fail: it is not asked for.
    let error = store::Error::Unavailable { doing: "start", cause: "a test".to_owned() };
    site.store.fail("start", 1, error);
    // Who tells the end need not tell the beginning.
    for is_begin_told in [true, false] {
        let job = site.submit(spec()).await;
        let offer = worker.offer().await;
        let accept = Ours::Accept(v1::Accept { attempt: Some(crate::puppet::attempt(&offer)) });
        let accept = is_begin_told.then_some(accept);
        worker
            .say_all(accept.into_iter().chain([Ours::Complete(succeeded(&offer))]).collect())
            .await;
        worker.ack().await;
        let mut states = Vec::new();
        while states.last() != Some(&v1::State::Succeeded) {
            let changes = watch.message().await.expect("it goes on").expect("it goes on").changes;
            states.extend(changes.iter().map(v1::JobChange::state));
        }
        let all = [v1::State::Queued, v1::State::Claimed, v1::State::Running, v1::State::Succeeded];
        assert_eq!(states, all);
        let past = site.past(job).await;
        assert!(past[0].started.is_some(), "{past:?}");
    }
    assert_eq!(site.counter("store_errors").await, 0);
}

#[tokio::test]
async fn ends_that_could_not_be_kept_together_are_told_one_by_one() {
    let site = Site::start().await;
    let mut worker = site.worker_with(v1::Hello { slots: 3, ..hello("w") }).await;
    let jobs = site.submit_all(vec![spec(); 3]).await;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let offer = worker.offer().await;
        ends.push(Ours::Accept(v1::Accept { attempt: Some(crate::puppet::attempt(&offer)) }));
        ends.push(Ours::Complete(succeeded(&offer)));
    }
    let error = store::Error::Unavailable { doing: "complete", cause: "a test".to_owned() };
    site.store.fail("complete", 1, error);
    worker.say_all(ends).await;
    site.until("the store failed", async || {
        (site.counter("store_errors").await == 1).then_some(())
    })
    .await;
    site.pass(Millis(250)).await;
    for _ in 0..3 {
        assert!(!worker.ack().await.stale);
    }
    for job in jobs {
        assert_eq!(site.record(job).await.state, State::Succeeded);
    }
    assert_eq!(*site.store.n_ends.lock().unwrap(), [3, 1, 1, 1]);
}

#[tokio::test]
async fn a_job_that_is_tried_again_says_after_what_and_when() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let retry = v1::Retry { attempts_max: 3, backoff_ms: 8_000, backoff_ms_max: 8_000 };
    let job = site.submit(v1::Spec { retry: Some(retry), ..spec() }).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    let (ending, error) = (v1::Ending::Transient.into(), "exit code 3".to_owned());
    worker.say(Ours::Complete(v1::Complete { ending, error, ..succeeded(&offer) })).await;
    worker.ack().await;
    let why = site.why(job).await;
    assert_eq!(why.reason, "not-before");
    let detail = &why.detail;
    assert!(detail.starts_with("attempt 1 did not succeed (exit code 3); it is"), "{detail}");
}

#[tokio::test]
async fn an_end_waits_until_the_output_before_it_is_kept_also_if_that_fails_at_first() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let attempt = Some(crate::puppet::attempt(&offer));
    let stream = v1::Stream::Out.into();
    let bytes = b"last words".as_slice().into();
    let output = v1::LogChunk { attempt, stream, offset: 0, bytes, number: 7 };
    let error = store::Error::Unavailable { doing: "log", cause: "a test".to_owned() };
    site.store.fail("log", 1, error);
    worker.say_all(vec![Ours::Log(output), Ours::Complete(succeeded(&offer))]).await;
    site.until("the store failed", async || {
        (site.counter("store_errors").await == 1).then_some(())
    })
    .await;
    site.store.hold("log");
    site.pass(Millis(250)).await;
    site.until("it is asked again", async || site.store.has_held("log").then_some(())).await;
    assert!(site.store.n_ends.lock().unwrap().is_empty(), "nobody ends what is not kept");
    assert!(worker.batches.iter().all(|batch| !acknowledges_output(batch)), "nor forgets it");
    site.store.let_go("log");
    assert_eq!(worker.next().await.unwrap(), Theirs::LogAck(v1::LogAck { number: 7 }));
    assert!(!worker.ack().await.stale);
    assert_eq!(site.record(job).await.state, State::Succeeded);
    let page =
        store::LogPage { job: model::JobId::number(job), attempt: None, after: None, max: 9 };
    let kept = store::Store::logs(&*site.store, page).await.unwrap();
    assert_eq!(kept.iter().map(|chunk| &chunk.bytes[..]).collect::<Vec<_>>(), [b"last words"]);
}

fn acknowledges_output(batch: &v1::ServerBatch) -> bool {
    batch.messages.iter().any(|one| matches!(one.message, Some(Theirs::LogAck(_))))
}
