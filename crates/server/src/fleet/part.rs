//! Workers go: they say so, their stream ends, or they are not heard any more.

use futures_util::FutureExt as _;
use model::{Ending, Event, Millis, Timestamp, WorkerId};

use super::words::StreamId;
use crate::scheduler::{Answer, Scheduler};

impl Scheduler {
    /// A worker's stream ended. It may come back: its attempts are its own until the lease ends.
    pub(crate) fn part(&mut self, stream: StreamId) {
        self.joining.remove(&stream);
        self.outgoing.output.forget(stream);
        if let Some(worker) = self.fleet.rise(stream) {
            tracing::info!(%worker, "a worker's stream ended");
            self.beat_in_world(&worker, self.store.now());
            self.detection.is_dirty = true;
        }
    }

    /// A worker goes for good: nothing is waited for.
    pub(super) fn goodbye(&mut self, worker: &WorkerId) {
        let Some(seat) = self.fleet.seats.get(worker) else { return };
        let session = seat.session.clone();
        for job in self.jobs.of(worker) {
            self.end_silently(&job, Ending::Refused, "the worker left");
        }
        self.gone(worker);
        self.call(|store| async move { Answer::Left(store.leave(session).await) }.boxed());
    }

    fn gone(&mut self, worker: &WorkerId) {
        if self.is_shared() {
            // It may have gone to another scheduler with all that it has. What it lost is found by
            // its lease, and what never came to it because nobody says that it runs.
            for job in self.jobs.of(worker) {
                let live = self.jobs.live(&job).filter(|live| !live.is_ending);
                if let Some(number) = live.map(|live| live.number) {
                    self.drop_live(&job, number);
                }
            }
        }
        self.fleet.leave(worker);
        self.inventories.left(worker);
        self.world.apply(Event::Left(worker.clone()));
        self.detection.is_dirty = true;
    }

    /// Workers that were not heard for two heartbeats get no more work; those that were not heard
    /// for a lease are gone.
    pub(crate) fn silent_workers(&mut self, now: Timestamp) {
        let late = self.late_after();
        let workers: Vec<WorkerId> = self.fleet.seats.keys().cloned().collect();
        for worker in workers {
            let Some(seat) = self.fleet.seats.get_mut(&worker) else { continue };
            let silence = now.since(seat.heard);
            if silence > self.config.lease {
                tracing::warn!(%worker, "a worker gave no sign of life");
                self.gone(&worker);
            } else if silence > late && seat.is_well {
                seat.is_well = false;
                self.detection.is_dirty = true;
                self.beat_in_world(&worker, now);
            }
        }
    }

    /// A heartbeat may be late by so much.
    pub(super) fn late_after(&self) -> Millis {
        Millis(self.config.heartbeat.0.saturating_mul(5) / 2)
    }
}
