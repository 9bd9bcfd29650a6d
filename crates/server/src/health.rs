//! Whether the store does what it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use model::{Millis, Timestamp};

use crate::scheduler::Scheduler;

/// After a failure it takes so long without another to be well: more than there is between two
/// heartbeats that are written.
const WELL_AFTER: Millis = Millis::from_secs(5);

/// After the store failed, nothing is asked of it for so long.
const PAUSE: Millis = Millis(250);

/// Shared by those who ask the store and those who say how it is. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<AtomicI64>);

impl Health {
    pub(crate) fn failed(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn is_failing(&self, now: Timestamp) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        last > 0 && now < Timestamp(last) + WELL_AFTER
    }
}

impl Scheduler {
    /// The answer, or `None` after a failure was taken note of.
    pub(crate) fn ok<T>(&mut self, answer: Result<T, store::Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::error!(%error, "the store failed");
                self.counters.add("store_errors", 1);
                let now = self.store.now();
                self.health.failed(now);
                self.paused_until = Some(now + PAUSE);
                self.renew_later();
                if matches!(error, store::Error::Broken { .. }) {
                    self.fatal = Some(error);
                }
                None
            }
        }
    }

    /// The same of what is done beside the work: that it failed says nothing of the rest, for it
    /// may be about much more.
    pub(crate) fn ok_beside<T>(&mut self, answer: Result<T, store::Error>) -> Option<T> {
        match answer {
            Err(error) if !matches!(error, store::Error::Broken { .. }) => {
                tracing::warn!(%error, "the store failed at something that can wait");
                self.counters.add("store_errors", 1);
                None
            }
            answer => self.ok(answer),
        }
    }

    /// Whether nothing is asked of the store for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|until| until > self.store.now())
    }

    /// Nobody could renew: silence proves nothing until everybody had the time to.
    pub(crate) fn renew_later(&mut self) {
        self.leases_from = self.store.now() + self.config.lease;
        self.are_leases_old = true;
    }
}
