//! Hello, welcome, heartbeats, batches, reconnection and rejection.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use tonic::Status;
use worker::{Attempt, Done, Inventory, Stream};

use crate::server::{Server, welcome};
use crate::world::{Running, builder, spec, until};

async fn nothing(_: Attempt) -> worker::Outcome {
    Ok(Done::new())
}

async fn forever(attempt: Attempt) -> worker::Outcome {
    attempt.stopped().await;
    Err(worker::Failure::transient("stopped"))
}

#[tokio::test]
async fn hello_describes_the_worker() {
    let mut server = Server::start();
    let builder = builder(&server)
        .pool("gpu")
        .slots(3)
        .type_("train", 2, nothing)
        .has("os", "linux")
        .has("os", "bsd")
        .amount("ram_mb", 512)
        .rank(-4)
        .hint("rack-7");
    let _running = Running::start(builder);
    let hello = server.session().await.hello;
    assert_eq!((hello.worker.as_str(), hello.pool.as_str()), ("w", "gpu"));
    assert_eq!((hello.protocol, hello.slots, hello.rank), (proto::PROTOCOL, 3, -4));
    let name = "train".to_owned();
    let kind = v1::WorkerType { name, execute_max: 2, ..v1::WorkerType::default() };
    assert_eq!(hello.types, [kind]);
    assert_eq!(hello.has["os"].values, ["linux", "bsd"]);
    assert_eq!(hello.amounts["ram_mb"], 512);
    assert_eq!(hello.hints, ["rack-7"]);
    assert_eq!(hello.instance.len(), 32);
    assert!(hello.attempts.is_empty() && !hello.has_inventory);
}

#[tokio::test]
async fn heartbeats_count_up_and_tell_of_slots_attempts_and_the_machine() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).slots(4).type_("a", 0, forever));
    let mut session = server.welcomed().await;
    session.offer(7, 2, v1::Spec { slots: 3, ..spec("a") }).await;
    let first = session.heartbeat().await;
    assert_eq!(session.heartbeat().await.sequence, first.sequence + 1);
    let is_whole = |heartbeat: &v1::Heartbeat| {
        let metrics = heartbeat.metrics.unwrap();
        heartbeat.slots_used == 3 && metrics.cpu_score.is_some() && metrics.ram_free_mb.is_some()
    };
    let last = session.heartbeat_with(is_whole).await;
    assert_eq!(last.slots_total, 4);
    assert_eq!(last.attempts, [v1::AttemptRef { job: 7, attempt: 2 }]);
}

#[tokio::test]
async fn heartbeats_name_an_attempt_until_its_end_is_acknowledged() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, nothing));
    let mut session = server.welcomed().await;
    session.offer(7, 2, spec("a")).await;
    let complete = session.complete().await;
    // A heartbeat goes before the completions of its batch. If it did not name the attempt, the
    // server would take it as lost.
    let last = session.heartbeat().await.sequence;
    let mut heartbeat = session.heartbeat().await;
    while heartbeat.sequence <= last + 2 {
        heartbeat = session.heartbeat().await;
    }
    assert_eq!(heartbeat.attempts, [v1::AttemptRef { job: 7, attempt: 2 }]);
    session.ack(&complete).await;
    while !session.heartbeat().await.attempts.is_empty() {}
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_does_not_stop_heartbeats() {
    let mut server = Server::start();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    // The runtime of this test has one thread, which the handler blocks. The server has its own.
    let address = server.address.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let handler = move |_: Attempt| {
                let blocked = Arc::clone(&blocked);
                async move {
                    let _ = blocked.lock().unwrap().recv();
                    Ok(Done::new())
                }
            };
            let worker = worker::Worker::builder(&address).name("w").type_("a", 0, handler);
            let worker = worker.build().unwrap();
            let _ = worker.run(tokio_util::sync::CancellationToken::new()).await;
        });
    });
    let mut session = server.welcomed().await;
    session.offer(1, 1, spec("a")).await;
    session.heartbeat_with(|heartbeat| heartbeat.slots_used == 1).await;
    for _ in 0..5 {
        session.heartbeat().await;
    }
    drop(unblock);
    let complete = session.complete().await;
    assert_eq!(complete.ending(), v1::Ending::Succeeded);
    session.ack(&complete).await;
    session.say(Theirs::Shutdown(v1::Shutdown { grace_ms: 0 })).await;
    while session.next_or_end().await.is_some() {}
    drop((session, server));
    thread.join().unwrap();
}

