//! Time per decision as the queue grows.
//!
//! Every slot is busy and the queue is full. Then, again and again: an attempt ends, a job arrives,
//! the world decides. What is timed is all three: taking in both events and the decision.

use std::time::Duration;

use decide::World;
use model::{Action, Ended, Event, Fixed, Preset};
use serde_json::{Value, json};

use super::Options;
use super::machine::{Progress, resident, timed};
use super::workload::{Workload, has_constant_key};
use crate::print;

/// Decisions between two looks at the clock.
const BATCH: usize = 200;

/// One figure: a preset on a queue and a fleet.
pub(crate) struct Row {
    preset: Preset,
    n_jobs: usize,
    n_workers: usize,
    n_decisions: usize,
    took: Duration,
    bytes_per_job: usize,
}

impl Row {
    fn nanos(&self) -> f64 {
        self.took.as_secs_f64() * 1e9 / float(self.n_decisions)
    }

    fn per_second(&self) -> f64 {
        float(self.n_decisions) / self.took.as_secs_f64()
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "preset": self.preset.name(),
            "jobs": self.n_jobs,
            "workers": self.n_workers,
            "decisions": self.n_decisions,
            "ns_per_decision": self.nanos().round(),
            "decisions_per_s": self.per_second().round(),
            "bytes_per_job": self.bytes_per_job,
        })
    }
}

/// Measures every preset on every queue and fleet.
pub(crate) fn measure(options: &Options, presets: &[Preset], progress: &Progress) -> Vec<Row> {
    let mut rows = Vec::new();
    for preset in presets {
        for n_workers in &options.workers {
            for n_jobs in &options.jobs {
                progress.say(format!("{}: {n_jobs} jobs, {n_workers} workers", preset.name()));
                rows.push(measure_one(*preset, *n_jobs, *n_workers, options.seconds));
            }
        }
    }
    rows
}

fn measure_one(preset: Preset, n_jobs: usize, n_workers: usize, seconds: f64) -> Row {
    let mut workload = Workload::new();
    let mut world = World::new(preset.policy(), 0);
    Workload::tenants().for_each(|event| world.apply(event));
    for at in 0..n_workers {
        world.apply(Event::Joined(Box::new(workload.worker(at))));
    }
    let before = resident();
    let mut running = std::collections::VecDeque::new();
    for _ in 0..n_jobs + n_workers {
        world.apply(Event::Queued(Box::new(workload.job())));
    }
    let bytes_per_job = resident().saturating_sub(before) / (n_jobs + n_workers);
    running.extend(placed(&world.decide(workload.now())));
    let mut row =
        Row { preset, n_jobs, n_workers, n_decisions: 0, took: Duration::ZERO, bytes_per_job };
    while row.took.as_secs_f64() < seconds {
        let (count, took) = timed(|| churn(&mut world, &mut workload, &mut running));
        row.n_decisions += count;
        row.took += took;
    }
    row
}

/// Attempts end one by one, each makes room for a decision.
fn churn(
    world: &mut World,
    workload: &mut Workload,
    running: &mut std::collections::VecDeque<model::JobId>,
) -> usize {
    let mut n_decisions = 0;
    for _ in 0..BATCH {
        let Some(job) = running.pop_front() else { break };
        world.apply(Event::Ended(Ended { job, cost: Fixed::ONE, completed: true }));
        world.apply(Event::Queued(Box::new(workload.job())));
        running.extend(placed(&world.decide(workload.now())));
        n_decisions += 1;
    }
    n_decisions
}

fn placed(actions: &[Action]) -> Vec<model::JobId> {
    let placed = actions.iter().filter_map(|action| match action {
        Action::Place(placement) => Some(placement.job.clone()),
        Action::Preempt(_) | Action::Defer(_) => None,
    });
    placed.collect()
}

/// The figures, and how each preset grows.
pub(crate) fn tables(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let base = |n_jobs: usize| {
            let same = |other: &&Row| {
                other.preset == row.preset
                    && other.n_workers == row.n_workers
                    && other.n_jobs == n_jobs
                    && other.n_jobs < row.n_jobs
            };
            rows.iter()
                .find(same)
                .map_or_else(String::new, |other| format!("{:.2}", row.nanos() / other.nanos()))
        };
        let constant = if has_constant_key(row.preset) { "" } else { " *" };
        vec![
            format!("{}{constant}", row.preset.name()),
            row.n_workers.to_string(),
            row.n_jobs.to_string(),
            format!("{:.2}", row.nanos() / 1_000.0),
            format!("{:.0}", row.per_second()),
            row.bytes_per_job.to_string(),
            base(10_000),
            base(100_000),
        ]
    });
    let header =
        ["preset", "workers", "jobs", "µs", "decisions/s", "bytes/job", "× 10 k", "× 100 k"];
    let table = print::table(&header, cells.collect(), &[1, 2, 3, 4, 5, 6, 7]);
    format!(
        "One decision: an attempt ends, a job arrives, the world decides. One core.\n\
         × is the time against a queue of that length. * has no order that is constant in time.\n\n\
         {table}\n"
    )
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn float(count: usize) -> f64 {
    count as f64
}
