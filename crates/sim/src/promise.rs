//! How long a job waits at most, and whether that was kept.
//!
//! `balanced` promises each job a start within twice the longest patience of its fleet while it
//! waits, and the time that its slots need for what goes before it then: what runs, older jobs, and
//! the first jobs of tenants that have nothing. For each older wide job, and for itself if it is
//! one, a worker may have to be emptied: that takes the longest run. Limits, failures and several
//! schedulers aside: they keep jobs waiting that patience cannot help.

use std::collections::BTreeMap;

use model::{Millis, Timestamp};

use crate::engine::{Replay, Start};
use crate::fleet::Fleet;
use crate::workload::Workload;

/// A promise and how often it was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No job waits longer than this.
    pub bound: Millis,
    /// How many did; of those that had a bound of their own, how many waited longer than that.
    pub n_violations: usize,
}

impl Promise {
    /// How a bound for all jobs was kept in a replay.
    pub fn new(workload: &Workload, replay: &Replay, bound: Millis) -> Self {
        let jobs = workload.jobs.iter().zip(&replay.starts);
        let late = jobs.filter(|(job, start)| start.at.since(job.arrival) > bound);
        Self { bound, n_violations: late.count() }
    }

    /// How the bounds that the policy states were kept, and the longest of them; `None` if it
    /// states none.
    pub fn stated(workload: &Workload, fleet: &Fleet, replay: &Replay) -> Option<Self> {
        let told = Told::new(&replay.patience)?;
        let mut by_start: Vec<usize> = (0..workload.jobs.len()).collect();
        by_start.sort_by_key(|ix| replay.starts[*ix].at);
        let longest = replay.starts.iter().map(length).max().unwrap_or(Millis::ZERO);
        let run = |ix: &usize| {
            let Start { at, end, .. } = replay.starts[*ix];
            (workload.jobs[*ix].tenant, at, end)
        };
        let mut are_alone = vec![false; by_start.len()];
        let runs: Vec<Run> = by_start.iter().map(run).collect();
        for (ix, is_alone) in by_start.iter().zip(self::are_alone(&runs)) {
            are_alone[*ix] = is_alone;
        }
        let scene = Scene { workload, fleet, replay, by_start, are_alone, longest };
        let mut promise = Self { bound: Millis::ZERO, n_violations: 0 };
        for (ix, job) in workload.jobs.iter().enumerate() {
            let start = replay.starts[ix].at;
            let Millis(patience) = told.longest(job.arrival, start);
            let mut bound = Millis(patience.saturating_mul(2));
            let wait = start.since(job.arrival);
            if wait > bound {
                bound.0 = bound.0.saturating_add(scene.ahead(ix, job.arrival + bound).0);
            }
            promise.bound = promise.bound.max(bound);
            promise.n_violations += usize::from(wait > bound);
        }
        Some(promise)
    }
}

/// What was told about patience, for spans of time of any length.
struct Told<'a> {
    steps: &'a [(Timestamp, Millis)],
    /// The longest of two, four, eight … steps, from each on.
    longest: Vec<Vec<Millis>>,
}

impl<'a> Told<'a> {
    fn new(steps: &'a [(Timestamp, Millis)]) -> Option<Self> {
        let mut longest: Vec<Vec<Millis>> = vec![steps.iter().map(|(_, told)| *told).collect()];
        let mut n_steps = 1;
        while let Some(last) = longest.last()
            && last.len() > n_steps
        {
            let pairs = last.iter().zip(&last[n_steps..]);
            let next = pairs.map(|(one, two)| *one.max(two)).collect();
            longest.push(next);
            n_steps *= 2;
        }
        (!steps.is_empty()).then_some(Self { steps, longest })
    }

    /// The longest patience between two moments.
    fn longest(&self, from: Timestamp, to: Timestamp) -> Millis {
        let until = |moment: Timestamp| self.steps.partition_point(|(at, _)| *at <= moment);
        let (first, end) = (until(from).saturating_sub(1), until(to).max(1));
        let level = usize::try_from((end - first).ilog2()).unwrap_or(0);
        let longest = &self.longest[level];
        longest[first].max(longest[end - (1 << level)])
    }
}

/// A replay and what it was of.
struct Scene<'a> {
    workload: &'a Workload,
    fleet: &'a Fleet,
    replay: &'a Replay,
    /// Jobs in the order in which they started.
    by_start: Vec<usize>,
    /// Whether nothing else of its tenant ran when a job started.
    are_alone: Vec<bool>,
    /// The longest run.
    longest: Millis,
}

