//! What a store that several schedulers share can do beside what every store can.

use std::sync::Arc;

use model::{JobId, Record, Timestamp, WorkerId};
use tokio::sync::mpsc;

use crate::Reply;

/// A store that several schedulers share. Each of them decides for its own workers, over a
/// *window*: the first jobs of each queue.
pub trait Shared: Send + Sync {
    /// This scheduler is here, and says so much of what it has under way. Answers what each of
    /// those said last that are here, itself among them, by id. If it is news, the others hear of
    /// it at once.
    fn meet(&self, said: String, is_news: bool) -> Reply<'_, Meeting>;

    /// The first jobs of each queue that are this scheduler's to claim, and some that are not.
    fn window(&self, ask: Window) -> Reply<'_, Seen>;

    /// What a worker has.
    fn held(&self, worker: WorkerId) -> Reply<'_, Vec<Record>>;

    /// Attempts that were claimed before this moment, and of which nobody has written down that
    /// they began.
    fn unstarted(&self, before: Timestamp, max: usize) -> Reply<'_, Vec<Record>>;

    /// Jobs that were called off while one of these workers has them.
    fn called_off(&self, workers: Vec<WorkerId>) -> Reply<'_, Vec<JobId>>;

    /// Lets the others hear that something about these jobs is new. If some of it gets lost, they
    /// hear that they missed something.
    fn say_changed(&self, jobs: Vec<JobId>);

    /// Lets the others hear that something about some jobs is new, and that nobody knows which.
    fn say_missed(&self);

    /// These jobs as they are now, in whatever order; what is forgotten is left out.
    fn these(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Record>>;

    /// What others do, as it happens. Some of it may get lost: whoever must not miss anything
    /// looks now and then. Meant to be called once.
    fn listen(&self) -> mpsc::Receiver<News>;
}

/// Who is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The place of this scheduler among them.
    pub place: usize,
    /// All of them, by id.
    pub all: Vec<Peer>,
}

/// A scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it said of itself.
    pub said: String,
    /// When.
    pub at: Timestamp,
}

/// Which jobs to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The place of this scheduler among so many: each job is one's to claim before the others'.
    pub stripe: (usize, usize),
    /// Jobs at most.
    pub jobs_max: usize,
    /// Jobs of others, of each queue, at most.
    pub spare_max: usize,
    /// Which queues.
    pub reach: Reach,
}

/// Which queues to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of which there was news.
    News,
    /// The same, and those that had more than could be looked at: they are looked at further on.
    More,
    /// All of them, from the beginning.
    All,
}

/// The first jobs of queues, each list in the order of the queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Those that are this scheduler's to claim.
    pub own: Vec<Arc<Record>>,
    /// Those that are others', and that the others should have claimed: they are further ahead in
    /// their queue than any of its own.
    pub overdue: Vec<Arc<Record>>,
    /// Others', for whoever has nothing else to do.
    pub spare: Vec<Arc<Record>>,
    /// Whether nothing else waits in these queues behind where the look began.
    pub is_whole: bool,
    /// Whether there may be more in some queue than was ever seen.
    pub is_more: bool,
    /// When the next job that waits for a moment will stand in a queue.
    pub next_due: Option<Timestamp>,
}

/// What others did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// There is work in some queue.
    Work,
    /// Whoever listens hears from now on: of what was said before, anything may have been missed.
    Listening,
    /// A job was called off while a worker has it.
    CalledOff(JobId),
    /// Somebody changed settings.
    Settings,
    /// A scheduler says something else of itself.
    Peers,
    /// Another one says that something about these jobs is new.
    Changed(Vec<JobId>),
    /// Something about other jobs may be new too: what was said of them was not heard.
    Missed,
}
