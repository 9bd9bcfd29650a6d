use std::collections::{BTreeMap, VecDeque};

use model::Worker;
use store::Session;

use super::*;
use crate::fleet::Seat;
use crate::fleet::words::StreamId;
use crate::share::tests::{claimed, scheduler};

fn seat(worker: &str) -> Seat {
    let worker = WorkerId::new(worker);
    Seat {
        stream: Some(StreamId(1)),
        session: Session { worker: worker.clone(), generation: 1 },
        outbox: None,
        said: Worker::new(worker),
        instance: String::new(),
        software: String::new(),
        learned: VecDeque::new(),
        is_draining: false,
        is_well: true,
        foreign_slots: 0,
        slots_held: 0,
        detects: BTreeMap::new(),
        runs_jobs: true,
        detections: (0, 0),
        heard: Timestamp(0),
    }
}

/// Job 1 was to be given up, provided something that turned out not to hold: whether the attempt is
/// known here after that, and still to be stopped.
async fn given_up_in_vain(worker: Option<&str>, provided: Provided) -> Option<bool> {
    let mut scheduler = scheduler().await;
    if let Some(worker) = worker {
        scheduler.fleet.sit(StreamId(1), seat(worker));
    }
    let record = claimed(1, "w");
    let job = record.id.clone();
    scheduler.adopt(&record);
    scheduler.stop(&job, v1::StopReason::Stale);
    scheduler.end_provided(&job, (Ending::Lost, provided), "nobody heard of it");
    scheduler.n_ending = 1;
    let ends = std::mem::take(&mut scheduler.outgoing.ends);
    scheduler.completed(ends, Ok(vec![Ended::Stale]));
    assert!(scheduler.refetch.contains(&job), "what it is now is read again");
    scheduler.jobs.live(&job).map(|live| live.stop.is_some() || live.is_ending)
}

#[tokio::test]
async fn who_is_given_up_in_vain_goes_on_where_its_worker_is_and_is_forgotten_elsewhere() {
    for provided in [Provided::Silence, Provided::NoStart] {
        assert_eq!(given_up_in_vain(Some("w"), provided).await, Some(false));
        assert_eq!(given_up_in_vain(None, provided).await, None, "its worker has moved on");
        assert_eq!(given_up_in_vain(Some("v"), provided).await, None);
    }
    assert_eq!(given_up_in_vain(Some("w"), Provided::Nothing).await, None, "the record knows");
}
