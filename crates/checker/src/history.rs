//! All data about a run: the store's file, the clients' logs, and the records of the jobs'
//! processes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The input of the checker. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Jobs, by id. A job that is in two tables is here twice. A job that the store deleted has the
    /// record that the database made at its deletion.
    pub jobs: Vec<Job>,
    /// Ended attempts, by job and number, and live ones.
    pub attempts: Vec<Attempt>,
    /// Idempotency keys in the store.
    pub keys: Vec<Key>,
    /// The number of completed attempts in the store's usage.
    pub n_completed: u64,
    /// Damage of the file.
    pub damage: Vec<String>,
    /// Answers to clients, in the order of each client's log.
    pub said: Vec<Said>,
    /// Records of processes, in their order.
    pub marks: Vec<Mark>,
    /// Stored output of attempts. The line `17 2 w1 5` is the fifth that worker w1 wrote for
    /// attempt 2 of job 17.
    pub output: Vec<Piece>,
    /// Progress of attempts, as the database recorded it.
    pub notes: Vec<Note>,
    /// Injected faults, in order.
    pub faults: Vec<Fault>,
    /// The limits of the recovery. `None` if the scenario does not measure it.
    pub calm: Option<Calm>,
    /// The limits that must not be exceeded.
    pub limits: Limits,
    /// The attributes of each worker. If empty, attempts are not checked against them.
    pub workers: BTreeMap<String, Offer>,
    /// Job types without retention.
    pub forgetful: BTreeSet<String>,
    /// Every change of a job's row, as the database recorded it. Empty if it did not.
    pub steps: Vec<Step>,
    /// The state of each job in the view of completions. `None` if the view was not read.
    pub completions: Option<BTreeMap<u64, String>>,
    /// The stored usage of each limit after the end of all attempts.
    pub held: BTreeMap<String, i64>,
    /// Inconsistencies that a concurrent reader found.
    pub seen: Vec<String>,
    /// The largest difference between the clocks of the records.
    pub clocks_ms: i64,
}

/// A change of a job's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The job.
    pub job: u64,
    /// The database's time, while the row was locked.
    pub at_ms: i64,
    /// Its new state. `None`: the row left the table of unfinished jobs.
    pub state: Option<String>,
    /// The fence after the change. For a row that left, its last fence.
    pub fence: u64,
    /// The number of attempts.
    pub attempt: u32,
    /// Its worker.
    pub worker: Option<String>,
    /// When it could first have run. `None` while it waits for a dependency.
    pub ready_ms: Option<i64>,
    /// The earliest start.
    pub not_before_ms: Option<i64>,
}

/// A job as the store's file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its tenant.
    pub tenant: String,
    /// Its type.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// The cause, if it did not succeed.
    pub cause: Option<String>,
    /// Its dedupe key. At most one unfinished job has it.
    pub dedupe: Option<String>,
    /// Slots that it needs.
    pub slots: u32,
    /// Attempts that may fail.
    pub attempts_max: u32,
    /// The wait after the first failure.
    pub backoff_ms: i64,
    /// The number of attempts.
    pub n_attempts: u32,
    /// Attempts that failed or timed out.
    pub n_failures: u32,
    /// Attempts that were lost.
    pub n_losses: u32,
    /// Attempts that a worker refused.
    pub n_refusals: u32,
    /// Attempts that were preempted.
    pub n_evictions: u32,
    /// Its priority: higher starts sooner.
    pub priority: i32,
    /// When it was submitted.
    pub created_ms: i64,
    /// When it became final.
    pub finished_ms: Option<i64>,
    /// The exclusive lock that it needs.
    pub resource: Option<String>,
    /// Its pool. `None` means every pool.
    pub pool: Option<String>,
    /// Its requirements: for each key, the worker must have one of these values.
    pub needs: BTreeMap<String, Vec<String>>,
    /// Amounts that it needs.
    pub amounts: BTreeMap<String, u64>,
    /// Its result `17 2 w1`: the job, the attempt and the worker. `None` if jobs have no such
    /// result.
    pub result: Option<String>,
    /// Its specification, in the form of the reader of the store. `None` if it is not compared.
    pub terms: Option<String>,
    /// The client's label of its submission, with or without a key. `None` if jobs have no labels.
    pub label: Option<String>,
    /// Whether the store deleted it. Then it must have succeeded without a trace.
    pub is_forgotten: bool,
    /// The number of its dependents at its deletion.
    pub n_dependents: u32,
    /// Whether a cancellation was pending at its deletion.
    pub was_cancelling: bool,
}

impl Job {
    /// Whether it is final.
    pub fn is_final(&self) -> bool {
        matches!(self.state.as_str(), "succeeded" | "failed" | "cancelled")
    }
}

/// An attempt as the store's file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub job: u64,
    /// The number of the attempt, which is its fencing token.
    pub number: u32,
    /// Its worker.
    pub worker: String,
    /// When it was claimed.
    pub claimed_ms: i64,
    /// When it ended. `None` if it is live.
    pub ended_ms: Option<i64>,
    /// When the scheduler received the report of its end. The backoff of a retry begins there.
    pub heard_ms: Option<i64>,
    /// Its ending.
    pub ending: String,
    /// Its error message.
    pub error: String,
}