#[tokio::test]
async fn all_waiting_messages_share_a_batch() {
    let mut server = Server::start();
    let handler = |attempt: Attempt| async move {
        for line in 0..50 {
            attempt.log(Stream::Out, format!("{line}\n").as_bytes());
        }
        attempt.progress(1.0, "all of it");
        Ok(Done::new())
    };
    let _running = Running::start(builder(&server).slots(9).type_("a", 0, handler));
    let mut session = server.welcomed().await;
    let offers = (1..=9).map(|job| {
        let spec = Some(Box::new(spec("a")));
        Theirs::Offer(v1::Offer { job, attempt: 1, spec, failures: 0, resource: String::new() })
    });
    session.say_all(offers.collect()).await;
    for _ in 0..9 {
        let (complete, chunks) = session.run_to_end().await;
        assert_eq!(complete.ending(), v1::Ending::Succeeded);
        assert!(chunks.len() <= 9 * 50);
    }
    let mut sizes = Vec::new();
    while let Ok(size) = session.batches.try_recv() {
        sizes.push(size);
    }
    let n_messages: usize = sizes.iter().sum();
    // Output, progress and the end. The start is left out if the end includes it.
    assert!(n_messages >= 9 * 52, "{n_messages} messages");
    assert!(sizes.len() * 4 < n_messages, "{} batches for {n_messages} messages", sizes.len());
}

#[tokio::test]
async fn worker_keeps_its_attempts_after_a_reconnection() {
    let mut server = Server::start();
    let go_on = Arc::new(tokio::sync::Notify::new());
    let handler = {
        let go_on = Arc::clone(&go_on);
        move |_: Attempt| {
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.notified().await;
                Ok(Done::with_result("kept"))
            }
        }
    };
    let _running = Running::start(builder(&server).type_("a", 0, handler));
    let mut session = server.welcomed().await;
    session.offer(7, 1, spec("a")).await;
    assert!(matches!(session.next().await, Ours::Accept(_)));
    let instance = session.hello.instance.clone();
    drop(session);
    let mut session = server.welcomed().await;
    assert_eq!(session.hello.attempts, [v1::AttemptRef { job: 7, attempt: 1 }]);
    assert_eq!(session.hello.instance, instance);
    go_on.notify_one();
    let complete = session.complete().await;
    assert_eq!(
        (complete.ending(), complete.result.as_deref()),
        (v1::Ending::Succeeded, Some(&b"kept"[..]))
    );
}

#[tokio::test]
async fn worker_connects_to_a_server_that_starts_later() {
    let server = Server::start();
    let address = server.address.clone();
    let running = Running::start(builder(&server).type_("a", 0, nothing));
    server.stop();
    // The port is in use until the old listener is dropped.
    let mut server = loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if std::net::TcpListener::bind(&address).is_ok() {
            break Server::start_at(&address);
        }
    };
    server.welcomed().await;
    drop(running);
}

#[tokio::test]
async fn a_completion_is_sent_again_until_it_is_acknowledged() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, nothing));
    let mut session = server.welcomed().await;
    session.offer(7, 1, spec("a")).await;
    let first = session.complete().await;
    drop(session);
    let mut session = server.welcomed().await;
    assert_eq!(session.hello.attempts, [v1::AttemptRef { job: 7, attempt: 1 }]);
    let second = session.complete().await;
    assert_eq!(first, second);
    session.ack(&second).await;
    // After the next attempt, the acknowledgement has arrived too.
    session.offer(8, 1, spec("a")).await;
    let third = session.complete().await;
    assert_eq!(third.attempt, Some(v1::AttemptRef { job: 8, attempt: 1 }));
    drop(session);
    let session = server.welcomed().await;
    assert_eq!(session.hello.attempts, [v1::AttemptRef { job: 8, attempt: 1 }]);
}

#[tokio::test]
async fn stale_attempts_of_a_welcome_are_killed_without_report() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).slots(2).type_("a", 0, forever));
    let mut session = server.welcomed().await;
    session.offer(7, 1, spec("a")).await;
    session.offer(8, 1, spec("a")).await;
    session.heartbeat_with(|heartbeat| heartbeat.slots_used == 2).await;
    drop(session);
    let mut session = server.session().await;
    assert_eq!(session.hello.attempts.len(), 2);
    let stale = vec![v1::AttemptRef { job: 7, attempt: 1 }];
    session.say(Theirs::Welcome(v1::Welcome { stale, ..welcome() })).await;
    let heartbeat = session.heartbeat_with(|heartbeat| heartbeat.slots_used == 1).await;
    assert_eq!(heartbeat.attempts, [v1::AttemptRef { job: 8, attempt: 1 }]);
    let attempt = Some(v1::AttemptRef { job: 8, attempt: 1 });
    let reason = v1::StopReason::Cancelled.into();
    session.say(Theirs::Stop(v1::Stop { attempt, reason, grace_ms: 0 })).await;
    let complete = session.complete().await;
    assert_eq!((complete.attempt, complete.ending()), (attempt, v1::Ending::Cancelled));
}

