//! The stop of commands.

use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use serde_json::json;
use tokio::time::Instant;

use crate::server::Session;
use crate::world::{command_spec, command_world, is_alive, pids, script, until};

async fn stop(session: &Session, job: u64, reason: v1::StopReason, grace_ms: u64) {
    let attempt = Some(v1::AttemptRef { job, attempt: 1 });
    session.say(Theirs::Stop(v1::Stop { attempt, reason: reason.into(), grace_ms })).await;
}

#[tokio::test]
async fn command_that_handles_sigterm_ends_within_the_grace_period() {
    let (_server, _running, mut session) = command_world().await;
    let text = "trap 'echo cleaning; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    session.offer(1, 1, script(text)).await;
    session.output_with("ready").await;
    stop(&session, 1, v1::StopReason::Cancelled, 1_000_000).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!((complete.ending(), complete.exit_code), (v1::Ending::Cancelled, Some(0)));
    assert_eq!(complete.error, "it was called off");
    // The shell's own messages are on stderr.
    let out = chunks.into_iter().filter(|chunk| chunk.stream() == v1::Stream::Out);
    let said: Vec<u8> = out.flat_map(|chunk| chunk.bytes).collect();
    assert_eq!(said, b"cleaning\n");
}

#[tokio::test]
async fn a_command_that_ignores_the_signal_is_killed_with_its_child_after_the_grace() {
    let (_server, _running, mut session) = command_world().await;
    let text = "trap '' TERM; sh -c \"trap '' TERM; sleep 1000\" & echo $$ $! ; wait; sleep 1000";
    session.offer(1, 1, script(text)).await;
    let pids = pids(&session.output_with("\n").await);
    assert_eq!(pids.len(), 2);
    let start = Instant::now();
    stop(&session, 1, v1::StopReason::Preempted, 300).await;
    let complete = session.complete().await;
    assert!(start.elapsed() >= Duration::from_millis(250), "the grace was not over");
    assert_eq!((complete.ending(), complete.exit_code), (v1::Ending::Preempted, Some(137)));
    until("both are dead", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_suspended_command_can_be_stopped_too() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, script("echo ready; kill -STOP $$; sleep 1000")).await;
    session.output_with("ready").await;
    stop(&session, 1, v1::StopReason::Cancelled, 1_000_000).await;
    assert_eq!(session.complete().await.ending(), v1::Ending::Cancelled);
}

#[tokio::test]
async fn remaining_processes_are_killed_in_any_group() {
    let (_server, _running, mut session) = command_world().await;
    // With job control, each job in the background gets its own group.
    let text = "sleep 1000 & echo $!; set -m; sleep 1000 & echo $!";
    session.offer(1, 1, command_spec("exec", &json!({"argv": ["bash", "-c", text]}))).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!(complete.ending(), v1::Ending::Succeeded);
    let said: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
    let pids = pids(&String::from_utf8(said).unwrap());
    assert_eq!(pids.len(), 2);
    until("both are dead", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_command_may_not_run_for_longer_than_its_job_says() {
    let (_server, _running, mut session) = command_world().await;
    let spec = v1::Spec { run_timeout_ms: Some(200), ..script("echo busy >&2; sleep 1000") };
    session.offer(1, 1, spec).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Timeout);
    assert!(complete.error.starts_with("it ran for longer than 200 ms\n"), "{}", complete.error);
    assert!(complete.error.ends_with("busy"), "{}", complete.error);
}

#[tokio::test]
async fn a_command_may_not_run_for_longer_than_the_worker_says() {
    let (_server, _running, mut session) = command_world().await;
    session.offer(1, 1, command_spec("nap", &json!({"args": ["1000"]}))).await;
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Timeout);
    assert!(complete.error.starts_with("it ran for longer than 100 ms"), "{}", complete.error);
}

#[tokio::test]
async fn a_command_may_not_be_silent_for_longer_than_its_job_says() {
    let (_server, _running, mut session) = command_world().await;
    let text = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.25; done; sleep 1000";
    let spec = v1::Spec { silence_timeout_ms: Some(1_000), ..script(text) };
    session.offer(1, 1, spec).await;
    let (complete, chunks) = session.run_to_end().await;
    assert_eq!(complete.ending(), v1::Ending::Timeout);
    let error = "it said nothing for longer than 1000 ms";
    assert!(complete.error.starts_with(error), "{}", complete.error);
    let said: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
    assert_eq!(said, b"1\n2\n3\n4\n5\n6\n");
}
