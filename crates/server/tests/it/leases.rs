//! Leases: who is silent loses, and nobody does for a disk that is full.

use std::collections::BTreeSet;

use model::{Millis, State};
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use tokio::time::timeout;

use crate::puppet::{MOMENT, Puppet, attempt, having, succeeded};
use crate::site::{Site, hello, spec};

const FULL: store::Error = store::Error::Full { doing: "write" };
const ACK: Theirs = Theirs::HeartbeatAck(v1::HeartbeatAck { sequence: 7 });

#[tokio::test]
async fn the_stream_of_a_worker_that_was_given_up_ends() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    site.pass(Millis(site.config.lease.0 + 1)).await;
    let ended = loop {
        match worker.next().await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(ended.message(), "the stream ended");
    // It is free to come back.
    site.worker("w").await;
}

#[tokio::test]
async fn signs_of_life_of_one_turn_renew_all_leases_by_one_call() {
    const N_WORKERS: usize = 50;
    let site = Site::start().await;
    let mut workers = Vec::new();
    for n in 0..N_WORKERS {
        workers.push(site.worker(&format!("w{n}")).await);
    }
    // While the store is left alone after a failure, all of them say that they live.
    let error = store::Error::Unavailable { doing: "renew", cause: "a test".to_owned() };
    site.store.fail("renew", 1, error);
    workers[0].say(Ours::Heartbeat(v1::Heartbeat::default())).await;
    site.until("it failed", async || (site.counter("store_errors").await == 1).then_some(())).await;
    let metrics = Some(v1::Metrics { ram_free_mb: Some(77), ..v1::Metrics::default() });
    for worker in &workers {
        let beat = v1::Heartbeat { sequence: 7, metrics, ..v1::Heartbeat::default() };
        worker.say(Ours::Heartbeat(beat)).await;
    }
    site.until("all are heard", async || {
        let workers = site.admin.clone().workers(v1::WorkersRequest {}).await.expect("it answers");
        let are_heard = |worker: &v1::WorkerStatus| worker.ram_free_mb == Some(77);
        workers.into_inner().workers.iter().all(are_heard).then_some(())
    })
    .await;
    site.pass(Millis(250)).await;
    for worker in &mut workers {
        while worker.next().await.expect("the stream goes on") != ACK {}
    }
    assert_eq!(*site.store.n_renewals.lock().unwrap(), [1, N_WORKERS]);
}

