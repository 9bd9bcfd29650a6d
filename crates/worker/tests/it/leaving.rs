//! The end of a worker: drained, shut down, or dropped.

use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use worker::{Attempt, Done, Failure, Outcome};

use crate::server::{Server, Session};
use crate::world::{
    Running, builder, command_builder, commands, is_alive, pids, script, spec, until,
};

/// Runs until it is stopped, unless its payload has a duration in milliseconds.
async fn work(attempt: Attempt) -> Outcome {
    let ms = std::str::from_utf8(attempt.payload()).ok().and_then(|text| text.parse().ok());
    let nap = Duration::from_millis(ms.unwrap_or(u64::MAX >> 20));
    tokio::select! {
        () = tokio::time::sleep(nap) => Ok(Done::new()),
        _ = attempt.stopped() => Err(Failure::transient("stopped")),
    }
}

fn taking(ms: u64) -> v1::Spec {
    v1::Spec { payload: ms.to_string().into_bytes(), ..spec("a") }
}

/// All messages up to the end, with acknowledged completions.
async fn rest(session: &mut Session) -> Vec<Ours> {
    let mut messages = Vec::new();
    while let Some(message) = session.next_or_end().await {
        if let Ours::Complete(complete) = &message {
            session.ack(complete).await;
        }
        if matches!(message, Ours::Goodbye(_)) {
            messages.push(message);
            // A server closes the connection after a goodbye.
            break;
        }
        messages.push(message);
    }
    messages
}

fn endings(messages: &[Ours]) -> Vec<(u64, v1::Ending, &str)> {
    let mut endings = Vec::new();
    for message in messages {
        if let Ours::Complete(complete) = message {
            let job = complete.attempt.map_or(0, |attempt| attempt.job);
            endings.push((job, complete.ending(), complete.error.as_str()));
        }
    }
    endings
}

#[tokio::test]
async fn shutdown_finishes_attempts_in_time_and_gives_back_the_rest() {
    let mut server = Server::start();
    let builder = builder(&server).slots(3).leave_grace(Duration::from_secs(3));
    let running = Running::start(builder.type_("a", 0, work));
    let mut session = server.welcomed().await;
    session.offer(1, 1, taking(500)).await;
    session.offer(2, 1, spec("a")).await;
    session.heartbeat_with(|heartbeat| heartbeat.slots_used == 2).await;
    running.shutdown.cancel();
    loop {
        if let Ours::Draining(draining) = session.next().await {
            assert!(draining.draining);
            break;
        }
    }
    session.offer(3, 1, taking(0)).await;
    let messages = rest(&mut session).await;
    let refused = messages.iter().find_map(|message| match message {
        Ours::Refuse(refuse) => Some(refuse.reason.as_str()),
        _ => None,
    });
    assert_eq!(refused, Some("draining"));
    let expected =
        [(1, v1::Ending::Succeeded, ""), (2, v1::Ending::Refused, "the worker shuts down")];
    assert_eq!(endings(&messages), expected);
    assert!(matches!(messages.last(), Some(Ours::Goodbye(_))));
    drop(session);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn idle_worker_exits_at_once() {
    let mut server = Server::start();
    let builder = builder(&server).leave_grace(Duration::from_secs(1_000));
    let running = Running::start(builder.type_("a", 0, work));
    let mut session = server.welcomed().await;
    session.heartbeat().await;
    running.shutdown.cancel();
    rest(&mut session).await;
    drop(session);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn worker_exits_while_the_server_is_unreachable() {
    let server = Server::start();
    let running = Running::start(builder(&server).type_("a", 0, work));
    server.stop();
    running.shutdown.cancel();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn drained_worker_exits_once_empty_if_requested() {
    let mut server = Server::start();
    let running = Running::start(builder(&server).type_("a", 0, work));
    let mut session = server.welcomed().await;
    session.offer(1, 1, taking(700)).await;
    session.say(Theirs::Drain(v1::Drain { then_exit: true })).await;
    let messages = rest(&mut session).await;
    assert_eq!(endings(&messages), [(1, v1::Ending::Succeeded, "")]);
    drop(session);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn drained_worker_accepts_offers_again() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, work));
    let mut session = server.welcomed().await;
    session.say(Theirs::Drain(v1::Drain { then_exit: false })).await;
    session.offer(1, 1, taking(0)).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Succeeded);
}

#[tokio::test]
async fn server_shuts_a_worker_down_at_once() {
    let mut server = Server::start();
    let builder = builder(&server).leave_grace(Duration::from_secs(1_000));
    let running = Running::start(builder.type_("a", 0, work));
    let mut session = server.welcomed().await;
    session.offer(1, 1, spec("a")).await;
    session.say(Theirs::Shutdown(v1::Shutdown { grace_ms: 60_000 })).await;
    let messages = rest(&mut session).await;
    assert_eq!(endings(&messages), [(1, v1::Ending::Refused, "the worker shuts down")]);
    drop(session);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn dropped_worker_kills_its_processes() {
    let mut server = Server::start();
    let running = Running::start(command_builder(&server, &commands()));
    let mut session = server.welcomed().await;
    session.offer(1, 1, script("sleep 1000 & echo $$ $!; wait")).await;
    let pids = pids(&session.output_with("\n").await);
    running.abandon();
    until("all are dead", || !pids.iter().any(|pid| is_alive(*pid))).await;
}
