//! Everything that is known about a run, from those who were there: the store's file, the clients,
//! and the runs of the jobs themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Everything that a checker looks at. Moments are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Jobs, by id; one that is in two tables is here twice. Of those that the store has forgotten,
    /// what the database wrote down when they went.
    pub jobs: Vec<Job>,
    /// Attempts that ended, by job and number, and those under way.
    pub attempts: Vec<Attempt>,
    /// Submissions that the store remembers.
    pub keys: Vec<Key>,
    /// How many attempts the store's ledger counts as completed.
    pub n_completed: u64,
    /// What is wrong with the file itself.
    pub damage: Vec<String>,
    /// What clients were told, in the order in which each of them wrote it down.
    pub said: Vec<Said>,
    /// What runs wrote down, in the order in which they did.
    pub marks: Vec<Mark>,
    /// Output of attempts that the store has: in lines `17 2 w1 5`, the fifth that worker w1 wrote
    /// for attempt 2 at job 17.
    pub output: Vec<Piece>,
    /// How far attempts said they were, as the database itself wrote it down.
    pub notes: Vec<Note>,
    /// What was done to the processes, in order.
    pub faults: Vec<Fault>,
    /// How soon all is well once nothing is hurt any more; `None` if nobody asks.
    pub calm: Option<Calm>,
    /// What may not be exceeded.
    pub limits: Limits,
    /// What each worker offers; if nobody says, no attempt is held to it.
    pub workers: BTreeMap<String, Offer>,
    /// Types of jobs that may be forgotten.
    pub forgetful: BTreeSet<String>,
    /// Every change of a job's row, as the database itself wrote it down; empty if it did not.
    pub steps: Vec<Step>,
    /// What others can read of ends of jobs: the state of each; `None` if nobody looked.
    pub completions: Option<BTreeMap<u64, String>>,
    /// What the store counts as in use of each limit, now that nothing runs.
    pub held: BTreeMap<String, i64>,
    /// What somebody who looked meanwhile saw that did not fit together.
    pub seen: Vec<String>,
    /// By how much the clocks of those differ who wrote moments down.
    pub clocks_ms: i64,
}

/// A change of a job's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The job.
    pub job: u64,
    /// When, by the database's clock, while the row was locked.
    pub at_ms: i64,
    /// Its state from then on; `None`: the row left the table of unfinished jobs.
    pub state: Option<String>,
    /// What a claim must name; for one that leaves, what it was.
    pub fence: u64,
    /// How often it was tried.
    pub attempt: u32,
    /// Who has it.
    pub worker: Option<String>,
    /// When it first could have run; `None` while it waits for others.
    pub ready_ms: Option<i64>,
    /// Not to be started before this.
    pub not_before_ms: Option<i64>,
}

/// A job as the store's file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub tenant: String,
    /// Its type.
    pub kind: String,
    /// Where it is in its life.
    pub state: String,
    /// Why it did not succeed.
    pub cause: Option<String>,
    /// Only one unfinished job may have it.
    pub dedupe: Option<String>,
    /// Slots that it takes.
    pub slots: u32,
    /// Attempts that may fail.
    pub attempts_max: u32,
    /// The wait after the first failure.
    pub backoff_ms: i64,
    /// How often it was tried.
    pub n_attempts: u32,
    /// Attempts that failed or timed out.
    pub n_failures: u32,
    /// Attempts that were lost.
    pub n_losses: u32,
    /// Attempts that a worker would not have.
    pub n_refusals: u32,
    /// Attempts that were stopped to make room.
    pub n_evictions: u32,
    /// What its submitter asked for: higher is sooner.
    pub priority: i32,
    /// When it was submitted.
    pub created_ms: i64,
    /// When it became final.
    pub finished_ms: Option<i64>,
    /// What it must hold alone.
    pub resource: Option<String>,
    /// Where it must run; `None` means anywhere.
    pub pool: Option<String>,
    /// What it needs of a worker: of each key, any one of these values.
    pub needs: BTreeMap<String, Vec<String>>,
    /// Amounts that it takes.
    pub amounts: BTreeMap<String, u64>,
    /// What came of it: `17 2 w1`, the job, the attempt and the worker that did it; `None` if jobs
    /// do not say.
    pub result: Option<String>,
    /// What it asks for, in words of whoever reads the store; `None` if nobody compares.
    pub terms: Option<String>,
    /// What its submission was called by whoever made it, key or not; `None` if jobs do not say.
    pub label: Option<String>,
    /// Whether the store has forgotten it: if all is well, it succeeded and left nothing.
    pub is_forgotten: bool,
    /// Jobs that waited for it when it was forgotten.
    pub n_dependents: u32,
    /// Whether it was being called off when it was forgotten.
    pub was_cancelling: bool,
}

impl Job {
    /// Whether nothing more will happen to it.
    pub fn is_final(&self) -> bool {
        matches!(self.state.as_str(), "succeeded" | "failed" | "cancelled")
    }
}

/// An attempt as the store's file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub job: u64,
    /// Which attempt at it: its fencing token.
    pub number: u32,
    /// Who had it.
    pub worker: String,
    /// When it was given to the worker.
    pub claimed_ms: i64,
    /// When it ended; `None` if it has not.
    pub ended_ms: Option<i64>,
    /// When whoever wrote that down had heard of it: the wait for the next attempt begins there.
    pub heard_ms: Option<i64>,
    /// How it ended.
    pub ending: String,
    /// What was said about it.
    pub error: String,
}

