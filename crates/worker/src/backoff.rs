//! The wait before a reconnection.

use std::time::Duration;

/// The first and the longest wait, until a server sets others.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// Waits that double, with a random part for each worker.
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

    /// Sets the waits of the server. 0 means the default.
    pub(crate) fn set(&mut self, first_ms: u64, longest_ms: u64) {
        let or = |ms, default| if ms == 0 { default } else { Duration::from_millis(ms) };
        self.first = or(first_ms, FIRST);
        self.longest = or(longest_ms, LONGEST).max(self.first);
        self.next = self.next.clamp(self.first, self.longest);
    }

    /// After a success, the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Between a half and all of the next wait. `draw` is a random number.
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
    fn reset_starts_with_the_first_wait() {
        let mut backoff = Backoff::new();
        for _ in 0..9 {
            backoff.next(0);
        }
        assert_eq!(backoff.next(0), LONGEST);
        backoff.reset();
        assert_eq!(backoff.next(0), FIRST);
    }
}
