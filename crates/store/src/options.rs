//! What an operator may choose about a store.

use model::{Patience, Timestamp, maxima};

use crate::clock::{Clock, wall_clock};

/// What an operator may choose about a store.
#[derive(Clone)]
pub struct Options {
    /// Tells the time; `None` means as the store does by itself.
    pub clock: Option<Clock>,
    /// By how much this machine's clock is taken to be ahead of what it shows, where the store has
    /// a clock of its own: nothing may depend on it, and those who want to see that say so.
    pub skew_ms: i64,
    /// Bytes of output that are kept of one attempt.
    pub log_bytes_max: u64,
    /// Unfinished jobs, all tenants together.
    pub jobs_max: u64,
    /// Unfinished jobs of one tenant.
    pub tenant_jobs_max: u64,
    /// What to do about attempts that say nothing about their job.
    pub patience: Patience,
    /// Runs that are kept of one history: as many as predictions look at.
    pub runs_max: usize,
}

impl Options {
    /// What tells the time where the store has no clock of its own.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone().unwrap_or_else(wall_clock)
    }

    /// The time, by that clock.
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
