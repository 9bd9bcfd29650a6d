//! Workers join, send heartbeats and leave.

use std::collections::BTreeSet;

use model::{Millis, Record, Timestamp, WorkerId};

use super::{Lease, World};
use crate::Session;

impl World {
    pub(super) fn join(&mut self, worker: WorkerId, until: Timestamp) -> Session {
        let before = self.sessions.get(&worker).map_or(self.generations, |lease| lease.generation);
        let generation = before + 1;
        self.sessions.insert(worker.clone(), Lease { generation, until, has_left: false });
        Session { worker, generation }
    }

    pub(super) fn renew(&mut self, session: &Session, until: Timestamp) -> bool {
        let Some(lease) = self.newest(session) else { return false };
        lease.until = until;
        true
    }

    pub(super) fn leave(&mut self, session: &Session, now: Timestamp) -> bool {
        let Some(lease) = self.newest(session) else { return false };
        lease.until = now;
        lease.has_left = true;
        true
    }

    /// Workers that left get no lease.
    pub(super) fn renew_all(&mut self, now: Timestamp, lease: Millis) {
        let busy = self.busy();
        for (worker, session) in &mut self.sessions {
            if busy.contains(worker) && !session.has_left {
                session.until = now + lease;
            }
        }
    }

    pub(super) fn expired(&self, now: Timestamp, max: usize) -> Vec<Record> {
        let records = self.unfinished.iter().map(|number| &self.jobs[number]);
        let is_expired = |record: &&Record| {
            let worker = record.current.as_ref().map(|current| &current.worker);
            let lease = worker.and_then(|worker| self.sessions.get(worker));
            lease.is_some_and(|lease| lease.until <= now)
        };
        records.filter(is_expired).take(max).cloned().collect()
    }

    /// Whether a worker's lease is over.
    pub(super) fn is_silent(&self, worker: &WorkerId, now: Timestamp) -> bool {
        self.sessions.get(worker).is_none_or(|lease| lease.until <= now)
    }

    /// Ends a worker's session with its lease.
    pub(super) fn close(&mut self, worker: &WorkerId) {
        if let Some(lease) = self.sessions.get_mut(worker) {
            lease.has_left = true;
        }
    }

    /// Workers with live attempts.
    pub(super) fn busy(&self) -> BTreeSet<WorkerId> {
        let records = self.unfinished.iter().map(|number| &self.jobs[number]);
        let current = records.filter_map(|record| record.current.as_ref());
        current.map(|current| current.worker.clone()).collect()
    }

    fn newest(&mut self, session: &Session) -> Option<&mut Lease> {
        let lease = self.sessions.get_mut(&session.worker)?;
        (lease.generation == session.generation && !lease.has_left).then_some(lease)
    }
}
