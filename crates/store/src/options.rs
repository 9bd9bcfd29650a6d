//! The settings of a store.

use model::{Patience, Timestamp, maxima};

use crate::clock::{Clock, wall_clock};

/// The settings of a store.
#[derive(Clone)]
pub struct Options {
    /// The clock. `None` means the default of the store.
    pub clock: Option<Clock>,
    /// Milliseconds by which a test moves this machine's clock ahead, where the store has a clock
    /// of its own. Nothing may depend on this machine's clock there.
    pub skew_ms: i64,
    /// The limit of stored output of one attempt, in bytes.
    pub log_bytes_max: u64,
    /// The limit of unfinished jobs of all tenants together.
    pub jobs_max: u64,
    /// The limit of unfinished jobs of one tenant.
    pub tenant_jobs_max: u64,
    /// The limits for lost and for refused attempts.
    pub patience: Patience,
    /// The limit of stored runs of one history, which is the number that predictions read.
    pub runs_max: usize,
}

impl Options {
    /// The clock of a store without a clock of its own.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone().unwrap_or_else(wall_clock)
    }

    /// The current time of that clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock()()
    }
}

impl Default for Options {
    #[expect(clippy::as_conversions, reason = "a length always fits")]
    fn default() -> Self {
        let jobs_max = maxima::JOBS_MAX as u64;
        Self {
            clock: None,
            skew_ms: 0,
            log_bytes_max: 1 << 20,
            jobs_max,
            tenant_jobs_max: jobs_max,
            patience: Patience::DEFAULT,
            runs_max: 200,
        }
    }
}