impl Scene<'_> {
    /// How long the slots of a job need from `from` on for what goes before it.
    fn ahead(&self, ix: usize, from: Timestamp) -> Millis {
        let (job, start) = (&self.workload.jobs[ix], self.replay.starts[ix].at);
        let fit = &self.workload.fits[job.fit];
        let workers = &self.fleet.workers;
        let fits: Vec<bool> = workers.iter().map(|worker| self.fleet.fits(worker, fit)).collect();
        let own = workers.iter().zip(&fits).filter(|(_, fits)| **fits);
        let slots: i64 = own.map(|(worker, _)| i64::from(worker.slots)).sum();
        let (mut work, mut n_wide) = (0_i64, i64::from(job.slots > 1));
        for other in self.started_between(from - self.longest, start).filter(|own| *own != ix) {
            let (own, run) = (&self.workload.jobs[other], &self.replay.starts[other]);
            let is_older = (own.arrival, own.rank) < (job.arrival, job.rank);
            let goes_first = run.at <= from || is_older || self.are_alone[other];
            if goes_first && fits[run.worker] && run.end > from {
                work += run.end.since(run.at.max(from)).0.saturating_mul(i64::from(own.slots));
                n_wide += i64::from(own.slots > 1 && run.at > from);
            }
        }
        Millis(work / slots.max(1) + n_wide.saturating_mul(self.longest.0))
    }

    fn started_between(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = usize> {
        let until = |moment: Timestamp| {
            self.by_start.partition_point(|ix| self.replay.starts[*ix].at <= moment)
        };
        self.by_start[until(from - Millis(1))..until(to)].iter().copied()
    }
}

/// A run of a tenant, from and to a moment.
type Run = (usize, Timestamp, Timestamp);

/// Whether nothing else of its tenant ran when each of these began, which are in that order: of
/// those that began until then, the last end but its own is not later.
fn are_alone(runs: &[Run]) -> Vec<bool> {
    let mut are_alone = Vec::with_capacity(runs.len());
    // Of each tenant, the last end so far and the last but that.
    let mut last: BTreeMap<usize, [Timestamp; 2]> = BTreeMap::new();
    for together in runs.chunk_by(|(_, one, _), (_, two, _)| one == two) {
        for (tenant, at, end) in together {
            let ends = last.entry(*tenant).or_insert([*at; 2]);
            *ends = [ends[0].max(*end), ends[1].max(ends[0].min(*end))];
        }
        are_alone.extend(together.iter().map(|(tenant, at, end)| {
            let [latest, before] = last[tenant];
            *at >= if *end == latest { before } else { latest }
        }));
    }
    are_alone
}

fn length(start: &Start) -> Millis {
    start.end.since(start.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_patience_is_found_for_every_span_of_time() {
        let steps: Vec<(Timestamp, Millis)> = [3, 1, 4, 1, 5, 9, 2, 6]
            .into_iter()
            .zip(0..)
            .map(|(told, at)| (Timestamp(10 * at), Millis(told)))
            .collect();
        let told = Told::new(&steps).expect("there are some");
        for from in 0..90 {
            for to in from..90 {
                let within = |ix: usize| {
                    let ends = steps.get(ix + 1).map_or(i64::MAX, |(at, _)| at.0);
                    steps[ix].0.0 <= to && from < ends
                };
                let all = (0..steps.len()).filter(|ix| within(*ix)).map(|ix| steps[ix].1);
                let found = told.longest(Timestamp(from), Timestamp(to));
                assert_eq!(Some(found), all.max(), "{from}..{to}");
            }
        }
    }

    #[test]
    fn who_ran_alone_is_found_as_by_looking_at_all() {
        // Any numbers: a third of all pairs meet.
        let mut draw = 7_u64;
        let mut next = |below: u64| {
            draw = draw
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((draw >> 33) % below).unwrap_or(0)
        };
        let mut runs: Vec<Run> = Vec::new();
        for _ in 0..500 {
            let (tenant, at, length) = (next(9), next(300), next(12));
            runs.push((usize::try_from(tenant).unwrap(), Timestamp(at), Timestamp(at + length)));
        }
        runs.sort_by_key(|(_, at, _)| *at);
        let alone = |ix: usize| {
            let (tenant, at, _) = runs[ix];
            let meets = |(own, from, to): &Run| *own == tenant && *from <= at && *to > at;
            !runs.iter().enumerate().any(|(other, run)| other != ix && meets(run))
        };
        let expected: Vec<bool> = (0..runs.len()).map(alone).collect();
        assert!(expected.iter().any(|is| *is) && !expected.iter().all(|is| *is));
        assert_eq!(are_alone(&runs), expected);
    }
}
