//! The memory: what must outlive a process, behind one trait with one method a stage.
//!
//! ```text
//! submit ─► look ─► claim ─► start ─► progress, log ─► complete
//!    │                │ lost                 │ lease out: expire
//!    └ cancel, amend, revive, give_up        └► back to the queue
//! ```
//!
//! **Invariant:** an answer means durable. Nothing that was answered is lost with the process.
//!
//! **Invariant:** every change of a job goes through a guard: its fence for claims, the number of
//! its current attempt for whatever a worker says. What the guard refuses changes nothing.
//!
//! **Invariant:** a store knows nothing of decisions. It keeps records, and says what changed.

mod error;
mod recent;
mod request;
mod end;
mod kept;
mod commits;
mod options;
mod clock;
mod number;
mod minute;
mod chunk;
mod checksum;
mod transition;
mod document;
mod plan;
mod sums;
mod agree;
mod memory;
mod sqlite;
mod shared;
mod postgres;
pub mod conformance;

use std::future::Future;
use std::pin::Pin;

use model::{JobId, Millis, Record, Retry, TenantId, Timestamp, WorkerId};

pub use clock::{Clock, wall_clock};
pub use commits::{Commits, Histogram};
pub use end::{End, Ended, Provided};
pub use error::{Error, Refusal};
pub use kept::{
    Checked, Lead, Minute, Noted, Notice, Past, Run, Setting, SettingKind, Tally, Usage,
};
pub use memory::Memory;
pub use options::Options;
pub use postgres::Postgres;
pub use request::{
    Amend, Amended, Cancelled, Claim, Claimed, Filter, Idempotency, Limit, LogChunk, LogPage,
    NewJob, Note, NotePage, Old, Repeat, Report, Revived, Session, Spent, Start, Stream,
    Submission, Submitted,
};
pub use shared::{Meeting, News, Peer, Reach, Seen, Shared, Window};
pub use sqlite::{Backup, Sqlite, backup, check};
pub use transition::{claim as claim_record, submit as first_record};