#[tokio::test]
async fn a_worker_that_does_not_read_is_cut_off_and_comes_back_to_what_it_missed() {
    let site = Site::start().await;
    let hello = v1::Hello { slots: 10_000, ..hello("w") };
    let mut worker = Puppet::connect_by(site.connect().await, hello.clone()).await.unwrap();
    // Each is a batch of its own, until neither the connection nor its queue takes any more.
    let large = v1::Spec { payload: vec![7; 16 << 10], ..spec() };
    let mut n_jobs = 0;
    while site.counter("workers_cut_off").await == 0 {
        for _ in 0..100 {
            site.submit(large.clone()).await;
        }
        n_jobs += 100;
        assert!(n_jobs < 5_000, "it is never cut off");
    }
    let mut n_heard = 0;
    let ended = loop {
        match worker.next().await {
            Ok(_) => n_heard += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(ended.message(), "the stream ended");
    assert!(n_heard < n_jobs, "{n_heard} of {n_jobs}");
    // It is the same process, and has none of them: all are offered again.
    let mut worker = site.worker_with(hello).await;
    site.pass(Millis(100)).await;
    let mut offered = BTreeSet::new();
    while offered.len() < n_jobs {
        offered.insert(worker.offer().await.job);
    }
}

#[tokio::test]
async fn a_disk_that_is_full_costs_no_worker_its_attempts() {
    let site = Site::start().await;
    let lease = site.config.lease;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.record_when(job, |record| record.state == State::Running).await;
    for method in ["renew", "renew_all", "complete", "join"] {
        site.store.fail(method, usize::MAX, FULL);
    }
    // For three leases nothing can be renewed; the worker hears that it may go on.
    for _ in 0..15 {
        site.pass(Millis(lease.0 / 5)).await;
        // After each failure the store is left alone for a moment.
        site.pass(Millis(250)).await;
        worker.beat(having(&[&offer])).await;
    }
    site.store.heal();
    // There is room again. Until everybody had the time to renew, no lease is judged.
    site.pass(Millis(lease.0 / 5)).await;
    for _ in 0..10 {
        site.pass(Millis(lease.0 / 5)).await;
        worker.beat(having(&[&offer])).await;
    }
    let record = site.record(job).await;
    assert_eq!((record.state, record.counts.losses), (State::Running, 0));
    assert_eq!(site.counter("leases_lost").await, 0);
}

#[tokio::test]
async fn who_says_more_than_can_wait_while_the_disk_is_full_keeps_its_attempts_too() {
    const PIECE: usize = model::maxima::LOG_CHUNK_BYTES_MAX;
    let site = Site::start().await;
    let lease = site.config.lease;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.record_when(job, |record| record.state == State::Running).await;
    for method in ["renew", "renew_all", "complete", "join", "log"] {
        site.store.fail(method, usize::MAX, FULL);
    }
    let n_pieces = u64::try_from((16 << 20) / PIECE).unwrap();
    let piece = |number: u64| {
        let (offset, bytes) = (number, vec![b'x'; PIECE].into());
        let attempt = Some(attempt(&offer));
        Ours::Log(v1::LogChunk { attempt, offset, bytes, number, ..v1::LogChunk::default() })
    };
    for number in 1..=n_pieces {
        worker.say(piece(number)).await;
    }
    worker.say(Ours::Complete(succeeded(&offer))).await;
    for _ in 0..15 {
        site.pass(Millis(lease.0 / 5)).await;
        let beat = worker.beat(having(&[&offer]));
        tokio::pin!(beat);
        // After each failure to keep output too, the store is left alone for a moment.
        while timeout(MOMENT, &mut beat).await.is_err() {
            site.pass(Millis(250)).await;
        }
    }
    assert_eq!(site.counter("workers_unheard").await, 1);
    site.store.heal();
    site.pass(Millis(250)).await;
    // What could wait is kept, and the worker is to say the rest again.
    let mut n_kept = 0;
    while let Ok(said) = worker.next().await {
        if let Theirs::LogAck(ack) = said {
            n_kept = ack.number;
        }
    }
    assert!((1..n_pieces).contains(&n_kept), "{n_kept}");
    let attempts = vec![attempt(&offer)];
    let mut worker = site.worker_with(v1::Hello { attempts, ..hello("w") }).await;
    for number in n_kept + 1..=n_pieces {
        worker.say(piece(number)).await;
    }
    worker.say(Ours::Complete(succeeded(&offer))).await;
    assert!(!worker.ack().await.stale);
    let record = site.record(job).await;
    assert_eq!((record.state, record.counts.losses), (State::Succeeded, 0));
    assert_eq!(site.counter("logs_dropped").await, 0);
}

#[tokio::test]
async fn a_worker_that_cannot_be_heard_while_the_disk_is_full_gets_a_lease_afterwards() {
    let mut site = Site::start().await;
    let lease = site.config.lease;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.record_when(job, |record| record.state == State::Running).await;
    // A scheduler starts on a disk that is full, and finds every lease run out.
    site.stop().await;
    site.store.fail("renew_all", usize::MAX, FULL);
    site.time.pass(Millis(2 * lease.0));
    site.go().await;
    site.pass(Millis(lease.0 / 2)).await;
    site.turn().await;
    assert_eq!(site.record(job).await.state, State::Running, "no lease is judged yet");
    site.store.heal();
    site.pass(Millis(lease.0 / 2 - 1)).await;
    site.turn().await;
    // All leases are fresh now: a worker that comes back in time keeps what it has.
    site.pass(Millis(lease.0 / 2)).await;
    site.turn().await;
    assert_eq!(site.record(job).await.state, State::Running);
    // One that does not is given up.
    site.pass(lease).await;
    let record = site.record_when(job, |record| record.state == State::Queued).await;
    assert_eq!(record.counts.losses, 1);
}

#[tokio::test]
async fn a_session_that_was_replaced_is_cut_off() {
    let site = Site::start().await;
    let mut old = site.worker("w").await;
    let mut new = site.worker("w").await;
    assert!(new.welcome.generation > old.welcome.generation);
    let told = old.next().await.unwrap_err();
    assert!(told.message().contains("newer session"), "{told}");
    new.beat(v1::Heartbeat::default()).await;
}

#[tokio::test]
async fn after_a_loss_another_worker_is_preferred_though_the_first_is_free() {
    let site = Site::start().await;
    let (mut first, mut second) = (site.worker("a").await, site.worker("b").await);
    let job = site.submit(spec()).await;
    // Of two that are alike, the first by name.
    let offer = first.offer().await;
    first.accept(&offer).await;
    site.record_when(job, |record| record.state == State::Running).await;
    // It is well, has room, and does not know of the attempt any more.
    first.beat(v1::Heartbeat::default()).await;
    let again = second.offer().await;
    assert_eq!((again.job, again.attempt), (job, 2));
    let record = site.record(job).await;
    assert_eq!((record.counts.losses, record.counts.failures), (1, 0));
    let workers = site.admin.clone().workers(v1::WorkersRequest {}).await.unwrap().into_inner();
    let (used, is_well): (Vec<u32>, Vec<bool>) =
        workers.workers.iter().map(|worker| (worker.slots_used, worker.healthy)).unzip();
    assert_eq!((used, is_well), (vec![0, 1], vec![true, true]));
    // If there is no other, the one that lost it gets it again.
    first.say(Ours::Goodbye(v1::Goodbye {})).await;
    second.accept(&again).await;
    second.beat(having(&[&again])).await;
    second.beat(v1::Heartbeat::default()).await;
    assert_eq!(second.offer().await.attempt, 3);
}
