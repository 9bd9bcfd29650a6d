//! Who wants to hear what becomes of jobs.

use std::sync::Arc;

use model::{JobId, Name, Progress, Record, State, TenantId, Timestamp, WorkerId};
use tokio::sync::{broadcast, watch};

/// Rounds of changes that a slow listener may be behind before it misses some.
const BEHIND_MAX: usize = 4_096;

/// Something about a job is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) job: JobId,
    pub(crate) tenant: TenantId,
    pub(crate) kind: Name,
    pub(crate) state: State,
    pub(crate) at: Timestamp,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) progress: Option<Progress>,
}

impl Change {
    /// The job as it is in `record`, now.
    pub(crate) fn of(record: &Record, at: Timestamp) -> Self {
        let current = record.current.as_ref();
        Self {
            job: record.id.clone(),
            tenant: record.spec.tenant.clone(),
            kind: record.spec.kind.clone(),
            state: record.state,
            at,
            worker: current.map(|current| current.worker.clone()),
            progress: current.and_then(|current| current.progress.clone()),
        }
    }
}

/// What those hear who listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tidings {
    /// This is new.
    Changes(Arc<[Change]>),
    /// Other schedulers changed jobs, and nobody here knows which.
    Missed,
}

/// Tells all who listen, without waiting for any of them.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    /// What this scheduler does.
    own: broadcast::Sender<Tidings>,
    /// What any of those does that share its store.
    all: broadcast::Sender<Tidings>,
    /// Whether somebody listens to all at another of them.
    others: watch::Sender<bool>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        let channel = || broadcast::channel(BEHIND_MAX).0;
        Self { own: channel(), all: channel(), others: watch::Sender::new(false) }
    }

    pub(crate) fn tell(&self, changes: Vec<Change>) {
        if changes.is_empty() || !self.is_heard() {
            return;
        }
        let changes: Arc<[Change]> = changes.into();
        // Nobody listening is fine.
        let _ = self.own.send(Tidings::Changes(Arc::clone(&changes)));
        let _ = self.all.send(Tidings::Changes(changes));
    }

    /// What another scheduler did.
    pub(crate) fn pass_on(&self, changes: Vec<Change>) {
        if !changes.is_empty() {
            let _ = self.all.send(Tidings::Changes(changes.into()));
        }
    }

    /// What another scheduler did got lost.
    pub(crate) fn miss(&self) {
        let _ = self.all.send(Tidings::Missed);
    }

    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.own.receiver_count() > 0 || self.is_watched()
    }

    /// Whether anybody here listens to all.
    pub(crate) fn is_watched(&self) -> bool {
        self.all.receiver_count() > 0
    }

    /// What this scheduler does, from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Tidings> {
        self.own.subscribe()
    }

    /// What any scheduler does, from now on.
    pub(crate) fn listen_to_all(&self) -> broadcast::Receiver<Tidings> {
        self.all.subscribe()
    }

    pub(crate) fn others_watch(&self, do_they: bool) {
        self.others.send_if_modified(|was| std::mem::replace(was, do_they) != do_they);
    }

    /// Whether somebody listens to all at another scheduler, as that changes.
    pub(crate) fn do_others_watch(&self) -> watch::Receiver<bool> {
        self.others.subscribe()
    }
}