#[tokio::test]
async fn protocol_mismatch_ends_the_worker_with_an_error() {
    let mut server = Server::start();
    let running = Running::start(builder(&server).type_("a", 0, nothing));
    let session = server.session().await;
    session.say(Theirs::Welcome(v1::Welcome { protocol: 99, ..welcome() })).await;
    assert_eq!(
        running.ended().await.unwrap_err().to_string(),
        "the server speaks version 99 of the worker's protocol, this worker versions 1 to 1; \
         update the older one of the two"
    );
}

#[tokio::test]
async fn rejected_worker_does_not_reconnect() {
    let mut server = Server::start();
    let running = Running::start(builder(&server).type_("a", 0, nothing));
    let session = server.session().await;
    session.refuse(Status::failed_precondition("protocol 1 is no longer spoken here")).await;
    assert_eq!(
        running.ended().await.unwrap_err().to_string(),
        "the server does not take this worker: protocol 1 is no longer spoken here"
    );
}

#[tokio::test]
async fn worker_reconnects_after_a_transient_error() {
    let mut server = Server::start();
    let _running = Running::start(builder(&server).type_("a", 0, nothing));
    let session = server.session().await;
    session.refuse(Status::unavailable("starting")).await;
    server.welcomed().await.heartbeat().await;
}

struct Shelf(Arc<Mutex<BTreeSet<String>>>);

impl Inventory for Shelf {
    fn digests(&self) -> io::Result<BTreeSet<String>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

#[tokio::test]
async fn inventory_is_sent_completely_and_then_by_changes() {
    let mut server = Server::start();
    let shelf: Arc<Mutex<BTreeSet<String>>> =
        Arc::new(Mutex::new((0..1_500).map(|n| format!("{n:06}")).collect()));
    let handler = {
        let shelf = Arc::clone(&shelf);
        move |attempt: Attempt| {
            shelf.lock().unwrap().insert("new".to_owned());
            attempt.fetched(1, 3_000_000, Duration::from_secs(1));
            async { Ok(Done::new()) }
        }
    };
    let builder = builder(&server).type_("a", 0, handler).inventory(Shelf(shelf));
    let _running = Running::start(builder);
    let mut session = server.welcomed().await;
    assert!(session.hello.has_inventory);
    let (Ours::Inventory(one), Ours::Inventory(two)) = (session.next().await, session.next().await)
    else {
        panic!("the inventory comes first");
    };
    assert_eq!((one.full, one.added.len(), one.more), (true, 1_000, true));
    assert_eq!((two.full, two.added.len(), two.more), (false, 500, false));
    session.offer(7, 1, spec("a")).await;
    let complete = session.complete().await;
    assert_eq!((complete.fetched_paths, complete.fetched_bytes), (Some(1), Some(3_000_000)));
    let Ours::Inventory(change) = session.next().await else { panic!("the change comes next") };
    assert_eq!(
        (change.full, change.more, &change.added[..]),
        (false, false, &["new".to_owned()][..])
    );
    session.heartbeat_with(|heartbeat| heartbeat.metrics.unwrap().net_mbps.is_some()).await;
}

#[tokio::test]
async fn a_worker_can_be_unwell_and_change_its_hints() {
    let mut server = Server::start();
    let worker = builder(&server).type_("a", 0, nothing).build().unwrap();
    let control = worker.control();
    let task = tokio::spawn(worker.run(tokio_util::sync::CancellationToken::new()));
    let mut session = server.welcomed().await;
    let first = session.heartbeat().await;
    assert!(!first.unhealthy && first.hints.is_none());
    control.unwell();
    control.hints(vec!["rack-8".to_owned()]);
    let is_changed = |heartbeat: &v1::Heartbeat| heartbeat.unhealthy && heartbeat.hints.is_some();
    let changed = session.heartbeat_with(is_changed).await;
    assert_eq!(changed.hints.unwrap().hints, ["rack-8"]);
    control.well();
    session.heartbeat_with(|heartbeat| !heartbeat.unhealthy).await;
    task.abort();
    until("the worker hangs up", || session.batches.is_closed()).await;
}
