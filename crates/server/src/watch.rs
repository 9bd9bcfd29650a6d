//! Who wants to hear what becomes of jobs.

use std::sync::Arc;

use model::{JobId, Name, Progress, Record, State, TenantId, Timestamp, WorkerId};
use tokio::sync::broadcast;

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

/// Tells all who listen, without waiting for any of them.
#[derive(Clone, Debug)]
pub(crate) struct Hub(broadcast::Sender<Arc<[Change]>>);

impl Hub {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(BEHIND_MAX).0)
    }

    pub(crate) fn tell(&self, changes: Vec<Change>) {
        if changes.is_empty() || !self.is_heard() {
            return;
        }
        // Nobody listening is fine.
        let _ = self.0.send(changes.into());
    }

    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<[Change]>> {
        self.0.subscribe()
    }
}
