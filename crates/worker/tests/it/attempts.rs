//! Offers, refusals, progress, output, failures and panics.

use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use tokio::time::Instant;
use worker::{Attempt, Done, Failure, Outcome, Stream, blocking};

use crate::server::{Server, Session, welcome};
use crate::world::{Running, builder, spec};

async fn forever(attempt: Attempt) -> Outcome {
    attempt.stopped().await;
    Err(Failure::transient("stopped"))
}

/// A connected worker with this handler for `a`.
async fn world(handler: impl worker::Handler) -> (Server, Running, Session) {
    let mut server = Server::start();
    let running = Running::start(builder(&server).slots(2).type_("a", 0, handler));
    let session = server.welcomed().await;
    (server, running, session)
}

async fn refusal(session: &mut Session) -> String {
    loop {
        if let Ours::Refuse(refuse) = session.next().await {
            return refuse.reason;
        }
    }
}

#[tokio::test]
async fn an_offer_beyond_the_slots_is_refused() {
    let (_server, _running, mut session) = world(forever).await;
    session.offer(1, 1, spec("a")).await;
    session.offer(2, 1, v1::Spec { slots: 2, ..spec("a") }).await;
    assert!(matches!(session.next().await, Ours::Accept(_)));
    assert_eq!(refusal(&mut session).await, "at capacity");
}

#[tokio::test]
async fn each_slot_may_have_an_unacknowledged_completion() {
    const SLOTS: u32 = 2_000;
    let mut server = Server::start();
    let done = |_: Attempt| async { Ok(Done::default()) };
    let _running = Running::start(builder(&server).slots(SLOTS).type_("a", 0, done));
    let mut session = server.welcomed().await;
    for job in 1..=u64::from(SLOTS) {
        session.offer(job, 1, spec("a")).await;
        ended(&mut session, job).await;
    }
}

/// Waits for the job's completion, without a refusal. The server does not acknowledge it.
async fn ended(session: &mut Session, job: u64) {
    loop {
        match session.next().await {
            Ours::Refuse(refuse) => panic!("{job} is refused: {}", refuse.reason),
            Ours::Complete(end) if end.attempt.is_some_and(|attempt| attempt.job == job) => return,
            _ => {}
        }
    }
}

#[tokio::test]
async fn offer_beyond_the_limit_of_its_type_is_refused() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).slots(9).type_("a", 1, forever));
    let mut session = server.welcomed().await;
    session.offer(1, 1, spec("a")).await;
    session.offer(2, 1, spec("a")).await;
    assert_eq!(refusal(&mut session).await, "at capacity");
}

#[tokio::test]
async fn an_offer_of_an_unknown_type_is_refused() {
    let (_server, _running, mut session) = world(forever).await;
    session.offer(1, 1, spec("b")).await;
    assert_eq!(refusal(&mut session).await, "unknown type `b`");
}

#[tokio::test]
async fn repeated_offer_runs_once() {
    let (_server, _running, mut session) = world(forever).await;
    session.offer(1, 1, spec("a")).await;
    session.offer(1, 1, spec("a")).await;
    assert!(matches!(session.next().await, Ours::Accept(_)));
    assert!(matches!(session.next().await, Ours::Accept(_)));
    session.heartbeat_with(|heartbeat| heartbeat.slots_used == 1).await;
}

#[tokio::test]
async fn slot_is_free_before_its_completion_is_sent() {
    let handler = |_: Attempt| async { Ok(Done::new()) };
    let mut server = Server::start();
    let _running = Running::start(builder(&server).slots(1).type_("a", 0, handler));
    let mut session = server.welcomed().await;
    for job in 1..=50 {
        session.offer(job, 1, spec("a")).await;
        // Its start may be in its completion.
        let complete = match session.next().await {
            Ours::Accept(_) => session.complete().await,
            Ours::Complete(complete) => complete,
            other => panic!("there is room: {other:?}"),
        };
        session.ack(&complete).await;
    }
}