/// Output of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The job.
    pub job: u64,
    /// The number of the attempt.
    pub attempt: u32,
    /// The offset in bytes.
    pub position: u64,
    /// When it was stored, by the database's clock.
    pub at_ms: i64,
    /// Its text.
    pub text: String,
}

/// Reported progress: `17 2 w1 5`, the same as in the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The job.
    pub job: u64,
    /// The live attempt at the time of the write.
    pub attempt: u32,
    /// The worker of that attempt.
    pub worker: Option<String>,
    /// Its text.
    pub text: String,
}

/// An idempotency key in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Its tenant.
    pub tenant: String,
    /// The submitter's key.
    pub key: String,
    /// Its jobs.
    pub ids: Vec<u64>,
}

/// A request of a client, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The number of the client.
    pub client: u32,
    /// The operation.
    pub op: Op,
    /// The key of a submission.
    pub key: String,
    /// When the client sent it.
    pub sent_ms: i64,
    /// When the answer arrived, or the client stopped waiting.
    pub at_ms: i64,
    /// The outcome.
    pub outcome: Outcome,
    /// The jobs of a submission, in its order, or the cancelled job.
    pub ids: Vec<u64>,
    /// Whether the cancellation changed anything.
    pub changed: bool,
    /// The specification of each job. An array has one for all jobs.
    pub asked: Vec<Asked>,
    /// The state of a cancelled job, or the error message.
    pub note: String,
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Submit jobs.
    Submit,
    /// Submit different jobs under a used key.
    Conflict,
    /// Cancel a job.
    Cancel,
}

/// The knowledge of a client after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The request took effect.
    Ok,
    /// The request failed, and nothing is changed.
    Fail,
    /// The outcome is unknown.
    Unknown,
}

/// The part of a job's specification that the checker reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its tenant.
    pub tenant: String,
    /// Its dependencies.
    pub after: Vec<u64>,
    /// Dependencies by index in the same submission.
    pub after_indexes: Vec<usize>,
    /// Whether it runs even if a dependency does not succeed.
    pub run_if_failed: bool,
    /// Its specification, in the form of the store's reader. `None` if it is not compared.
    #[serde(default)]
    pub terms: Option<String>,
    /// The label of the submission. Empty if jobs have none.
    #[serde(default)]
    pub label: String,
}

/// A record that a process of a job wrote about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// `start`, `tick`, `line` (of output), `fail`, `stop`, `killed` or `end`.
    pub what: String,
    /// The job.
    pub job: u64,
    /// The number of the attempt.
    pub attempt: u32,
    /// Its worker.
    pub worker: String,
    /// The time, to the hundredth of a second.
    pub at_ms: i64,
}

/// A fault that was injected into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at_ms: i64,
    /// The fault.
    pub harm: Harm,
    /// The process.
    pub who: String,
}

impl Fault {
    /// The scheduler, in a list of faults.
    pub const SCHEDULER: &'static str = "scheduler";

    /// Whether it concerns a worker.
    pub fn is_worker(&self) -> bool {
        self.who != Self::SCHEDULER
    }
}

/// The kinds of faults of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is killed.
    Kill,
    /// It is suspended.
    Stop,
    /// It continues.
    Continue,
}

/// The limits that must not be exceeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The limit of slots of a tenant.
    pub tenant_slots: BTreeMap<String, u32>,
    /// The limit of live attempts of a tenant.
    pub tenant_jobs: BTreeMap<String, u32>,
    /// The limit of live attempts of a type.
    pub type_jobs: BTreeMap<String, u32>,
    /// The slots of a worker, for the store's records.
    pub worker_slots: BTreeMap<String, u32>,
    /// Tenants with a budget.
    pub budgets: BTreeSet<String>,
    /// Tenants that may preempt other jobs.
    pub owed: BTreeSet<String>,
    /// The limit of preemptions of a job.
    pub evictions_max: u32,
    /// The shortest run time before a preemption.
    pub evicted_after_ms: i64,
    /// Losses after which a job is parked.
    pub losses_max: u32,
}

/// The limits of the recovery after the last fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calm {
    /// The time of the last fault.
    pub healed_ms: i64,
    /// Workers that were not connected all the time since then.
    pub away: BTreeSet<String>,
    /// When the store was read.
    pub read_ms: i64,
    /// The longest time for which an attempt may be live that no worker runs any more.
    pub orphan_ms: i64,
    /// The same for an attempt that no worker ever ran.
    pub offer_ms: i64,
    /// The longest time for which a job may wait beside a free slot that fits.
    pub wait_ms: i64,
}

/// The offer of a worker. Its processes never use more. A scheduler may claim more for it while the
/// worker moves to a peer. The worker then refuses attempts without room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its pool.
    pub pool: String,
    /// The types that it runs.
    pub types: BTreeSet<String>,
    /// Its attributes: the values of each key.
    pub has: BTreeMap<String, BTreeSet<String>>,
    /// Its slots.
    pub slots: u32,
    /// Amounts that it has.
    pub amounts: BTreeMap<String, u64>,
}
