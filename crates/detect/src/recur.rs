//! The due times of recurring jobs.

use model::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

/// The limit of due times in one call.
const WALK_MAX: usize = 100_000;

/// The reaction to due times that passed while no scheduler ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatchUp {
    /// Skip all of them.
    None,
    /// Run the last of them.
    #[default]
    One,
    /// Run all of them, up to a limit: the latest.
    All,
}

/// The due times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The times that need a job, in order.
    pub moments: Vec<Timestamp>,
    /// The number of skipped times.
    pub n_skipped: usize,
    /// All times until here are handled.
    pub until: Timestamp,
}

/// The due times after `done` up to `now`. `next` returns the first due time after a time. A time
/// more than `grace` ago was missed.
pub fn missed(
    (done, now): (Timestamp, Timestamp),
    grace: Millis,
    (catch_up, n_max): (CatchUp, usize),
    next: impl Fn(Timestamp) -> Option<Timestamp>,
) -> Due {
    let keep_max = match catch_up {
        CatchUp::None | CatchUp::One => 1,
        CatchUp::All => n_max.max(1),
    };
    let mut due = Due { moments: Vec::new(), n_skipped: 0, until: done };
    for _ in 0..WALK_MAX {
        let Some(at) = next(due.until).filter(|at| *at <= now && *at > due.until) else { break };
        due.until = at;
        due.moments.push(at);
        if due.moments.len() > keep_max {
            due.moments.remove(0);
            due.n_skipped += 1;
        }
    }
    if catch_up == CatchUp::None {
        let n_before = due.moments.len();
        due.moments.retain(|at| now.since(*at) <= grace);
        due.n_skipped += n_before - due.moments.len();
    }
    due
}

/// The first time after `after` at a multiple of `length` from `anchor`.
pub fn every(anchor: Timestamp, length: Millis, after: Timestamp) -> Option<Timestamp> {
    if length.0 <= 0 {
        return None;
    }
    if after < anchor {
        return Some(anchor);
    }
    let n_passed = (after.0 - anchor.0).div_euclid(length.0);
    let at = length.0.checked_mul(n_passed + 1)?.checked_add(anchor.0)?;
    Some(Timestamp(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Millis = Millis(5);

    fn due(done: i64, now: i64, catch_up: CatchUp) -> (Vec<i64>, usize, i64) {
        let next = |after| every(Timestamp(0), Millis(10), after);
        let times = (Timestamp(done), Timestamp(now));
        let due = missed(times, GRACE, (catch_up, 3), next);
        (due.moments.iter().map(|at| at.0).collect(), due.n_skipped, due.until.0)
    }

    #[test]
    fn each_time_is_due_once_and_not_early() {
        assert_eq!(due(10, 19, CatchUp::All), (vec![], 0, 10));
        assert_eq!(due(10, 20, CatchUp::None), (vec![20], 0, 20));
        assert_eq!(due(20, 20, CatchUp::All), (vec![], 0, 20));
    }

    #[test]
    fn what_was_missed_is_caught_up_with_as_one_chooses() {
        assert_eq!(due(10, 67, CatchUp::None), (vec![], 5, 60));
        assert_eq!(due(10, 63, CatchUp::None), (vec![60], 4, 60));
        assert_eq!(due(10, 67, CatchUp::One), (vec![60], 4, 60));
        assert_eq!(due(10, 67, CatchUp::All), (vec![40, 50, 60], 2, 60));
    }

    #[test]
    fn intervals_stay_aligned_to_their_anchor() {
        let next = |after| every(Timestamp(7), Millis(10), Timestamp(after)).unwrap().0;
        assert_eq!([next(-50), next(7), next(16), next(17)], [7, 17, 17, 27]);
        assert_eq!(every(Timestamp(0), Millis(0), Timestamp(0)), None);
    }
}
