//! Slot-time by tenant within a window, from the runs that the notes tell.
//!
//! Slot-time is in slot-milliseconds, and shares are in thousandths.

use std::collections::{BTreeMap, BTreeSet};

use crate::notes::Run;
use crate::scenario::Due;

/// The whole, in the unit of shares.
pub(crate) const WHOLE: i64 = 1_000;
/// How far a share may be off, apart from rounding.
const TOLERANCE: i64 = 50;

/// Moments in milliseconds since 1970. The last one is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// The share that a tenant was due in a window, and the share that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) tenant: String,
    pub(crate) due: i64,
    pub(crate) given: i64,
    /// How far `given` may be from `due`.
    pub(crate) allowed: i64,
}

impl Share {
    pub(crate) fn is_held(&self) -> bool {
        (self.given - self.due).abs() <= self.allowed
    }
}

/// A job that started although its tenant was ahead of its share and another was behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutOfTurn {
    pub(crate) job: u64,
    pub(crate) tenant: String,
    pub(crate) worker: String,
    /// Milliseconds since the window began.
    pub(crate) after_ms: i64,
    /// The tenant that was furthest behind, and the slot-time that it lacked then.
    pub(crate) behind: String,
    pub(crate) lacked_ms: i64,
}

/// The slot-time that each tenant used within the window.
pub(crate) fn used(runs: &[Run], window: Window) -> BTreeMap<String, i64> {
    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    for run in runs {
        let ms = run.end_ms.min(window.to_ms) - run.from_ms.max(window.from_ms);
        if ms > 0 {
            *used.entry(run.tenant.clone()).or_default() += ms * run.slots;
        }
    }
    used
}

/// The share of each tenant that is due some or was given some, by name.
pub(crate) fn shares(used: &BTreeMap<String, i64>, due: &Due) -> Vec<Share> {
    let total: i64 = used.values().sum();
    let tenants = used.keys().map(String::as_str).chain(due.parts.iter().map(|part| part.0));
    let tenants: BTreeSet<&str> = tenants.collect();
    let share = |tenant: &str| {
        let own = part(due, tenant);
        Share {
            tenant: tenant.to_owned(),
            due: own,
            given: used.get(tenant).copied().unwrap_or(0) * WHOLE / total.max(1),
            allowed: TOLERANCE + rounding(due, own),
        }
    };
    tenants.into_iter().map(share).collect()
}

/// The slot-time that each tenant with a due share lacks. Less than nothing if it is ahead.
pub(crate) fn lacks(used: &BTreeMap<String, i64>, due: &Due) -> BTreeMap<String, i64> {
    let total: i64 = used.values().sum();
    let lack =
        |tenant: &str| part(due, tenant) * total / WHOLE - used.get(tenant).copied().unwrap_or(0);
    let tenants = used.keys().map(String::as_str).chain(due.parts.iter().map(|part| part.0));
    tenants.map(|tenant| (tenant.to_owned(), lack(tenant))).collect()
}

/// The start that broke the share, and the start at which another tenant lacked most. Often it is
/// the same. The first is that at which a tenant lacked more than it may lack in the whole window.
pub(crate) fn out_of_turn(runs: &[Run], window: Window, due: &Due) -> Vec<OutOfTurn> {
    let used = used(runs, window);
    let total: i64 = used.values().sum();
    let allowed = |tenant: &str| (TOLERANCE + rounding(due, part(due, tenant))) * total / WHOLE;
    let starts = starts_out_of_turn(runs, window, due);
    let first = starts.iter().find(|start| start.lacked_ms > allowed(&start.behind));
    let worst = starts.iter().max_by_key(|start| start.lacked_ms);
    let mut found: Vec<OutOfTurn> = first.into_iter().chain(worst).cloned().collect();
    found.dedup();
    found
}

