//! The additional methods of a store that several schedulers share.

use std::sync::Arc;

use model::{JobId, Record, Timestamp, WorkerId};
use tokio::sync::mpsc;

use crate::Reply;

/// A store that several schedulers share. Each scheduler decides for its own workers, over a
/// *window*: the first jobs of each queue.
pub trait Shared: Send + Sync {
    /// Writes the report of this scheduler about its running work. Returns the last report of each
    /// live scheduler by id, itself included. If `is_news`, the peers are notified at once.
    fn meet(&self, said: String, is_news: bool) -> Reply<'_, Meeting>;

    /// The first jobs of each queue in this scheduler's shard, and some of other shards.
    fn window(&self, ask: Window) -> Reply<'_, Seen>;

    /// The live attempts of a worker.
    fn held(&self, worker: WorkerId) -> Reply<'_, Vec<Record>>;

    /// At most `max` attempts that were claimed before this moment and have no stored start.
    fn unstarted(&self, before: Timestamp, max: usize) -> Reply<'_, Vec<Record>>;

    /// Jobs that were cancelled while one of these workers runs them.
    fn called_off(&self, workers: Vec<WorkerId>) -> Reply<'_, Vec<JobId>>;

    /// Notifies the peers that these jobs changed. If a notification gets lost, the peers learn
    /// that they missed one.
    fn say_changed(&self, jobs: Vec<JobId>);

    /// Notifies the peers that jobs changed, without their ids.
    fn say_missed(&self);

    /// The current records of these jobs, in any order. Deleted jobs are left out.
    fn these(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Record>>;

    /// Notifications of the peers. Some may get lost, so the caller must also poll. A scheduler
    /// calls this once.
    fn listen(&self) -> mpsc::Receiver<News>;
}

/// The schedulers that are alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The index of this scheduler among them.
    pub place: usize,
    /// All of them, by id.
    pub all: Vec<Peer>,
}

/// A scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The report of the scheduler about itself.
    pub said: String,
    /// The time of the report.
    pub at: Timestamp,
}

/// The jobs to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The shard: the index of this scheduler, and the number of schedulers. A scheduler claims the
    /// jobs of its shard first.
    pub stripe: (usize, usize),
    /// The limit of jobs.
    pub jobs_max: usize,
    /// The limit of jobs of other shards, for each queue.
    pub spare_max: usize,
    /// The queues to scan.
    pub reach: Reach,
}

/// The queues to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Queues with arrivals.
    News,
    /// The same, and the rest of queues that the last scan did not finish.
    More,
    /// All queues from their heads.
    All,
}

/// The first jobs of queues, each list in the order of the queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Jobs of this scheduler's shard.
    pub own: Vec<Arc<Record>>,
    /// Jobs of other shards that their schedulers should have claimed: they are further ahead in
    /// their queue than any own job.
    pub overdue: Vec<Arc<Record>>,
    /// Jobs of other shards, for idle slots.
    pub spare: Vec<Arc<Record>>,
    /// Whether the scan saw all waiting jobs of these queues from its start on.
    pub is_whole: bool,
    /// Whether some queue may have jobs that no scan has seen.
    pub is_more: bool,
    /// When the next delayed job enters its queue.
    pub next_due: Option<Timestamp>,
}

/// A change by a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Jobs arrived in some queue.
    Work,
    /// Listening begins now. Any earlier notification may have been missed.
    Listening,
    /// A job was cancelled while a worker runs it.
    CalledOff(JobId),
    /// Settings changed.
    Settings,
    /// A scheduler changed its report.
    Peers,
    /// A peer changed these jobs.
    Changed(Vec<JobId>),
    /// Other jobs may have changed too: their notifications were lost.
    Missed,
}
