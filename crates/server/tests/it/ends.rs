//! Ends of attempts: told again, told together, told one by one.

use model::{Millis, State};
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::{attempt, succeeded};
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
    let output = wrote(&offer, 0, 0, b"done".to_vec());
    worker.say_all(vec![output, Ours::Complete(succeeded(&offer))]).await;
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
        let accept = Ours::Accept(v1::Accept { attempt: Some(attempt(&offer)) });
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
        ends.push(Ours::Accept(v1::Accept { attempt: Some(attempt(&offer)) }));
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
    assert!(detail.starts_with("attempt 1 on w did not succeed (exit code 3); it is"), "{detail}");
}

/// A piece of what an attempt wrote.
fn wrote(offer: &v1::Offer, number: u64, offset: u64, bytes: Vec<u8>) -> Ours {
    let (attempt, stream) = (Some(attempt(offer)), v1::Stream::Out.into());
    Ours::Log(v1::LogChunk { attempt, stream, offset, bytes: bytes.into(), number })
}

/// All that is kept of what a job wrote.
async fn kept(site: &Site, job: u64) -> Vec<u8> {
    let page =
        store::LogPage { job: model::JobId::number(job), attempt: None, after: None, max: 99 };
    let kept = store::Store::logs(&*site.store, page).await.expect("the store answers");
    kept.iter().flat_map(|chunk| chunk.bytes.to_vec()).collect()
}

#[tokio::test]
async fn an_end_waits_until_the_output_before_it_is_kept_also_if_that_fails_at_first() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let error = store::Error::Unavailable { doing: "log", cause: "a test".to_owned() };
    site.store.fail("log", 1, error);
    let output = wrote(&offer, 7, 0, b"last words".to_vec());
    worker.say_all(vec![output, Ours::Complete(succeeded(&offer))]).await;
    site.until("the store failed", async || {
        (site.counter("store_errors").await == 1).then_some(())
    })
    .await;
    site.store.hold("log");
    site.pass(Millis(250)).await;
    site.until("it is asked again", async || site.store.has_held("log").then_some(())).await;
    assert!(site.store.n_ends.lock().unwrap().is_empty(), "nobody ends what is not kept");
    assert!(worker.hears_nothing().await, "nor may it be forgotten");
    site.store.let_go("log");
    assert_eq!(worker.next().await.unwrap(), Theirs::LogAck(v1::LogAck { number: 7 }));
    assert!(!worker.ack().await.stale);
    assert_eq!(site.record(job).await.state, State::Succeeded);
    assert_eq!(kept(&site, job).await, b"last words");
}

#[tokio::test]
async fn a_worker_that_does_not_count_is_told_nothing_of_its_output() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let output = wrote(&offer, 0, 0, b"done".to_vec());
    worker.say_all(vec![output, Ours::Complete(succeeded(&offer))]).await;
    let next = worker.next().await.unwrap();
    assert!(matches!(next, Theirs::CompleteAck(ack) if !ack.stale));
    assert_eq!(kept(&site, job).await, b"done");
}

#[tokio::test]
async fn a_worker_need_not_say_again_what_nobody_needs() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let nobodys = v1::Offer { attempt: offer.attempt + 1, ..offer.clone() };
    worker.say(wrote(&nobodys, 1, 0, b"stale".to_vec())).await;
    assert_eq!(worker.next().await.unwrap(), Theirs::LogAck(v1::LogAck { number: 1 }));
    // In its turn: by then, what came before it is kept.
    site.store.hold("log");
    worker.say(wrote(&offer, 2, 0, b"kept".to_vec())).await;
    worker.say(wrote(&nobodys, 3, 5, b"stale".to_vec())).await;
    assert!(worker.hears_nothing().await);
    site.store.let_go("log");
    while worker.next().await.unwrap() != Theirs::LogAck(v1::LogAck { number: 3 }) {}
    assert_eq!(kept(&site, job).await, b"kept");
}

