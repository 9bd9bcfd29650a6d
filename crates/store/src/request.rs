//! Requests to a store, and its answers.

use std::sync::Arc;

use bytes::Bytes;
use model::{Ask, JobId, Name, Progress, Record, Spec, State, TenantId, Timestamp, WorkerId};

use crate::Refusal;

/// Jobs to submit together, all of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The tenant of the jobs.
    pub tenant: TenantId,
    /// The idempotency key. `None`: the client will not repeat the submission.
    pub idempotency: Option<Idempotency>,
    /// The jobs, at least one.
    pub jobs: Vec<NewJob>,
    /// The number of the first new job, if [`Store::number`](crate::Store::number) reserved one for
    /// each job. The others follow it. Otherwise the store numbers them.
    pub first: Option<JobId>,
    /// Claims of jobs with reserved numbers. The store writes the jobs and the claims in one step,
    /// or neither.
    pub claims: Vec<Claim>,
}

impl Submission {
    /// A submission without a key, which the store numbers.
    pub const fn new(tenant: TenantId, jobs: Vec<NewJob>) -> Self {
        Self { tenant, idempotency: None, jobs, first: None, claims: Vec::new() }
    }
}

/// Identifies a submission, so that a repetition is accepted once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The submitter's key, unique in its tenant.
    pub key: String,
    /// A digest of the whole submission.
    pub body: [u8; 32],
}

/// One job to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The specification. Its `after` names existing jobs.
    pub spec: Spec,
    /// Further dependencies: indexes in the same submission, each smaller than the job's own.
    pub after_indexes: Vec<usize>,
    /// The reaction to a dedupe key that is in use.
    pub repeat: Repeat,
    /// Whether the job starts on hold.
    pub on_hold: bool,
}

/// The reaction to a dedupe key that an unfinished job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Answer with the existing job, and raise its priority if the new one is higher.
    Join,
    /// Answer with the existing job.
    Drop,
}

/// An accepted submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The record of each submitted job, in order. A joined job has the record of the existing one.
    pub jobs: Vec<Record>,
    /// For each submitted job: whether it is new.
    pub is_new: Vec<bool>,
    /// Existing jobs that changed: they have more dependents, or a new priority.
    pub changed: Vec<Record>,
    /// The outcome of each claim, in order.
    pub claimed: Vec<Claimed>,
}

/// A claim of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The fence of the record that the scheduler decided on.
    pub fence: u64,
    /// The worker that gets the job.
    pub worker: WorkerId,
    /// The pool that the worker is in.
    pub pool: Name,
    /// The locks that the attempt will hold.
    pub holds: Option<Ask>,
    /// The explanation of the placement, for users. Kept with the attempt.
    pub why: String,
    /// Limits that hold across schedulers. A store with one scheduler ignores them, because that
    /// scheduler counts itself.
    pub limits: Vec<Limit>,
}

/// A countable quantity that live attempts use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name of the limit, the same in every scheduler.
    pub name: String,
    /// The amount that this attempt uses.
    pub amount: i64,
    /// The limit.
    pub max: i64,
    /// The window whose charges count too. `None`: only current usage counts.
    pub spent: Option<Spent>,
}

/// Charges since a moment, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The charged tenant. `None` means all tenants.
    pub tenant: Option<TenantId>,
    /// The start of the window, to the minute.
    pub since: Timestamp,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The worker has the job.
    Won(Arc<Record>),
    /// The job changed in between. The current record, or `None` if it is finished or deleted.
    Lost(Option<Box<Record>>),
    /// The claim would exceed this limit. Nothing is changed.
    Refused(String),
}

/// The start of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The reporting worker.
    pub worker: WorkerId,
}

/// The progress of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The reporting worker.
    pub worker: WorkerId,
    /// How far.
    pub progress: Progress,
}

/// A stream of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Out, Self::Err];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Err => "err",
        }
    }

    /// The stream with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| stream.name() == name)
    }
}

/// An output chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The stream.
    pub stream: Stream,
    /// Bytes of output before this chunk, on both streams together.
    pub offset: u64,
    /// The time at which the store received it.
    pub at: Timestamp,
    /// The output. Shared, so that a retry needs no copy.
    pub bytes: Bytes,
}

