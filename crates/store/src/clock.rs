//! The store's clock: the only one that decides about leases and jobs.
//!
//! **Invariant:** it never goes back, neither within a process nor behind the time on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// A source of time. A store makes sure that its time does not go back.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A clock that reads the time of day once, and adds the elapsed time. So a change of the machine's
/// clock moves no lease.
#[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
pub fn wall_clock() -> Clock {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let base_ms = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    let start = Instant::now();
    Arc::new(move || {
        let passed_ms = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(base_ms.saturating_add(passed_ms))
    })
}

/// A start for measuring a duration. It gives no time of day.
#[expect(clippy::disallowed_methods, reason = "the one place where time is read")]
pub(crate) fn stopwatch() -> Instant {
    Instant::now()
}

/// A clock that starts at the time on disk, if that is later.
pub(crate) struct Steady {
    clock: Clock,
    /// Added to every reading, so that time continues from the latest time on disk.
    ahead_ms: i64,
    latest_ms: AtomicI64,
}

impl Steady {
    /// A clock that shows at least `latest`.
    pub(crate) fn new(clock: Clock, latest: Timestamp) -> Self {
        let Timestamp(now_ms) = clock();
        let ahead_ms = latest.0.saturating_sub(now_ms).max(0);
        Self { clock, ahead_ms, latest_ms: AtomicI64::new(latest.0) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let Timestamp(read_ms) = (self.clock)();
        let now_ms = read_ms.saturating_add(self.ahead_ms);
        Timestamp(self.latest_ms.fetch_max(now_ms, Ordering::SeqCst).max(now_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stands_still_and_then_goes_on() {
        let shown_ms = Arc::new(AtomicI64::new(100));
        let read_ms = Arc::clone(&shown_ms);
        let steady =
            Steady::new(Arc::new(move || Timestamp(read_ms.load(Ordering::SeqCst))), Timestamp(0));
        assert_eq!(steady.now(), Timestamp(100));
        shown_ms.store(40, Ordering::SeqCst);
        assert_eq!(steady.now(), Timestamp(100));
        shown_ms.store(101, Ordering::SeqCst);
        assert_eq!(steady.now(), Timestamp(101));
    }

    #[test]
    fn time_goes_on_from_the_latest_moment_on_disk() {
        let shown_ms = Arc::new(AtomicI64::new(100));
        let read_ms = Arc::clone(&shown_ms);
        let clock: Clock = Arc::new(move || Timestamp(read_ms.load(Ordering::SeqCst)));
        let steady = Steady::new(clock, Timestamp(5_000));
        assert_eq!(steady.now(), Timestamp(5_000));
        shown_ms.store(130, Ordering::SeqCst);
        assert_eq!(steady.now(), Timestamp(5_030));
    }

    #[test]
    fn the_wall_clock_is_past_the_year_2020() {
        assert!(wall_clock()() > Timestamp(1_577_836_800_000));
    }
}