#[tokio::test]
async fn handler_sees_the_job_specification() {
    let handler = |attempt: Attempt| async move {
        let seen = format!(
            "{} {} {} {:?} {:?} {:?}",
            attempt.job(),
            attempt.number(),
            attempt.failures(),
            attempt.resource(),
            attempt.spec().array_index,
            attempt.payload(),
        );
        Ok(Done { cost: Some(2.5), ..Done::with_result(seen) })
    };
    let (_server, _running, mut session) = world(handler).await;
    let spec = v1::Spec { payload: vec![1, 2], array_index: Some(3), ..spec("a") };
    let (spec, resource) = (Some(Box::new(spec)), "repo".to_owned());
    session.say(Theirs::Offer(v1::Offer { job: 7, attempt: 4, spec, failures: 2, resource })).await;
    let complete = session.complete().await;
    let result = String::from_utf8(complete.result.unwrap()).unwrap();
    assert_eq!(result, "7 4 2 Some(\"repo\") Some(3) [1, 2]");
    assert_eq!(complete.cost, Some(2.5));
}

#[tokio::test]
async fn panic_is_a_transient_failure_and_the_worker_continues() {
    let handler = |attempt: Attempt| async move {
        assert!(attempt.payload().is_empty(), "I did not expect a payload");
        Ok(Done::new())
    };
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, v1::Spec { payload: vec![1], ..spec("a") }).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Transient);
    assert_eq!(complete.error, "the handler panicked: I did not expect a payload");
    session.offer(2, 1, spec("a")).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Succeeded);
}

#[tokio::test]
async fn a_handler_may_block() {
    let handler = blocking(|attempt: Attempt| -> Outcome {
        assert!(attempt.payload() != b"panic", "as told");
        while attempt.payload() == b"wait" && !attempt.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Done::with_result("blocked"))
    });
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    assert_eq!(session.complete().await.result.unwrap(), b"blocked");
    session.offer(2, 1, v1::Spec { payload: b"panic".to_vec(), ..spec("a") }).await;
    assert_eq!(session.complete().await.error, "the handler panicked: as told");
    session.offer(3, 1, v1::Spec { payload: b"wait".to_vec(), ..spec("a") }).await;
    let attempt = Some(v1::AttemptRef { job: 3, attempt: 1 });
    let reason = v1::StopReason::Preempted.into();
    session.say(Theirs::Stop(v1::Stop { attempt, reason, grace_ms: 60_000 })).await;
    // It succeeded after all, and that counts.
    assert_eq!(session.complete().await.ending(), v1::Ending::Succeeded);
}

#[tokio::test]
async fn failures_have_kinds() {
    let handler = |attempt: Attempt| async move {
        Err(match attempt.payload() {
            b"t" => Failure::transient("later"),
            b"o" => Failure::timeout("too long"),
            _ => Failure::permanent("never"),
        })
    };
    let (_server, _running, mut session) = world(handler).await;
    let expected = [
        ("t", v1::Ending::Transient, "later"),
        ("o", v1::Ending::Timeout, "too long"),
        ("p", v1::Ending::Permanent, "never"),
    ];
    for (job, (payload, ending, error)) in (1..).zip(expected) {
        session.offer(job, 1, v1::Spec { payload: payload.into(), ..spec("a") }).await;
        let complete = session.complete().await;
        assert_eq!((complete.ending(), complete.error.as_str()), (ending, error));
    }
}

#[tokio::test]
async fn unreadable_spec_is_a_permanent_failure() {
    let (_server, _running, mut session) = world(forever).await;
    session.offer(1, 1, v1::Spec { priority: 9_999, ..spec("a") }).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Permanent);
    assert!(complete.error.contains("`priority` is 9999"), "{}", complete.error);
}

