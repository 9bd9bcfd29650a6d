//! What a heartbeat says beside that its worker lives.

use model::{Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::{attempt, having};
use crate::site::{Site, hello, spec};

async fn status(site: &Site) -> v1::WorkerStatus {
    let workers = site.admin.clone().workers(v1::WorkersRequest {}).await.expect("it answers");
    workers.into_inner().workers.remove(0)
}

#[tokio::test]
async fn progress_that_was_missed_comes_with_the_next_heartbeat() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let silence_timeout_ms = Some(15_000);
    let job = site.submit(v1::Spec { silence_timeout_ms, ..spec() }).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    let progress = Some(v1::Progress {
        fraction: 0.25,
        note: "a quarter".to_owned(),
        ..v1::Progress::default()
    });
    let report = v1::ProgressReport { attempt: Some(attempt(&offer)), progress };
    let beat = v1::Heartbeat { progress: vec![report], ..having(&[&offer]) };
    worker.beat(beat.clone()).await;
    site.record_when(job, |record| {
        let current = record.current.as_ref();
        current.and_then(|one| one.progress.as_ref()).is_some_and(|one| one.note == "a quarter")
    })
    .await;
    // The same again is no sign of life of the attempt: its silence counts.
    for _ in 0..5 {
        site.pass(Millis::from_secs(5)).await;
        worker.beat(beat.clone()).await;
    }
    let stopped = loop {
        let next = worker.next().await.expect("the stream goes on");
        if let v1::server_message::Message::Stop(stop) = next {
            break stop;
        }
    };
    assert_eq!(stopped.reason(), v1::StopReason::Timeout);
    assert_eq!(site.record(job).await.state, State::Running);
}

#[tokio::test]
async fn slots_that_are_not_free_again_get_no_job() {
    let site = Site::start().await;
    let mut worker = site.worker_with(v1::Hello { slots: 2, ..hello("w") }).await;
    let first = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.record_when(first, |record| record.state == State::Running).await;
    // Its own job takes one slot, and one that was taken from it has not ended yet.
    worker.beat(v1::Heartbeat { slots_used: 2, ..having(&[&offer]) }).await;
    assert_eq!((status(&site).await.slots_used, status(&site).await.slots_held), (1, 1));
    let second = site.submit(spec()).await;
    site.turn().await;
    assert_eq!(site.why(second).await.reason, "workers-full");
    worker.beat(v1::Heartbeat { slots_used: 1, ..having(&[&offer]) }).await;
    assert_eq!(worker.offer().await.job, second);
    // Slots of attempts that ended and are not acknowledged are its own, and free.
    assert_eq!(status(&site).await.slots_held, 0);
}

#[tokio::test]
async fn what_it_says_of_detections_and_metrics_is_shown() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let metrics = v1::Metrics { cpu_pct: Some(12.5), ram_free_mb: Some(77), ..Default::default() };
    worker
        .beat(v1::Heartbeat {
            detections_used: 1,
            detections_total: 3,
            foreign_slots: 2,
            metrics: Some(metrics),
            ..v1::Heartbeat::default()
        })
        .await;
    let status = status(&site).await;
    assert_eq!((status.detections_used, status.detections_total), (1, 3));
    assert_eq!(
        (status.cpu_pct, status.ram_free_mb, status.foreign_slots),
        (Some(12.5), Some(77), 2)
    );
}

#[tokio::test]
async fn a_job_that_the_worker_lost_track_of_is_lost_and_a_foreign_one_is_stopped() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.record_when(job, |record| record.state == State::Running).await;
    let foreign = v1::AttemptRef { job: 99, attempt: 1 };
    worker
        .say(Ours::Heartbeat(v1::Heartbeat { attempts: vec![foreign], ..Default::default() }))
        .await;
    let stopped = loop {
        let next = worker.next().await.expect("the stream goes on");
        if let v1::server_message::Message::Stop(stop) = next {
            break stop;
        }
    };
    assert_eq!((stopped.attempt, stopped.reason()), (Some(foreign), v1::StopReason::Stale));
    let record = site.record_when(job, |record| record.counts.losses == 1).await;
    assert_eq!(record.counts.failures, 0);
}