/// All starts out of turn within the window.
fn starts_out_of_turn(runs: &[Run], window: Window, due: &Due) -> Vec<OutOfTurn> {
    // A tenant fits a worker that it ever ran on. One that never ran anywhere may fit all.
    let homes: BTreeSet<(&str, &str)> =
        runs.iter().map(|run| (run.tenant.as_str(), run.worker.as_str())).collect();
    let fits = |tenant: &str, worker: &str| {
        homes.contains(&(tenant, worker)) || homes.iter().all(|home| home.0 != tenant)
    };
    let within = |run: &&Run| (window.from_ms..window.to_ms).contains(&run.start_ms);
    let starts = runs.iter().filter(within).filter_map(|run| {
        let so_far = Window { from_ms: window.from_ms, to_ms: run.start_ms };
        // Runs under way count up to this moment, and the run itself does not count.
        let lacks = lacks(&used(runs, so_far), due);
        let could_run = lacks.iter().filter(|(tenant, _)| fits(tenant, &run.worker));
        let (behind, lacked_ms) = could_run.max_by_key(|(_, ms)| **ms)?;
        let own_ms = lacks.get(&run.tenant).copied().unwrap_or(0);
        (*lacked_ms > 0 && own_ms < 0 && *behind != run.tenant).then(|| OutOfTurn {
            job: run.job,
            tenant: run.tenant.clone(),
            worker: run.worker.clone(),
            after_ms: run.start_ms - window.from_ms,
            behind: behind.clone(),
            lacked_ms: *lacked_ms,
        })
    });
    starts.collect()
}

/// The share that a tenant is due.
fn part(due: &Due, tenant: &str) -> i64 {
    let total: i64 = due.parts.iter().map(|part| part.1).sum();
    let own = due.parts.iter().find(|part| part.0 == tenant).map_or(0, |part| part.1);
    own * WHOLE / total.max(1)
}

