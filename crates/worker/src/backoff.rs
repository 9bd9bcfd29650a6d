//! How long to wait before coming back to a server.

use std::time::Duration;

/// The first wait and the longest, before a server said otherwise.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// Waits that double, and that differ from worker to worker.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { first: FIRST, longest: LONGEST, next: FIRST }
    }

    /// As the server wants it; what is 0 stays as it is by default.
    pub(crate) fn set(&mut self, first_ms: u64, longest_ms: u64) {
        let or = |ms, default| if ms == 0 { default } else { Duration::from_millis(ms) };
        self.first = or(first_ms, FIRST);
        self.longest = or(longest_ms, LONGEST).max(self.first);
        self.next = self.next.clamp(self.first, self.longest);
    }

    /// All is well: the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Between half and all of the next wait. `draw` is any number.
    pub(crate) fn next(&mut self, draw: u64) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(self.longest);
        let half = u64::try_from(full.as_micros() / 2).unwrap_or(u64::MAX - 1);
        full.saturating_sub(Duration::from_micros(draw % (half + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_stay_within_half_of_it() {
        for draw in [0, 1, 77_777, u64::MAX] {
            let mut backoff = Backoff::new();
            backoff.set(100, 1_000);
            backoff.reset();
            for full in [100, 200, 400, 800, 1_000, 1_000] {
                let wait = backoff.next(draw);
                let full = Duration::from_millis(full);
                assert!(full / 2 <= wait && wait <= full, "{wait:?} of {full:?}");
            }
        }
    }

    #[test]
    fn all_is_well_starts_over() {
        let mut backoff = Backoff::new();
        for _ in 0..9 {
            backoff.next(0);
        }
        assert_eq!(backoff.next(0), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next(0), FIRST);
    }
}
