//! What the owner of the world is told, and what the store answers it.

use crate::early::{Outcome, Taking, Written};
use crate::fleet::words::{Arrival, Heard, StreamId};
use crate::output::Told;
use crate::preempt::MakeRoom;
use crate::round::Claiming;
use crate::settings::Understood;
use crate::status::Question;
use model::{JobId, Record};
use store::{
    Cancelled, Claimed, End, Ended, Meeting, News, Reach, Refusal, Seen, Session, Setting, Start,
    Submitted, Usage,
};

/// What others tell the owner of the world.
pub(crate) enum Message {
    /// Jobs to be taken in, of which is known what will become of them.
    Submit(Box<Taking>),
    /// Jobs that wait now, new or changed.
    Waiting(Vec<Record>),
    /// Jobs that are final, or were forgotten.
    Gone(Vec<JobId>),
    /// Jobs that were called off while a worker has them.
    Cancelling(Vec<JobId>),
    /// Something was set.
    Set(Box<Understood>),
    /// A worker came.
    Hello(Box<Arrival>),
    /// A worker said something.
    Heard(StreamId, Vec<Heard>),
    /// A worker's stream ended.
    Parted(StreamId),
    /// Somebody wants to know something.
    Ask(Question),
    /// Another scheduler did something.
    News(News),
}

/// What the store answered.
pub(crate) enum Answer {
    /// What the world knew already.
    Submitted(Written, Outcome),
    Claimed(Vec<Claiming>, Result<Vec<Claimed>, store::Error>),
    Started(Vec<Start>, Result<Vec<bool>, store::Error>),
    /// Whether each report of progress was taken.
    Noted(Result<Vec<bool>, store::Error>),
    Logged(Vec<Told>, Result<Vec<bool>, store::Error>),
    Completed(Vec<End>, Result<Vec<Ended>, store::Error>),
    /// The session, and what the worker has of what others gave it.
    Joined(Box<Arrival>, Result<(Session, Vec<Record>), store::Error>),
    Renewed(Vec<(StreamId, u64)>, Result<Vec<bool>, store::Error>),
    Expired(Result<Vec<Record>, store::Error>),
    GivenUp(Vec<JobId>, Result<Vec<Cancelled>, store::Error>),
    Fetched(JobId, Result<Option<Box<Record>>, store::Error>),
    /// The job that room is to be made for.
    Preemptor(MakeRoom, Result<Option<Box<Record>>, store::Error>),
    Used(Result<Vec<Usage>, store::Error>),
    Forgotten(Result<usize, store::Error>),
    Left(Result<bool, store::Error>),
    /// A minute of the series.
    Minute(Result<(), store::Error>),
    /// Something that nobody waits for.
    Written(Result<(), store::Error>),
    Lead(String, Result<Option<store::Lead>, store::Error>),
    LetGo(String, Result<Option<store::Lead>, store::Error>),
    Lanes(Result<Vec<store::Lead>, store::Error>),
    Kept(String, Result<bool, store::Error>),
    TakenIn(String, String, Result<Result<Submitted, Refusal>, store::Error>),
    Looked(String, Box<Result<crate::detect::Looked, store::Error>>),
    Counted(String, Result<::detect::Ends, store::Error>),
    Published(crate::detect::Publication, Result<Result<String, &'static str>, store::Error>),
    LeadSchedules(Result<Option<store::Lead>, store::Error>),
    Recurred(Box<Result<crate::recur::Recurred, store::Error>>),
    /// An attempt that may be stale.
    Checked(JobId, Result<Option<Box<Record>>, store::Error>),
    RenewedAll(Result<(), store::Error>),
    Window(Reach, Result<Seen, store::Error>),
    Met(Result<Meeting, store::Error>),
    CalledOff(Result<Vec<JobId>, store::Error>),
    Unstarted(Result<Vec<Record>, store::Error>),
    Settings(Result<Vec<Setting>, store::Error>),
}

impl Answer {
    /// About how many jobs it is, where it may be about many.
    pub(crate) fn n_jobs(&self) -> usize {
        if let Self::Claimed(claims, _) = self {
            claims.len()
        } else if let Self::Completed(ends, _) = self {
            ends.len()
        } else if let Self::Window(_, Ok(seen)) = self {
            seen.own.len()
        } else if let Self::Submitted(_, Ok(Ok(submitted))) = self {
            submitted.jobs.len()
        } else {
            1
        }
    }
}
