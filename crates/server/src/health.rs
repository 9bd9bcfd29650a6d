//! Whether the store does what it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use model::{Millis, Timestamp};

/// After a failure it takes so long without another to be well: more than there is between two
/// heartbeats that are written.
const WELL_AFTER: Millis = Millis::from_secs(5);

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
