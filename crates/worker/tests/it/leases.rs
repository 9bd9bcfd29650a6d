//! A worker stops its attempts when its lease is over, and reports nothing.

use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use tokio::time::Instant;
use worker::{Attempt, Done, StopReason};

use crate::server::{Server, welcome};
use crate::world::{
    Running, builder, command_builder, commands, is_alive, pids, script, spec, until,
};

fn short_lease() -> Theirs {
    Theirs::Welcome(v1::Welcome { lease_ms: 1_000, heartbeat_ms: 50, ..welcome() })
}

#[tokio::test]
async fn when_acknowledgements_stop_the_whole_process_group_is_killed() {
    let mut server = Server::start();
    let _running = Running::start(command_builder(&server, &commands()));
    let mut session = server.session().await;
    session.say(short_lease()).await;
    let text = "trap '' TERM; sh -c \"trap '' TERM; sleep 1000\" & echo $$ $! ; wait";
    session.offer(7, 1, script(text)).await;
    let pids = pids(&session.output_with("\n").await);
    assert_eq!(pids.len(), 2);
    session.stop_acknowledging();
    let start = Instant::now();
    until("both are dead", || !pids.iter().any(|pid| is_alive(*pid))).await;
    assert!(start.elapsed() > Duration::from_millis(300), "the lease was not over yet");
    // It reported nothing, and the next session does not have the attempt.
    while let Some(message) = session.next_or_end().await {
        assert!(!matches!(message, Ours::Complete(_)), "{message:?}");
    }
    let mut session = server.welcomed().await;
    assert_eq!(session.hello.attempts, []);
    session.offer(8, 1, script("echo well")).await;
    let complete = session.complete().await;
    assert_eq!(complete.attempt, Some(v1::AttemptRef { job: 8, attempt: 1 }));
}

#[tokio::test]
async fn acknowledged_heartbeats_prolong_the_lease() {
    let mut server = Server::start();
    let handler = |_: Attempt| async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        Ok(Done::new())
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.session().await;
    session.say(short_lease()).await;
    session.offer(7, 1, spec("a")).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Succeeded);
}

#[tokio::test]
async fn a_handler_is_told_that_its_lease_is_over_and_cannot_report() {
    let mut server = Server::start();
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |attempt: Attempt| {
        let said = said.clone();
        async move {
            let reason = attempt.stopped().await;
            let _ = said.send(reason);
            attempt.log(worker::Stream::Out, b"I am done!");
            Ok(Done::with_result("late"))
        }
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.session().await;
    session.say(short_lease()).await;
    session.offer(7, 1, spec("a")).await;
    assert!(matches!(session.next().await, Ours::Accept(_)));
    // The server is unreachable for longer than the lease.
    server.stop();
    drop(session);
    assert_eq!(heard.recv().await, Some(StopReason::LeaseOver));
}

#[tokio::test]
async fn completion_from_before_the_lease_end_is_sent() {
    let mut server = Server::start();
    let handler = |attempt: Attempt| async move {
        if attempt.payload().is_empty() {
            return Ok(Done::with_result("in time"));
        }
        attempt.stopped().await;
        Ok(Done::with_result("late"))
    };
    let _running = Running::start(builder(&server).slots(2).type_("a", 0, handler));
    let mut session = server.session().await;
    session.say(short_lease()).await;
    session.offer(7, 1, spec("a")).await;
    session.offer(8, 1, v1::Spec { payload: vec![1], ..spec("a") }).await;
    session.complete().await;
    session.stop_acknowledging();
    while session.next_or_end().await.is_some() {}
    let mut session = server.welcomed().await;
    assert_eq!(session.hello.attempts, [v1::AttemptRef { job: 7, attempt: 1 }]);
    assert_eq!(session.complete().await.result.unwrap(), b"in time");
}
