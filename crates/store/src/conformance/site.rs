//! The fixture of the cases: a store, its clock, and helpers that name the steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use model::{
    Cause, Ending, Fixed, JobId, Millis, Name, Patience, Record, Spec, State, TenantId, Timestamp,
    WorkerId,
};

use crate::{
    Cancelled, Claim, Claimed, Clock, End, Ended, NewJob, Options, Past, Repeat, Run, Start, Store,
    Submission, Submitted,
};

/// A clock that moves only when a case moves it.
#[derive(Clone)]
pub struct Time(Arc<AtomicI64>);

impl Time {
    /// A clock that starts at a time that is no round number.
    pub fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_800_000_000_123)))
    }

    /// The clock as an option of a store.
    pub fn clock(&self) -> Clock {
        let time = self.clone();
        Arc::new(move || time.now())
    }

    /// The current time of this clock.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    /// Moves the clock forward.
    pub fn pass(&self, length: Millis) {
        self.0.fetch_add(length.0, Ordering::SeqCst);
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::new()
    }
}

/// The options of the cases: small limits, so that cases reach them.
pub fn options(time: &Time) -> Options {
    Options {
        clock: Some(time.clock()),
        skew_ms: 0,
        log_bytes_max: 100,
        jobs_max: 40,
        tenant_jobs_max: 30,
        patience: Patience { losses_max: 2, refused_backoff: Millis(50) },
        runs_max: 5,
    }
}

/// The fixture of a case.
#[derive(Clone)]
pub struct Site {
    /// An empty store.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub time: Time,
}

/// The tenant of most cases.
pub(super) fn tenant() -> TenantId {
    TenantId::new("tenant")
}

/// A plain job of this tenant.
pub(super) fn spec() -> Spec {
    Spec::new(tenant(), Name::new("kind"))
}

/// A job that waits for others.
pub(super) fn after(blockers: &[&Record]) -> Spec {
    Spec { after: blockers.iter().map(|record| record.id.clone()).collect(), ..spec() }
}

pub(super) fn new(spec: Spec) -> NewJob {
    NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false }
}

/// A claim of the job in this record, for a worker.
pub(super) fn claim_of(record: &Record, name: &str) -> Claim {
    Claim {
        job: record.id.clone(),
        fence: record.fence,
        worker: worker(name),
        limits: Vec::new(),
        holds: None,
        pool: Name::new("p"),
        why: format!("{name} is free"),
    }
}

pub(super) fn submission(jobs: Vec<NewJob>) -> Submission {
    let tenant = jobs.first().map_or_else(tenant, |job| job.spec.tenant.clone());
    Submission::new(tenant, jobs)
}

pub(super) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

/// An end of the record's current attempt with this ending and defaults.
pub(super) fn end_of(record: &Record, ending: Ending) -> End {
    let current = record.current.as_ref().expect("the case claimed it");
    End::new(record.id.clone(), record.counts.attempts, current.worker.clone(), ending)
}

/// The effects of an accepted end.
pub(super) struct Accepted {
    pub(super) record: Record,
    pub(super) charged: Fixed,
    pub(super) run: Option<Box<Run>>,
    pub(super) released: Vec<Record>,
    pub(super) cancelled: Vec<Record>,
    pub(super) changed: Vec<Record>,
}

pub(super) fn accepted(ended: Ended) -> Accepted {
    let Ended::Accepted { record, charged, run, released, cancelled, changed } = ended else {
        panic!("the end was not accepted: {ended:?}");
    };
    Accepted { record: Arc::unwrap_or_clone(record), charged, run, released, cancelled, changed }
}

/// The record of a completed cancellation, and its three lists.
pub(super) fn done(cancelled: Cancelled) -> (Record, [Vec<Record>; 3]) {
    let Cancelled::Done { record, released, cancelled, changed } = cancelled else {
        panic!("it was not done: {cancelled:?}");
    };
    (*record, [released, cancelled, changed])
}

pub(super) fn ids(records: &[Record]) -> Vec<JobId> {
    records.iter().map(|record| record.id.clone()).collect()
}

pub(super) fn assert_is(record: &Record, state: State, cause: Option<Cause>) {
    assert_eq!((record.state, record.cause), (state, cause), "{record:?}");
}

impl Site {
    pub(super) fn now(&self) -> Timestamp {
        self.time.now()
    }

    pub(super) async fn submit(&self, jobs: Vec<NewJob>) -> Submitted {
        let submitted = self.store.submit(submission(jobs)).await.expect("the store answers");
        submitted.expect("nothing is wrong with the submission")
    }

    /// Submits one job.
    pub(super) async fn one(&self, spec: Spec) -> Record {
        self.submit(vec![new(spec)]).await.jobs.remove(0)
    }

    /// Submits one plain job.
    pub(super) async fn plain(&self) -> Record {
        self.one(spec()).await
    }

    /// The job as it is now.
    pub(super) async fn get(&self, record: &Record) -> Record {
        let found = self.store.job(record.id.clone()).await.expect("the store answers");
        found.expect("the job is there")
    }

    /// The ended attempts of a job.
    pub(super) async fn past(&self, record: &Record) -> Vec<Past> {
        let pasts = self.store.attempts(vec![record.id.clone()]).await;
        pasts.expect("the store answers").remove(0)
    }

    pub(super) async fn try_claim(&self, record: &Record, name: &str) -> Claimed {
        let claims = vec![claim_of(record, name)];
        self.store.claim(claims).await.expect("the store answers").remove(0)
    }

    /// Claims a job as it is now.
    pub(super) async fn claim(&self, record: &Record, name: &str) -> Record {
        let record = self.get(record).await;
        match self.try_claim(&record, name).await {
            Claimed::Won(record) => Arc::unwrap_or_clone(record),
            lost @ (Claimed::Lost(_) | Claimed::Refused(_)) => {
                panic!("the claim was not won: {lost:?}")
            }
        }
    }

    /// Reports the start of the current attempt.
    pub(super) async fn start(&self, record: &Record) -> bool {
        let current = record.current.as_ref().expect("the case claimed it");
        let start = Start {
            job: record.id.clone(),
            attempt: record.counts.attempts,
            worker: current.worker.clone(),
        };
        self.store.start(vec![start]).await.expect("the store answers").remove(0)
    }

    /// Claims and starts a job.
    pub(super) async fn run(&self, record: &Record, name: &str) -> Record {
        let record = self.claim(record, name).await;
        assert!(self.start(&record).await);
        self.get(&record).await
    }

    /// A plain job with a started attempt.
    pub(super) async fn running(&self) -> Record {
        let record = self.plain().await;
        self.run(&record, "w").await
    }

    pub(super) async fn try_end(&self, end: End) -> Ended {
        self.store.complete(vec![end]).await.expect("the store answers").remove(0)
    }

    /// Ends the current attempt.
    pub(super) async fn end(&self, record: &Record, ending: Ending) -> Accepted {
        accepted(self.try_end(end_of(record, ending)).await)
    }

    /// Runs a job once, from claim to end.
    pub(super) async fn go(&self, record: &Record, ending: Ending) -> Accepted {
        let record = self.run(record, "w").await;
        self.end(&record, ending).await
    }

    pub(super) async fn cancel(&self, record: &Record) -> Cancelled {
        let cancelled = self.store.cancel(vec![record.id.clone()]).await;
        cancelled.expect("the store answers").remove(0)
    }

    pub(super) async fn look(&self) -> Vec<Record> {
        self.store.look(None, usize::MAX).await.expect("the store answers")
    }
}