/// Output of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The job.
    pub job: u64,
    /// Which attempt at it.
    pub attempt: u32,
    /// How much came before.
    pub position: u64,
    /// When it was written down, by the database's clock.
    pub at_ms: i64,
    /// What it says.
    pub text: String,
}

/// How far an attempt said it was: `17 2 w1 5`, as it says in its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The job.
    pub job: u64,
    /// Which attempt was under way when this was written down.
    pub attempt: u32,
    /// Who had that.
    pub worker: Option<String>,
    /// What it says.
    pub text: String,
}

/// A submission that the store remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Whose.
    pub tenant: String,
    /// The submitter's key.
    pub key: String,
    /// The jobs that answer it.
    pub ids: Vec<u64>,
}

/// What a client asked, and what it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Which client.
    pub client: u32,
    /// What it asked.
    pub op: Op,
    /// The key of a submission.
    pub key: String,
    /// When it asked.
    pub sent_ms: i64,
    /// When it was answered, or gave up waiting.
    pub at_ms: i64,
    /// What it was told.
    pub outcome: Outcome,
    /// The jobs of a submission, in its order; or the one that was called off.
    pub ids: Vec<u64>,
    /// Whether calling it off changed anything.
    pub changed: bool,
    /// What was asked of each job; one for all jobs of an array.
    pub asked: Vec<Asked>,
    /// In words: the state of a job that was called off, or what went wrong.
    pub note: String,
}

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Take in these jobs.
    Submit,
    /// Take in other jobs under a key that was used before.
    Conflict,
    /// Call off a job.
    Cancel,
}

/// What a client knows after it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is done.
    Ok,
    /// It is not done, and nothing is changed.
    Fail,
    /// Nobody knows.
    Unknown,
}

/// What was asked of one job, as far as the checker looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Whose it is.
    pub tenant: String,
    /// Jobs that it waits for.
    pub after: Vec<u64>,
    /// Places in the same submission that it waits for.
    pub after_indexes: Vec<usize>,
    /// Whether it runs even if one of those does not succeed.
    pub run_if_failed: bool,
    /// What it asks for, in the same words; `None` if nobody compares.
    #[serde(default)]
    pub terms: Option<String>,
    /// What the submission is called; empty if jobs do not say.
    #[serde(default)]
    pub label: String,
}

/// Something that a run of a job wrote down about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// `start`, `tick`, `line` (of output), `fail`, `stop`, `killed` or `end`.
    pub what: String,
    /// The job.
    pub job: u64,
    /// Which attempt at it.
    pub attempt: u32,
    /// Where it runs.
    pub worker: String,
    /// When, to the hundredth of a second.
    pub at_ms: i64,
}

/// Something that was done to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at_ms: i64,
    /// What.
    pub harm: Harm,
    /// To whom.
    pub who: String,
}

impl Fault {
    /// The scheduler, in a list of faults.
    pub const SCHEDULER: &'static str = "scheduler";

    /// Whether it was done to a worker.
    pub fn is_worker(&self) -> bool {
        self.who != Self::SCHEDULER
    }
}

/// What can be done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is killed.
    Kill,
    /// It is suspended.
    Stop,
    /// It goes on.
    Continue,
}

/// What may not be exceeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Slots that a tenant has at most.
    pub tenant_slots: BTreeMap<String, u32>,
    /// Jobs that a tenant runs at most.
    pub tenant_jobs: BTreeMap<String, u32>,
    /// Jobs of a type that run at most.
    pub type_jobs: BTreeMap<String, u32>,
    /// Slots that a worker has, by what the store gave it.
    pub worker_slots: BTreeMap<String, u32>,
    /// Tenants that may not start anything once they have used so much.
    pub budgets: BTreeSet<String>,
    /// Tenants that may have others stopped to make room for them.
    pub owed: BTreeSet<String>,
    /// How often a job may be stopped to make room.
    pub evictions_max: u32,
    /// How long it must have run before.
    pub evicted_after_ms: i64,
    /// Losses after which a job is parked.
    pub losses_max: u32,
}

/// How soon all is well once nothing is hurt any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calm {
    /// When nothing was hurt any more.
    pub healed_ms: i64,
    /// Workers that were not there all the time since then.
    pub away: BTreeSet<String>,
    /// When it was looked what is left.
    pub read_ms: i64,
    /// How long an attempt may be under way that no worker runs any more.
    pub orphan_ms: i64,
    /// The same for one that none ever ran.
    pub offer_ms: i64,
    /// How long a job may wait beside a slot that is free for it.
    pub wait_ms: i64,
}

/// What a worker says that it offers. What really runs there takes no more; where a scheduler may
/// give it something that does not know yet that it has gone to another one, it refuses what it has
/// no room for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Where it belongs.
    pub pool: String,
    /// Types of jobs that it does.
    pub types: BTreeSet<String>,
    /// The values that it has under each key.
    pub has: BTreeMap<String, BTreeSet<String>>,
    /// Its slots.
    pub slots: u32,
    /// Amounts that it has.
    pub amounts: BTreeMap<String, u64>,
}