/// The output to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The job.
    pub job: JobId,
    /// The number of the attempt. `None` means all, in order.
    pub attempt: Option<u32>,
    /// Only chunks after this attempt and offset. `None` means from the beginning.
    pub after: Option<(u32, u64)>,
    /// The limit of chunks.
    pub max: usize,
}

/// The age limits of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old {
    /// Deletes what finished before (jobs, attempts, logs, keys, notices), and older runs and notes
    /// that age.
    pub before: Timestamp,
    /// Deletes older charges. Budgets may still count a charge after its job is deleted.
    pub charged_before: Timestamp,
    /// Deletes minutes of counts that began before.
    pub counted_before: Timestamp,
    /// The limit of jobs in one step.
    pub max: usize,
}

impl Old {
    /// Everything before a moment.
    #[must_use]
    pub const fn from_before(before: Timestamp, max: usize) -> Self {
        Self { before, charged_before: before, counted_before: before, max }
    }
}

/// The outcome of a cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The job is final now.
    Done {
        /// The job.
        record: Box<Record>,
        /// Dependents that run without it, and are queued now.
        released: Vec<Record>,
        /// Dependents that are cancelled with it.
        cancelled: Vec<Record>,
        /// Unfinished jobs with fewer dependents or blockers than before.
        changed: Vec<Record>,
    },
    /// A worker runs it. The attempt will end as cancelled.
    Stopping(Box<Record>),
    /// The job was final before, or (for `give_up`) is not too late.
    Unchanged(Box<Record>),
    /// There is no such job.
    Unknown,
}

/// A change of a waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amend {
    /// Keep it in the queue until it is released.
    Hold,
    /// Release it.
    Release,
    /// Set its priority.
    Priority(i32),
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amended {
    /// The job after the change, blocked or queued.
    Done(Box<Record>),
    /// The job does not wait. Nothing is changed.
    NotWaiting(State),
    /// There is no such job.
    Unknown,
}

/// The outcome of a revival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revived {
    /// The job after the revival: queued, not on hold.
    Done(Box<Record>),
    /// The job did not fail and is not cancelled. Nothing is changed.
    NotFinished(State),
    /// This unfinished job has its dedupe key.
    Taken(JobId),
    /// There is no room for a further unfinished job.
    Full(Refusal),
    /// There is no such job.
    Unknown,
}

/// One connection of a worker. Only the newest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The worker.
    pub worker: WorkerId,
    /// Increases with every connection, and is never reset.
    pub generation: u64,
}

/// An event to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The subject: notes of one topic are read together.
    pub topic: String,
    /// The kind: many notes of one kind displace none of a different kind.
    pub kind: String,
    /// A topic keeps one note of a key, and a repetition changes nothing. Empty means no key.
    pub key: String,
    /// The event, as JSON.
    pub document: String,
    /// The limit of stored notes of this topic and kind.
    pub n_max: usize,
    /// Whether retention deletes it, as it deletes finished jobs.
    pub ages: bool,
}

/// The notes to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotePage {
    /// The topic.
    pub topic: String,
    /// Only this kind. `None` means any.
    pub kind: Option<String>,
    /// Only smaller numbers: the last of the page before.
    pub before: Option<u64>,
    /// The limit of notes.
    pub max: usize,
}

/// The jobs to list, newest first. Empty and `None` do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this tenant.
    pub tenant: Option<TenantId>,
    /// In one of these states.
    pub states: Vec<State>,
    /// Of this type.
    pub kind: Option<Name>,
    /// With all these labels.
    pub labels: Vec<(String, String)>,
    /// In this group.
    pub group: Option<String>,
    /// Submitted on behalf of this job.
    pub parent: Option<JobId>,
    /// On this worker now, or last.
    pub worker: Option<WorkerId>,
    /// That ended for this reason.
    pub cause: Option<model::Cause>,
    /// With a smaller id: the last of the page before.
    pub before: Option<JobId>,
    /// The limit of jobs.
    pub max: usize,
}
