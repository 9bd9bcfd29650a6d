//! What a store is asked, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use model::{Ask, JobId, Name, Progress, Record, Spec, State, TenantId, Timestamp, WorkerId};

use crate::Refusal;

/// Jobs to be taken in together, all of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Whose they are.
    pub tenant: TenantId,
    /// The key under which the same submission may come again; `None` means it will not.
    pub idempotency: Option<Idempotency>,
    /// The jobs; at least one.
    pub jobs: Vec<NewJob>,
    /// The number of the first that is new, if [`Store::number`](crate::Store::number) gave one
    /// for each of them; the others follow it. Otherwise the store numbers them.
    pub first: Option<JobId>,
    /// Claims of jobs that were numbered so: they come in and are claimed in one step, or neither.
    pub claims: Vec<Claim>,
}

impl Submission {
    /// Of jobs that come once, and get their numbers as they do.
    pub const fn new(tenant: TenantId, jobs: Vec<NewJob>) -> Self {
        Self { tenant, idempotency: None, jobs, first: None, claims: Vec::new() }
    }
}

/// A submission may come twice; it is taken in once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The submitter's key, unique in its tenant.
    pub key: String,
    /// A digest of everything that was asked.
    pub body: [u8; 32],
}

/// One job to be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// What is asked. Its `after` names jobs that exist already.
    pub spec: Spec,
    /// Further dependencies: places in the same submission, each before this one.
    pub after_indexes: Vec<usize>,
    /// What to do if its dedupe key is taken.
    pub repeat: Repeat,
    /// Whether it starts out on hold.
    pub on_hold: bool,
}

/// What to do with a job whose dedupe key is taken by an unfinished one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Answer with that one, and raise its priority if this one's is higher.
    Join,
    /// Answer with that one.
    Drop,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// For each job asked for, in order: its record. One that joined another carries the other's.
    pub jobs: Vec<Record>,
    /// For each job asked for: whether it is new.
    pub is_new: Vec<bool>,
    /// Jobs that were there before and are changed: they have more dependents, or a new priority.
    pub changed: Vec<Record>,
    /// For each claim, in order: what became of it.
    pub claimed: Vec<Claimed>,
}

/// Take a job out of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The fence under which it was seen.
    pub fence: u64,
    /// For whom.
    pub worker: WorkerId,
    /// The pool that the worker is in.
    pub pool: Name,
    /// What it will hold.
    pub holds: Option<Ask>,
    /// Why there, as it is to be shown; kept with the attempt.
    pub why: String,
    /// Limits that hold across schedulers. A store that one has to itself need not look at them:
    /// that one has counted.
    pub limits: Vec<Limit>,
}

/// Something that attempts use while they last, and that there is only so much of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What it is called, the same for everybody.
    pub name: String,
    /// How much of it this attempt uses.
    pub amount: i64,
    /// How much there is.
    pub max: i64,
    /// What was charged counts too; `None`: only what is in use now does.
    pub spent: Option<Spent>,
}

/// What was charged since a moment, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// To whom; `None` means to all.
    pub tenant: Option<TenantId>,
    /// Since when, to the minute.
    pub since: Timestamp,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The job is the worker's.
    Won(Arc<Record>),
    /// It was changed in between: here is what it is now, or `None` if it is finished or gone.
    Lost(Option<Box<Record>>),
    /// It would exceed this limit; nothing is changed.
    Refused(String),
}

/// A worker says that its attempt runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Who says it.
    pub worker: WorkerId,
}

/// A worker says how far its attempt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Who says it.
    pub worker: WorkerId,
    /// How far.
    pub progress: Progress,
}

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Out, Self::Err];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Err => "err",
        }
    }

    /// The output of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| stream.name() == name)
    }
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Which output.
    pub stream: Stream,
    /// How many bytes the attempt wrote before this piece, on both streams together.
    pub offset: u64,
    /// When the store took it in.
    pub at: Timestamp,
    /// What it wrote. Shared, so that it can be asked for again without a copy.
    pub bytes: Bytes,
}

/// Which output to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The job.
    pub job: JobId,
    /// The number of the attempt; `None` means every one, in order.
    pub attempt: Option<u32>,
    /// Pieces after this attempt and offset; `None` means from the beginning.
    pub after: Option<(u32, u64)>,
    /// At most so many pieces.
    pub max: usize,
}

/// What is old enough to be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old {
    /// What finished before (jobs, attempts, logs, keys, notices), and runs and notes that age from
    /// before it.
    pub before: Timestamp,
    /// What tenants were charged before. Budgets may still count it when its jobs are forgotten.
    pub charged_before: Timestamp,
    /// Minutes that began before.
    pub counted_before: Timestamp,
    /// At most so many jobs at a time.
    pub max: usize,
}

impl Old {
    /// Everything from before a moment.
    #[must_use]
    pub const fn from_before(before: Timestamp, max: usize) -> Self {
        Self { before, charged_before: before, counted_before: before, max }
    }
}

/// What became of a job that was called off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is final now.
    Done {
        /// The job.
        record: Box<Record>,
        /// Jobs that waited for it and run without it: queued now.
        released: Vec<Record>,
        /// Jobs that waited for it and are cancelled with it.
        cancelled: Vec<Record>,
        /// Unfinished jobs that have fewer dependents or blockers now.
        changed: Vec<Record>,
    },
    /// A worker has it; it will end as cancelled.
    Stopping(Box<Record>),
    /// It was final before, or (for `give_up`) it is not too late for it.
    Unchanged(Box<Record>),
    /// There is no such job.
    Unknown,
}

/// A change of a job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amend {
    /// Keep it in the queue until it is released.
    Hold,
    /// Let it go again.
    Release,
    /// Give it another priority.
    Priority(i32),
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amended {
    /// The job as it is now, blocked or queued.
    Done(Box<Record>),
    /// It does not wait, so nothing is changed.
    NotWaiting(State),
    /// There is no such job.
    Unknown,
}

/// What became of a job that was to be taken up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revived {
    /// The job as it is now: queued, on no hold.
    Done(Box<Record>),
    /// It is neither failed nor cancelled, so nothing is changed.
    NotFinished(State),
    /// Its dedupe key is taken by this unfinished job.
    Taken(JobId),
    /// There is no room for one more unfinished job.
    Full(Refusal),
    /// There is no such job.
    Unknown,
}

/// One connection of a worker. The newest is the one that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who.
    pub worker: WorkerId,
    /// Goes up by one with every connection, for good.
    pub generation: u64,
}

/// Something that happened, to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it belongs to: notes of one topic are read together.
    pub topic: String,
    /// Of which kind: a flood of one kind pushes out no other.
    pub kind: String,
    /// A topic has one note of a key: the same again changes nothing. Empty means any number.
    pub key: String,
    /// What happened, as JSON.
    pub document: String,
    /// As many of this topic and kind are kept.
    pub n_max: usize,
    /// May be forgotten when it is old, like finished jobs.
    pub ages: bool,
}

/// Which notes to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotePage {
    /// Of this topic.
    pub topic: String,
    /// Of this kind; `None` means of any.
    pub kind: Option<String>,
    /// With a smaller number: the last of the page before.
    pub before: Option<u64>,
    /// At most so many.
    pub max: usize,
}

/// Which jobs to list, newest first. What is empty or `None` does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whose.
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
    /// At most so many.
    pub max: usize,
}
