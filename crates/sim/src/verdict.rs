//! Whether a policy gave backlogged tenants what they were due.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::conditions::Conditions;
use crate::engine::{Replay, Scheduler, replay};
use crate::error::Error;
use crate::generate::Backlogged;
use crate::number::ratio;

/// A share is kept if it is so near to what is due.
pub const ERROR_MAX: f64 = 0.05;

/// What one tenant got of the slot-time that all tenants got together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Given {
    /// Its part by weight, from 0 to 1.
    pub due: f64,
    /// Its part as measured, from 0 to 1.
    pub given: f64,
}

impl Given {
    /// How far it is from its due.
    pub fn error(self) -> f64 {
        (self.given - self.due).abs()
    }
}

/// Whether backlogged tenants got what they were due.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// By tenant, in the order of the workload.
    pub given: Vec<Given>,
    /// The tenant that is farthest from its due: a place in `given`.
    pub worst: usize,
}

impl Verdict {
    /// Measures the attempts of a replay between the two moments of `case`.
    pub fn new(case: &Backlogged, replay: &Replay) -> Self {
        let mut areas = vec![0_i128; case.workload.tenants.len()];
        for (job, start) in replay.attempts() {
            let job = &case.workload.jobs[job];
            let length = start.end.min(case.until).since(start.at.max(case.from)).0.max(0);
            areas[job.tenant] += i128::from(length) * i128::from(job.slots);
        }
        let all: i128 = areas.iter().sum();
        let weight = |tenant: usize| i128::from(case.workload.tenants[tenant].weight);
        let weights: i128 = (0..areas.len()).map(weight).sum();
        let given = areas.iter().enumerate().map(|(tenant, area)| Given {
            due: ratio(weight(tenant), weights),
            given: ratio(*area, all),
        });
        let given: Vec<Given> = given.collect();
        let worst = (0..given.len())
            .max_by(|one, two| given[*one].error().total_cmp(&given[*two].error()))
            .unwrap_or(0);
        Self { given, worst }
    }

    /// The tenant that is farthest from its due.
    pub fn worst(&self) -> Given {
        self.given.get(self.worst).copied().unwrap_or_default()
    }

    /// Whether each tenant is within [`ERROR_MAX`] of its due.
    pub fn is_kept(&self) -> bool {
        self.worst().error() <= ERROR_MAX
    }
}

/// The sources of estimates that a policy is judged with. Shares must not depend on them.
pub const SOURCES: [&str; 3] = ["history", "none", "wrong:4"];

/// What became of several replays.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many.
    pub n_runs: usize,
    /// In how many each tenant was within [`ERROR_MAX`] of its due.
    pub n_kept: usize,
    /// The error of the worst tenant in the replay that half of the replays are better than.
    pub median: f64,
    /// The worst tenant of the worst replay.
    pub worst: Given,
    /// The seed of the worst replay.
    pub seed: u64,
}

impl Summary {
    /// Sums up verdicts with their seeds.
    pub fn new(verdicts: &[(u64, Verdict)]) -> Self {
        let mut worst: Vec<(Given, u64)> =
            verdicts.iter().map(|(seed, verdict)| (verdict.worst(), *seed)).collect();
        worst.sort_by(|(one, _), (two, _)| one.error().total_cmp(&two.error()));
        let median = worst.get(worst.len() / 2).map_or(0.0, |(given, _)| given.error());
        let (given, seed) = worst.last().copied().unwrap_or_default();
        let n_kept = verdicts.iter().filter(|(_, verdict)| verdict.is_kept()).count();
        Self { n_runs: verdicts.len(), n_kept, median, worst: given, seed }
    }

    /// The titles of its cells.
    pub const HEADER: [&str; 7] =
        ["replays", "kept", "median error", "worst error", "due", "given", "seed"];

    /// Its figures as text.
    pub fn cells(&self) -> Vec<String> {
        let figures = [self.median, self.worst.error(), self.worst.due, self.worst.given];
        let counts = [self.n_runs, self.n_kept].map(|count| count.to_string());
        let figures = figures.map(|figure| format!("{figure:.3}"));
        counts.into_iter().chain(figures).chain([self.seed.to_string()]).collect()
    }
}

/// One line for a replay: its slots, and what each tenant was due and given.
pub fn line(seed: u64, verdict: &Verdict) -> String {
    let case = Backlogged::new(seed);
    let warm = if case.is_warm { ", after a warm-up" } else { "" };
    let tenants = case.workload.tenants.iter().zip(&case.means_s).zip(&verdict.given);
    let tenants = tenants.map(|((tenant, mean_s), Given { due, given })| {
        let weight = tenant.weight;
        format!("weight {weight}, jobs of {mean_s:.1} s, due {due:.3}, given {given:.3}")
    });
    let tenants = tenants.collect::<Vec<_>>().join("; ");
    format!("seed {seed}, {} slots{warm}: {tenants}", case.fleet.slots())
}

/// Which replays are judged.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// How many.
    pub n_runs: u64,
    /// The seed of the first; those after it follow.
    pub seed: u64,
    /// How many replays run at once.
    pub n_threads: usize,
}

/// The verdict on each replay of `cases`, with its seed.
///
/// # Errors
/// If `scheduler` refuses a case or a replay cannot end.
pub fn judge<F>(cases: Cases, scheduler: F) -> Result<Vec<(u64, Verdict)>, Error>
where
    F: for<'a> Fn(&'a Backlogged) -> Result<Box<dyn Scheduler + 'a>, Error> + Sync,
{
    let next = AtomicU64::new(0);
    let verdicts = Mutex::new(Vec::new());
    let work = || {
        loop {
            let run = next.fetch_add(1, Ordering::SeqCst);
            if run >= cases.n_runs {
                return;
            }
            let seed = cases.seed.wrapping_add(run);
            let verdict = judge_one(seed, &scheduler);
            verdicts.lock().expect("no replay panics").push((run, seed, verdict));
        }
    };
    thread::scope(|scope| {
        for _ in 0..cases.n_threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut verdicts = verdicts.into_inner().expect("no replay panics");
    verdicts.sort_by_key(|(run, ..)| *run);
    verdicts.into_iter().map(|(_, seed, verdict)| Ok((seed, verdict?))).collect()
}

fn judge_one<F>(seed: u64, scheduler: &F) -> Result<Verdict, Error>
where
    F: for<'a> Fn(&'a Backlogged) -> Result<Box<dyn Scheduler + 'a>, Error>,
{
    let case = Backlogged::new(seed);
    let conditions = Conditions { until: Some(case.until), ..Conditions::default() };
    let mut scheduler = scheduler(&case)?;
    let replay = replay(&case.workload, &case.fleet, &mut *scheduler, &conditions, &mut |_| {})?;
    Ok(Verdict::new(&case, &replay))
}
