//! The connected workers, and those that may come back.

pub(crate) mod words;
mod join;
mod hear;
mod part;
pub(crate) mod inventory;

use std::collections::{BTreeMap, VecDeque};

use model::worker::POOL_DEFAULT;
use model::{Event, Heartbeat, Name, Timestamp, Worker, WorkerId};
use proto::v1;
use store::Session;

use crate::scheduler::Scheduler;
use crate::settings::Closed;
use words::{Outbox, StreamId};

/// A worker that is here, or was a moment ago.
#[derive(Debug)]
pub(crate) struct Seat {
    /// `None` after its stream ended; it may come back.
    pub(crate) stream: Option<StreamId>,
    pub(crate) session: Session,
    pub(crate) outbox: Option<Outbox>,
    /// As it said in its hello, and its newest metrics.
    pub(crate) said: Worker,
    /// Another after every restart of the worker.
    pub(crate) instance: String,
    pub(crate) software: String,
    /// Hints of its last successful jobs, the newest last.
    pub(crate) learned: VecDeque<Name>,
    /// It says itself that it takes no more work.
    pub(crate) is_draining: bool,
    /// It says that it is well, and says so often enough.
    pub(crate) is_well: bool,
    /// Slots that others than us use.
    pub(crate) foreign_slots: u32,
    /// Slots that attempts use which are no longer its own and have not ended yet.
    pub(crate) slots_held: u32,
    /// Types that it looks for, and how often at once.
    pub(crate) detects: BTreeMap<Name, u32>,
    /// It does jobs; otherwise it only looks for them, and is nobody to the world.
    pub(crate) runs_jobs: bool,
    /// Detections that run, and that may run at once.
    pub(crate) detections: (u32, u32),
    pub(crate) heard: Timestamp,
}

impl Seat {
    /// Whether it said anything about a type.
    pub(crate) fn names(&self, kind: &Name) -> bool {
        self.detects.contains_key(kind) || self.said.types.contains(kind)
    }

    /// The worker as the world is to see it. Its slots are its operator's word, whatever else runs
    /// on its machine: that shows in its metrics.
    pub(crate) fn worker(&self, closed: &Closed) -> Worker {
        let mut worker = self.said.clone();
        let is_closed = closed.workers.contains(&worker.id) || closed.pools.contains(&worker.pool);
        worker.draining = self.is_draining || is_closed;
        worker.healthy = self.is_well && self.stream.is_some();
        worker.hints.extend(self.learned.iter().cloned());
        worker.hints.sort();
        worker.hints.dedup();
        worker
    }
}

/// All workers.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) seats: BTreeMap<WorkerId, Seat>,
    by_stream: BTreeMap<StreamId, WorkerId>,
    /// What workers had learned before this scheduler started, until they are back.
    pub(crate) remembered: BTreeMap<WorkerId, VecDeque<Name>>,
}

impl Fleet {
    /// Gives a worker its seat. Whoever sat there before under the same name is sent away.
    pub(crate) fn sit(&mut self, stream: StreamId, seat: Seat) {
        let worker = seat.said.id.clone();
        self.by_stream.insert(stream, worker.clone());
        if let Some(old) = self.seats.insert(worker, seat) {
            old.stream.map(|stream| self.by_stream.remove(&stream));
        }
    }

    /// The worker's stream ended; its seat is kept. `None` if another stream has it already.
    pub(crate) fn rise(&mut self, stream: StreamId) -> Option<WorkerId> {
        let worker = self.by_stream.remove(&stream)?;
        let seat = self.seats.get_mut(&worker)?;
        seat.stream = None;
        seat.outbox = None;
        Some(worker)
    }

    /// The worker will not come back to this seat.
    pub(crate) fn leave(&mut self, worker: &WorkerId) {
        if let Some(seat) = self.seats.remove(worker) {
            seat.stream.map(|stream| self.by_stream.remove(&stream));
        }
    }

    pub(crate) fn worker_on(&self, stream: StreamId) -> Option<&WorkerId> {
        self.by_stream.get(&stream)
    }

    pub(crate) fn stream_of(&self, worker: &WorkerId) -> Option<StreamId> {
        self.seats.get(worker)?.stream
    }

    pub(crate) fn pool_of(&self, worker: &WorkerId) -> Name {
        let seat = self.seats.get(worker);
        seat.map_or_else(|| Name::new(POOL_DEFAULT), |seat| seat.said.pool.clone())
    }

    pub(crate) fn n_connected(&self) -> usize {
        self.by_stream.len()
    }

    /// Puts messages on a worker's stream; fails if it does not take them.
    pub(crate) fn deliver(
        &self,
        stream: StreamId,
        messages: Vec<v1::ServerMessage>,
    ) -> Result<(), ()> {
        let seat = self.by_stream.get(&stream).and_then(|worker| self.seats.get(worker));
        // Whoever is gone gets it from the store when it comes back.
        let Some(outbox) = seat.and_then(|seat| seat.outbox.as_ref()) else { return Ok(()) };
        outbox.try_send(Ok(v1::ServerBatch { messages })).map_err(|_| ())
    }

    /// Why a stream is about to end, if it still takes that.
    pub(crate) fn say_last(&self, stream: StreamId, status: tonic::Status) {
        let seat = self.by_stream.get(&stream).and_then(|worker| self.seats.get(worker));
        if let Some(outbox) = seat.and_then(|seat| seat.outbox.as_ref()) {
            let _ = outbox.try_send(Err(status));
        }
    }
}

impl Scheduler {
    /// What the operator closed or opened is seen by the world.
    pub(crate) fn refresh_workers(&mut self) {
        let workers: Vec<WorkerId> = self.fleet.seats.keys().cloned().collect();
        for worker in workers {
            self.beat_in_world(&worker, self.store.now());
        }
    }

    pub(super) fn seat_in_world(&mut self, worker: &WorkerId) {
        if let Some(seat) = self.fleet.seats.get(worker).filter(|seat| seat.runs_jobs) {
            self.world.apply(Event::Joined(Box::new(seat.worker(&self.closed))));
        }
    }

    pub(super) fn beat_in_world(&mut self, worker: &WorkerId, at: Timestamp) {
        if let Some(seat) = self.fleet.seats.get(worker).filter(|seat| seat.runs_jobs) {
            let mut seen = seat.worker(&self.closed);
            if seat.slots_held > 0 {
                let used = self.jobs.slots_of(worker).saturating_add(seat.slots_held);
                seen.slots_free = Some(seen.slots.saturating_sub(used));
            }
            self.world.apply(Event::Heartbeat(heartbeat(&seen, at)));
        }
    }
}

/// What the world hears of a heartbeat.
fn heartbeat(worker: &Worker, at: Timestamp) -> Heartbeat {
    Heartbeat {
        worker: worker.id.clone(),
        slots_free: worker.slots_free,
        healthy: worker.healthy,
        draining: worker.draining,
        hints: worker.hints.clone(),
        metrics: worker.metrics,
        at,
    }
}
