//! The next step of a job after an attempt: it is queued again, or final.

use crate::{Cause, Counts, Ending, Millis, Retry, State, Timestamp};

/// The next step of a job after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is queued again, not before this time.
    Queue {
        /// `None` means at once.
        backoff_until: Option<Timestamp>,
    },
    /// It is final.
    Finish {
        /// A terminal state.
        state: State,
        /// The cause, unless it succeeded.
        cause: Option<Cause>,
    },
}

/// The limits for attempts that say nothing about their job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Workers that may die while they run a job, before it is parked.
    pub losses_max: u32,
    /// The wait after the first refusal, which doubles with each further one. It prevents a busy
    /// loop if a scheduler and a worker disagree.
    pub refused_backoff: Millis,
}

/// The longest wait after a refusal.
const REFUSED_BACKOFF_MAX: Millis = Millis::from_secs(30);

impl Patience {
    /// Three workers, and a tenth of a second.
    pub const DEFAULT: Self = Self { losses_max: 3, refused_backoff: Millis(100) };
}

/// The next step of a job whose attempt had this ending. `counts` include the attempt. `draw` is a
/// random number that spreads retries.
pub fn next(
    ending: Ending,
    counts: &Counts,
    retry: &Retry,
    patience: &Patience,
    (now, draw): (Timestamp, u64),
) -> Next {
    let failed = |cause| Next::Finish { state: State::Failed, cause: Some(cause) };
    match ending {
        Ending::Succeeded => Next::Finish { state: State::Succeeded, cause: None },
        Ending::Cancelled => Next::Finish { state: State::Cancelled, cause: Some(Cause::Asked) },
        Ending::Permanent => failed(Cause::Permanent),
        Ending::Transient | Ending::Timeout if counts.failures >= retry.attempts_max => {
            failed(Cause::Exhausted)
        }
        Ending::Stale if counts.failures >= retry.attempts_max => failed(Cause::Stale),
        Ending::Transient | Ending::Timeout | Ending::Stale => {
            Next::Queue { backoff_until: Some(now + backoff(counts.failures, retry, draw)) }
        }
        Ending::Lost if counts.losses >= patience.losses_max => failed(Cause::Poison),
        Ending::Refused => {
            let wait = doubled(patience.refused_backoff, counts.refusals, REFUSED_BACKOFF_MAX);
            Next::Queue { backoff_until: Some(now + wait) }
        }
        Ending::Lost | Ending::Preempted => Next::Queue { backoff_until: None },
    }
}

/// `first · 2^(times − 1)`, at most `most`.
fn doubled(first: Millis, times: u32, most: Millis) -> Millis {
    let doublings = times.saturating_sub(1).min(32);
    Millis(first.0.saturating_mul(1 << doublings).min(most.0).max(0))
}

/// Between a half and all of `backoff · 2^(failures − 1)`, at most `backoff_max`. `draw` is a
/// random number that spreads retries of jobs that failed together.
pub fn backoff(failures: u32, retry: &Retry, draw: u64) -> Millis {
    let Millis(full) = doubled(retry.backoff, failures, retry.backoff_max);
    let half = full / 2;
    let spread = i64::try_from(draw % (half.unsigned_abs() + 1)).unwrap_or(0);
    Millis(full - spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn after(ending: Ending, counts: Counts) -> Next {
        next(ending, &counts, &Retry::DEFAULT, &Patience::DEFAULT, (NOW, 7))
    }

    #[test]
    fn backoff_doubles_up_to_its_maximum_and_stays_within_half_of_it() {
        let retry = Retry { attempts_max: 99, backoff: Millis(1_000), backoff_max: Millis(60_000) };
        for failures in 1..70 {
            let full = 1_000_i64.saturating_mul(1 << (failures - 1).min(20)).min(60_000);
            for draw in [0, 1, 499, 500, 501, u64::MAX] {
                let Millis(wait) = backoff(failures, &retry, draw);
                assert!(full / 2 <= wait && wait <= full, "{failures} {draw} {wait}");
            }
        }
    }

    #[test]
    fn tries_are_used_up_by_failures_and_timeouts_alone() {
        for ending in Ending::ALL {
            let charged = Counts::default().after(ending).failures == 1;
            let expected = matches!(
                ending,
                Ending::Transient | Ending::Permanent | Ending::Timeout | Ending::Stale
            );
            assert_eq!(charged, expected, "{ending:?}");
        }
        let last = Counts { failures: 3, ..Counts::default() };
        let exhausted = Next::Finish { state: State::Failed, cause: Some(Cause::Exhausted) };
        assert_eq!(after(Ending::Transient, last), exhausted);
        let stale = Next::Finish { state: State::Failed, cause: Some(Cause::Stale) };
        assert_eq!(after(Ending::Stale, last), stale);
        assert_eq!(after(Ending::Preempted, last), Next::Queue { backoff_until: None });
    }

    #[test]
    fn a_job_that_kills_workers_is_parked() {
        let parked = Next::Finish { state: State::Failed, cause: Some(Cause::Poison) };
        let counts = |losses| Counts { losses, ..Counts::default() };
        assert_eq!(after(Ending::Lost, counts(2)), Next::Queue { backoff_until: None });
        assert_eq!(after(Ending::Lost, counts(3)), parked);
    }
}