#[tokio::test]
async fn progress_comes_at_most_once_a_second_and_the_last_always() {
    let handler = |attempt: Attempt| async move {
        let start = Instant::now();
        let mut told = 0.0;
        while start.elapsed() < Duration::from_millis(1_500) {
            told += 0.0001;
            attempt.progress(told, "on it\n");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        attempt.progress(7.0, "done");
        Ok(Done::new())
    };
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    let mut told = Vec::new();
    loop {
        match session.next().await {
            Ours::Progress(report) => told.push(report.progress.unwrap()),
            Ours::Complete(_) => break,
            _ => {}
        }
    }
    // On a busy machine it may take longer than planned, but it reports at most once a second.
    assert!((3..=8).contains(&told.len()), "told {} times", told.len());
    assert_eq!(told[0].note, "on it ");
    let last = v1::Progress { fraction: 1.0, note: "done".to_owned(), ..v1::Progress::default() };
    assert_eq!(told.last(), Some(&last));
}

#[tokio::test]
async fn heartbeat_repeats_progress() {
    let handler = |attempt: Attempt| async move {
        attempt.progress(0.5, "half");
        forever(attempt).await
    };
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    let beat = session.heartbeat_with(|beat| !beat.progress.is_empty()).await;
    let progress =
        Some(v1::Progress { fraction: 0.5, note: "half".to_owned(), ..v1::Progress::default() });
    let attempt = Some(v1::AttemptRef { job: 1, attempt: 1 });
    assert_eq!(beat.progress, [v1::ProgressReport { attempt, progress }]);
    assert_eq!((beat.slots_used, beat.slots_total), (1, 2));
    // It detects nothing, and queues nothing.
    assert_eq!((beat.detections_used, beat.detections_total, beat.queued.len()), (0, 0, 0));
}

#[tokio::test]
async fn output_beyond_the_limit_is_cut_with_one_line() {
    let handler = |attempt: Attempt| async move {
        for _ in 0..100 {
            attempt.log(Stream::Out, &[b'o'; 1_000]);
            attempt.log(Stream::Err, &[b'e'; 1_000]);
        }
        Ok(Done::new())
    };
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.session().await;
    session.say(Theirs::Welcome(v1::Welcome { log_bytes_max: 10_000, ..welcome() })).await;
    session.offer(1, 1, spec("a")).await;
    let (_, chunks) = session.run_to_end().await;
    let mut offset = 0;
    for chunk in &chunks {
        assert_eq!(chunk.offset, offset);
        offset += u64::try_from(chunk.bytes.len()).unwrap();
    }
    assert_eq!(offset, 10_000);
    let text: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("output beyond 10000 bytes is not kept").count(), 1);
}

#[tokio::test]
async fn output_waits_for_a_server_that_is_away_and_comes_before_the_end() {
    let (handler, go_on) = {
        let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
        let waits = std::sync::Arc::clone(&go_on);
        let handler = move |attempt: Attempt| {
            let waits = std::sync::Arc::clone(&waits);
            async move {
                waits.notified().await;
                attempt.log(Stream::Out, b"written while disconnected");
                Ok(Done::new())
            }
        };
        (handler, go_on)
    };
    let (mut server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    assert!(matches!(session.next().await, Ours::Accept(_)));
    drop(session);
    // The worker is connected again, and not welcomed yet.
    let mut session = server.session().await;
    go_on.notify_one();
    session.say(Theirs::Welcome(welcome())).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!(chunks.len(), 1);
    assert_eq!(chunks[0].bytes, b"written while disconnected"[..]);
    assert_eq!(complete.ending(), v1::Ending::Succeeded);
}

#[tokio::test]
async fn a_result_that_is_too_long_is_a_failure_for_good() {
    let handler = |_: Attempt| async { Ok(Done::with_result(vec![0; 300 << 10])) };
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Permanent);
    assert_eq!(complete.error, "the result has 307200 bytes of at most 262144");
}

#[tokio::test]
async fn a_handler_that_does_not_stop_is_dropped() {
    let handler = |_: Attempt| std::future::pending::<Outcome>();
    let (_server, _running, mut session) = world(handler).await;
    session.offer(1, 1, spec("a")).await;
    let attempt = Some(v1::AttemptRef { job: 1, attempt: 1 });
    let reason = v1::StopReason::Cancelled.into();
    session.say(Theirs::Stop(v1::Stop { attempt, reason, grace_ms: 10 })).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Cancelled);
    assert_eq!(complete.error, "it was called off");
}

#[tokio::test]
async fn stop_of_an_unknown_attempt_is_answered() {
    let (_server, _running, mut session) = world(forever).await;
    let attempt = Some(v1::AttemptRef { job: 99, attempt: 1 });
    let reason = v1::StopReason::Cancelled.into();
    session.say(Theirs::Stop(v1::Stop { attempt, reason, grace_ms: 0 })).await;
    let complete = session.complete().await;
    assert_eq!((complete.attempt, complete.ending()), (attempt, v1::Ending::Lost));
}