/// What a store's method returns: an answer, once it is durable.
///
/// It begins when it is first polled. If it is dropped after that, what was asked may be done all
/// the same.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// What must outlive a process. Methods are in the order in which a job meets them.
///
/// Lists of requests are answered by lists of the same length, in the same order. Requests in one
/// list may be about the same job; they take effect in order.
pub trait Store: Send + Sync + 'static {
    /// The time, by the store's clock: the only clock by which leases and jobs are judged.
    fn now(&self) -> Timestamp;

    /// Numbers for jobs of a tenant that are about to be submitted and wait for nothing: from this
    /// one on, nobody else gets them, whatever happens, and there is room for the jobs. `None`: not
    /// without asking; then they are numbered as they come in.
    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId>;

    /// Takes in jobs: all of them, or none and says why.
    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>>;

    /// Unfinished jobs with an id above `after`, by id, at most `max`.
    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>>;

    /// Takes jobs out of the queue, each for one worker. `Won` carries the record as it is now:
    /// claimed, its count of attempts one higher.
    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>>;

    /// Workers said that their attempts run. `false`: not the current attempt.
    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>>;

    /// Workers said how far their attempts are. `false`: not the current attempt.
    fn progress(&self, reports: Vec<Report>) -> Reply<'_, Vec<bool>>;

    /// Keeps output. What an attempt that is not current says, or a piece that ends beyond the
    /// limit of an attempt's log, is dropped (`false`). What overlaps with what was sent before is
    /// kept once.
    fn log(&self, chunks: Vec<LogChunk>) -> Reply<'_, Vec<bool>>;

    /// Attempts ended. In one step: the attempt goes to the past, its job waits again or is done
    /// with, dependents are released or cancelled, usage and history are written.
    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>>;

    /// Calls jobs off, and those that wait for them and do not run without them.
    fn cancel(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>>;

    /// Changes jobs that wait.
    fn amend(&self, jobs: Vec<JobId>, amend: Amend) -> Reply<'_, Vec<Amended>>;

    /// Takes up again jobs that failed or were cancelled, with all their tries.
    fn revive(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Revived>>;

    /// Queued jobs whose `start_before` has passed fail as too late, and those that wait for them
    /// follow. Others are left alone. Answers like `cancel`.
    fn give_up(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>>;

    /// A worker came. Its session's generation is one higher than any before it, and it has a
    /// lease from now on. Attempts that it has stay its own.
    fn join(&self, worker: WorkerId, lease: Millis) -> Reply<'_, Session>;

    /// Workers gave a sign of life: their leases run from now. A session that is not the newest of
    /// its worker, or that left, changes nothing (`false`).
    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>>;

    /// Every worker that has a live attempt gets a fresh lease, unless it said that it went: after
    /// a time in which nobody could renew, silence proves nothing.
    fn renew_all(&self, lease: Millis) -> Reply<'_, ()>;

    /// A worker went, and said so. Its lease is over.
    fn leave(&self, session: Session) -> Reply<'_, bool>;

    /// Claimed and running jobs of workers whose lease has run out, at most `max`. Changes
    /// nothing: whoever asks ends them as lost, by `complete`, unless they were heard meanwhile.
    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>>;

    /// One job, finished or not.
    fn job(&self, id: JobId) -> Reply<'_, Option<Record>>;

    /// Jobs that pass a filter, a page at a time.
    fn jobs(&self, filter: Filter) -> Reply<'_, Vec<Record>>;

    /// How many unfinished jobs there are of each type and state, by type.
    fn tally(&self) -> Reply<'_, Vec<Tally>>;

    /// The ended attempts of each of these jobs, by number.
    fn attempts(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Vec<Past>>>;

    /// Output of an attempt, from an offset on in the order in which it was kept.
    fn logs(&self, page: LogPage) -> Reply<'_, Vec<LogChunk>>;

    /// Sets or removes settings, all at once.
    fn set(&self, settings: Vec<Setting>) -> Reply<'_, ()>;

    /// Sets or removes a setting that still is what somebody saw; `was` is `None` if there was
    /// none. `false`: it is another by now, and nothing is changed.
    fn replace(&self, was: Option<String>, setting: Setting) -> Reply<'_, bool>;

    /// All settings, by kind and name.
    fn settings(&self) -> Reply<'_, Vec<Setting>>;

    /// What each tenant used since a moment, to the minute.
    fn usage(&self, since: Timestamp) -> Reply<'_, Vec<Usage>>;

    /// Runs that ended at or after a moment, newest first, at most `max`.
    fn runs(&self, since: Timestamp, max: usize) -> Reply<'_, Vec<Run>>;

    /// Takes a lead for so long from now, or prolongs it, unless another has it (`None`). A length
    /// of zero lets it go. What its last holder kept comes with it.
    fn lead(&self, name: String, holder: String, length: Millis) -> Reply<'_, Option<Lead>>;

    /// Keeps a document with a lead, for whoever has it next. `false`: another took the lead since
    /// this token was given, and nothing is changed.
    fn keep(&self, name: String, token: u64, document: String) -> Reply<'_, bool>;

    /// Leads whose names begin so, whoever has them and whoever had them last, by name.
    fn leads(&self, prefix: String) -> Reply<'_, Vec<Lead>>;

    /// Writes down what happened. Of a topic and kind the newest are kept, as many as the newest
    /// of them says.
    fn note(&self, notes: Vec<Note>) -> Reply<'_, ()>;

    /// What was written down, newest first, a page at a time.
    fn notes(&self, page: NotePage) -> Reply<'_, Vec<Noted>>;

    /// Stores the counts of this scheduler in the minute of a moment. A second document of the same
    /// minute replaces the first.
    fn keep_minute(&self, at: Timestamp, document: String) -> Reply<'_, ()>;

    /// The documents of all schedulers, from the minute of `from` up to and without the minute of
    /// `before`, in the order of minute and scheduler. The caller bounds the span.
    fn minutes(&self, from: Timestamp, before: Timestamp) -> Reply<'_, Vec<Minute>>;

    /// What is to be told and is due, the longest due first, at most `max`. Each counts as told
    /// once more and is due again after its wait, whatever becomes of this time: so whoever dies
    /// in the middle loses nothing, and two who ask get different ones.
    fn notices(&self, retry: Retry, max: usize) -> Reply<'_, Vec<Notice>>;

    /// These need not be told any more. One that is not there is no error.
    fn told(&self, notices: Vec<u64>) -> Reply<'_, ()>;

    /// Forgets what is old. Answers how many jobs are forgotten.
    fn forget(&self, old: Old) -> Reply<'_, usize>;

    /// What it can do if several schedulers share it; `None`: one has it to itself.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// What its commits were like since it was opened. A store that does not count has none.
    fn commits(&self) -> Commits {
        Commits::default()
    }
}