/// How far whole jobs alone can put a share off.
///
/// Jobs are not divided. At worst all slots start and end together, so that slot-time is given in
/// blocks of one longest job on each slot, each block to one tenant. A window begins and ends
/// anywhere in a fair order of such blocks. A tenant that is due most blocks has at most one too
/// few of them, and a tenant that is due few has at most one too many. For a share `p` that is less
/// than `max(p, 1 - p)` blocks, and a window has `ms / longest_ms` blocks. A tenant that is due all
/// or nothing has no turn to wait for.
fn rounding(due: &Due, part: i64) -> i64 {
    if part == 0 || part == WHOLE {
        return 0;
    }
    due.longest_ms * part.max(WHOLE - part) / due.ms.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from_ms: 1_000, to_ms: 11_000 };

    fn due(parts: &[(&'static str, i64)]) -> Due {
        Due { ms: 10_000, longest_ms: 500, parts: parts.to_vec() }
    }

    fn run(tenant: &str, slots: i64, [from_ms, start_ms, end_ms]: [i64; 3]) -> Run {
        let (tenant, worker) = (tenant.to_owned(), "w1".to_owned());
        let job = start_ms.unsigned_abs();
        Run { tenant, job, worker, slots, from_ms, start_ms, end_ms }
    }

    /// Tenant `a` on `n_slots` slots and `b` on one, all the time.
    fn side_by_side(n_slots: i64) -> Vec<Run> {
        let blocks = (0..24).map(|block| block * 500);
        let both =
            |at: i64| [run("a", n_slots, [at, at, at + 500]), run("b", 1, [at, at + 20, at + 500])];
        blocks.flat_map(both).collect()
    }

    fn told(runs: &[Run], due: &Due) -> Vec<(String, i64, bool)> {
        let shares = shares(&used(runs, WINDOW), due);
        let tell = |share: Share| (share.tenant.clone(), share.given, share.is_held());
        shares.into_iter().map(tell).collect()
    }

    #[test]
    fn only_slot_time_within_window_counts() {
        let runs = [
            run("a", 1, [0, 0, 1_500]),
            run("a", 2, [10_900, 10_950, 12_000]),
            run("b", 1, [0, 0, 1_000]),
            run("b", 1, [11_000, 11_000, 11_500]),
        ];
        assert_eq!(used(&runs, WINDOW), BTreeMap::from([("a".to_owned(), 700)]));
    }

    #[test]
    fn share_that_is_due_is_held() {
        let expected = [("a".to_owned(), 750, true), ("b".to_owned(), 250, true)];
        assert_eq!(told(&side_by_side(3), &due(&[("a", 3), ("b", 1)])), expected);
    }

    #[test]
    fn wrong_due_is_not_held() {
        let told = told(&side_by_side(3), &due(&[("a", 1), ("b", 1)]));
        assert!(told.iter().all(|(_, _, is_held)| !is_held), "{told:?}");
    }

    #[test]
    fn tenant_that_was_given_nothing_is_not_held() {
        let alone: Vec<Run> = side_by_side(3).into_iter().filter(|run| run.tenant == "a").collect();
        let expected = [("a".to_owned(), 1_000, false), ("b".to_owned(), 0, false)];
        assert_eq!(told(&alone, &due(&[("a", 3), ("b", 1)])), expected);
    }

    #[test]
    fn tenant_that_is_due_nothing_may_not_take_more_than_tolerance() {
        let runs = side_by_side(9);
        let expected = [("a".to_owned(), 900, false), ("b".to_owned(), 100, false)];
        assert_eq!(told(&runs, &due(&[("a", 1)])), expected);
    }

    #[test]
    fn rounding_is_one_longest_job_in_window() {
        let due = due(&[("a", 3), ("b", 1)]);
        let rounding = [750, 250, 500, 0, WHOLE].map(|part| rounding(&due, part));
        assert_eq!(rounding, [37, 37, 25, 0, 0]);
    }

    #[test]
    fn tenants_lack_what_they_are_due_and_were_not_given() {
        let used = BTreeMap::from([("a".to_owned(), 900), ("c".to_owned(), 100)]);
        let expected = [("a", -150), ("b", 250), ("c", -100)];
        let expected = expected.map(|(tenant, ms)| (tenant.to_owned(), ms));
        assert_eq!(lacks(&used, &due(&[("a", 3), ("b", 1)])), BTreeMap::from(expected));
    }

    #[test]
    fn start_that_broke_share_and_worst_start_are_named() {
        let blocks = (2..10).map(|block| block * 1_000);
        let runs: Vec<Run> = blocks.map(|at| run("a", 1, [at, at, at + 1_000])).collect();
        let found = out_of_turn(&runs, WINDOW, &due(&[("a", 1), ("b", 1)]));
        let expected = |after_ms: i64, lacked_ms| OutOfTurn {
            job: (WINDOW.from_ms + after_ms).unsigned_abs(),
            tenant: "a".to_owned(),
            worker: "w1".to_owned(),
            after_ms,
            behind: "b".to_owned(),
            lacked_ms,
        };
        // Of 8 s of slot-time in all, 0.6 s may be lacking.
        assert_eq!(found, [expected(3_000, 1_000), expected(8_000, 3_500)]);
    }

    #[test]
    fn start_on_worker_that_fits_no_tenant_behind_is_in_turn() {
        let mut runs: Vec<Run> = side_by_side(3);
        runs.iter_mut()
            .filter(|run| run.tenant == "a")
            .for_each(|run| run.worker = "w2".to_owned());
        assert_eq!(out_of_turn(&runs, WINDOW, &due(&[("a", 1), ("b", 1)])), []);
    }

    #[test]
    fn fair_order_has_no_start_out_of_turn() {
        let runs = [run("a", 1, [1_000, 1_000, 2_000]), run("b", 1, [2_000, 2_000, 3_000])];
        assert_eq!(out_of_turn(&runs, WINDOW, &due(&[("a", 1), ("b", 1)])), []);
    }
}