#[tokio::test]
async fn one_call_keeps_output_at_a_time_also_if_nobody_needs_what_is_in_it() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    let nobodys = v1::Offer { attempt: offer.attempt + 1, ..offer.clone() };
    site.store.hold("log");
    worker.say(wrote(&nobodys, 1, 0, b"stale".to_vec())).await;
    site.until("it is asked", async || site.store.has_held("log").then_some(())).await;
    let output = wrote(&offer, 2, 0, b"last words".to_vec());
    worker.say_all(vec![output, Ours::Complete(succeeded(&offer))]).await;
    assert!(worker.hears_nothing().await);
    assert!(kept(&site, job).await.is_empty(), "it waits for the call before it");
    assert!(site.store.n_ends.lock().unwrap().is_empty(), "and its end waits for it");
    site.store.let_go("log");
    while !matches!(worker.next().await.unwrap(), Theirs::CompleteAck(ack) if !ack.stale) {}
    assert_eq!(kept(&site, job).await, b"last words");
}

#[tokio::test]
async fn of_what_is_too_much_to_wait_nothing_later_is_taken_either() {
    const PIECE: usize = model::maxima::LOG_CHUNK_BYTES_MAX;
    let site = Site::start().await;
    let hello = v1::Hello { slots: 3, ..hello("w") };
    let mut worker = site.worker_with(hello.clone()).await;
    site.submit_all(vec![spec(); 3]).await;
    let (loud, terse) = (worker.offer().await, worker.offer().await);
    worker.accept(&loud).await;
    let silent = worker.offer().await;
    site.store.hold("log");
    let n_pieces = u64::try_from((16 << 20) / PIECE).unwrap();
    let last = || wrote(&terse, n_pieces + 1, 0, b"last words".to_vec());
    for number in 1..=n_pieces {
        worker.say(wrote(&loud, number, 0, vec![b'x'; PIECE])).await;
    }
    worker.say_all(vec![last(), Ours::Complete(succeeded(&terse))]).await;
    site.until("it goes unheard", async || {
        (site.counter("workers_unheard").await == 1).then_some(())
    })
    .await;
    worker.say_all(vec![last(), Ours::Complete(succeeded(&terse))]).await;
    assert!(worker.hears_nothing().await, "what it said is not taken, and it stays connected");
    worker.say(Ours::Complete(succeeded(&silent))).await;
    assert_eq!(worker.ack().await.attempt, Some(attempt(&silent)), "it had nothing to say");
    // Nobody takes it for one that never began, although only its end said that it did.
    let is_known = |record: &model::Record| record.state == State::Running;
    site.record_when(terse.job, is_known).await;
    site.store.let_go("log");
    let mut n_acknowledged = 0;
    let status = loop {
        match worker.next().await {
            Ok(Theirs::LogAck(ack)) => n_acknowledged = ack.number,
            Ok(other) => panic!("{other:?}"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status}");
    let n_taken = (16 << 20) / (PIECE + 128);
    assert_eq!(n_acknowledged, u64::try_from(n_taken).unwrap(), "it need not say those again");

    let attempts = vec![attempt(&loud), attempt(&terse)];
    let mut worker = site.worker_with(v1::Hello { attempts, ..hello }).await;
    worker.say(wrote(&loud, n_pieces, 0, vec![b'x'; PIECE])).await;
    assert_eq!(worker.next().await.unwrap(), Theirs::LogAck(v1::LogAck { number: n_pieces }));
    assert_eq!(kept(&site, loud.job).await, vec![b'x'; PIECE]);
    assert!(kept(&site, terse.job).await.is_empty(), "nobody said that it is kept");
    worker.say_all(vec![last(), Ours::Complete(succeeded(&terse))]).await;
    assert!(!worker.ack().await.stale);
    assert_eq!(kept(&site, terse.job).await, b"last words");
    assert_eq!(site.counter("logs_dropped").await, 0);
}
