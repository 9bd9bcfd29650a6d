//! All persisted scheduler state, behind one trait with one method for each stage.
//!
//! ```text
//! submit ─► look ─► claim ─► start ─► progress, log ─► complete
//!    │                │ lost                 │ lease out: expire
//!    └ cancel, amend, revive, give_up        └► back to the queue
//! ```
//!
//! **Invariant:** an answer means durable. A crash loses nothing that the store answered.
//!
//! **Invariant:** every change of a job goes through a guard: the fence for claims, and the number
//! of the current attempt for reports of workers. A refused change has no effect.
//!
//! **Invariant:** a store makes no scheduling decision. It keeps records, and reports changes.

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
pub use postgres::{Postgres, Scratch};
pub use request::{
    Amend, Amended, Cancelled, Claim, Claimed, Filter, Idempotency, Limit, LogChunk, LogPage,
    NewJob, Note, NotePage, Old, Repeat, Report, Revived, Session, Spent, Start, Stream,
    Submission, Submitted,
};
pub use shared::{Meeting, News, Peer, Reach, Seen, Shared, Window};
pub use sqlite::{Backup, Sqlite, backup, check};
pub use transition::{claim as claim_record, submit as first_record};

/// The return value of a store's method: an answer, once it is durable.
///
/// The call begins with the first poll. If the future is dropped after that, the change may still
/// happen.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Persisted scheduler state. Methods are in the order of a job's life.
///
/// A list of requests gets a list of answers of the same length, in the same order. Requests in one
/// list may be about the same job: they take effect in order.
pub trait Store: Send + Sync + 'static {
    /// The time by the store's clock, which alone decides about leases and jobs.
    fn now(&self) -> Timestamp;

    /// Numbers for new jobs of a tenant that wait for no dependency. They start at this one, are
    /// never handed out again, and have room reserved. `None`: the store cannot number ahead, and
    /// numbers jobs as it receives them.
    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId>;

    /// Submits jobs: all of them, or none with the reason.
    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>>;

    /// Unfinished jobs with an id above `after`, by id, at most `max`.
    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>>;

    /// Claims jobs, each for one worker. `Won` carries the record after the claim, with one more
    /// attempt.
    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>>;

    /// Records that attempts started. `false`: not the current attempt.
    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>>;

    /// Records the progress of attempts. `false`: not the current attempt.
    fn progress(&self, reports: Vec<Report>) -> Reply<'_, Vec<bool>>;

    /// Keeps output. A chunk of an attempt that is not current, or that ends beyond the attempt's
    /// log limit, is dropped (`false`). Overlapping bytes are kept once.
    fn log(&self, chunks: Vec<LogChunk>) -> Reply<'_, Vec<bool>>;

    /// Ends attempts. In one transaction it stores the attempt, queues or finishes its job,
    /// releases or cancels dependents, and writes usage and history.
    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>>;

    /// Cancels jobs, and their dependents that do not run without them.
    fn cancel(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>>;

    /// Changes waiting jobs.
    fn amend(&self, jobs: Vec<JobId>, amend: Amend) -> Reply<'_, Vec<Amended>>;

    /// Revives jobs that failed or were cancelled, with all their tries.
    fn revive(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Revived>>;

    /// Fails queued jobs whose `start_before` has passed as too late, and settles their dependents.
    /// Other jobs stay as they are. Answers like `cancel`.
    fn give_up(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Cancelled>>;

    /// Opens a session of a worker, with a lease. Its generation is one higher than any before. The
    /// worker keeps its attempts.
    fn join(&self, worker: WorkerId, lease: Millis) -> Reply<'_, Session>;

    /// Records heartbeats: the leases run from now. A session that is not the newest of its worker,
    /// or that left, changes nothing (`false`).
    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>>;

    /// Gives a fresh lease to every worker with a live attempt, unless the worker left. After a
    /// time in which no heartbeat could be recorded, an expired lease proves nothing.
    fn renew_all(&self, lease: Millis) -> Reply<'_, ()>;

    /// Closes the session of a worker that leaves. Its lease is over.
    fn leave(&self, session: Session) -> Reply<'_, bool>;

    /// At most `max` claimed and running jobs of workers whose lease has run out. Changes nothing:
    /// the caller ends them as lost with `complete`, which rechecks the lease.
    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>>;

    /// One job, finished or not.
    fn job(&self, id: JobId) -> Reply<'_, Option<Record>>;

    /// The jobs that match a filter, a page at a time.
    fn jobs(&self, filter: Filter) -> Reply<'_, Vec<Record>>;

    /// The number of unfinished jobs of each type and state, by type.
    fn tally(&self) -> Reply<'_, Vec<Tally>>;

    /// The ended attempts of each of these jobs, by number.
    fn attempts(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Vec<Past>>>;

    /// The output of an attempt from an offset on, in the order of its arrival.
    fn logs(&self, page: LogPage) -> Reply<'_, Vec<LogChunk>>;

    /// Sets or removes settings, all at once.
    fn set(&self, settings: Vec<Setting>) -> Reply<'_, ()>;

    /// Sets or removes a setting if it still equals `was`, which is `None` for no setting. `false`:
    /// the setting has changed, and the call changes nothing.
    fn replace(&self, was: Option<String>, setting: Setting) -> Reply<'_, bool>;

    /// All settings, by kind and name.
    fn settings(&self) -> Reply<'_, Vec<Setting>>;

    /// The usage of each tenant since a moment, to the minute.
    fn usage(&self, since: Timestamp) -> Reply<'_, Vec<Usage>>;

    /// Runs that ended at or after a moment, newest first, at most `max`.
    fn runs(&self, since: Timestamp, max: usize) -> Reply<'_, Vec<Run>>;

    /// Takes or prolongs a lead for `length` from now, unless a different holder has it (`None`). A
    /// length of zero releases it. The answer has the last document that a holder kept.
    fn lead(&self, name: String, holder: String, length: Millis) -> Reply<'_, Option<Lead>>;

    /// Keeps a document with a lead for its next holder. `false`: the lead had a new holder since
    /// this token, and the call changes nothing.
    fn keep(&self, name: String, token: u64, document: String) -> Reply<'_, bool>;

    /// Leads with this prefix in their names, held or not, by name.
    fn leads(&self, prefix: String) -> Reply<'_, Vec<Lead>>;

    /// Stores notes. Of each topic and kind the newest are kept: as many as the newest note says.
    fn note(&self, notes: Vec<Note>) -> Reply<'_, ()>;

    /// Notes, newest first, a page at a time.
    fn notes(&self, page: NotePage) -> Reply<'_, Vec<Noted>>;

    /// Stores the counts of this scheduler in the minute of a moment. A second document of the same
    /// minute replaces the first.
    fn keep_minute(&self, at: Timestamp, document: String) -> Reply<'_, ()>;

    /// The documents of all schedulers, from the minute of `from` up to and without the minute of
    /// `before`, in the order of minute and scheduler. The caller bounds the span.
    fn minutes(&self, from: Timestamp, before: Timestamp) -> Reply<'_, Vec<Minute>>;

    /// At most `max` due notices, the longest due first. Each counts as one more try and is due
    /// again after its wait, with any outcome. So a crash loses no notice, and two callers get
    /// different ones.
    fn notices(&self, retry: Retry, max: usize) -> Reply<'_, Vec<Notice>>;

    /// Deletes delivered notices. An unknown id is no error.
    fn told(&self, notices: Vec<u64>) -> Reply<'_, ()>;

    /// Deletes data past its retention. Returns the number of deleted jobs.
    fn forget(&self, old: Old) -> Reply<'_, usize>;

    /// The methods for several schedulers. `None` if only one scheduler can use the store.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// Statistics of the commits since the store was opened. Zero if a store does not count.
    fn commits(&self) -> Commits {
        Commits::default()
    }
}
