//! Time per decision as the queue grows.
//!
//! Every slot is busy and the queue is full. Then, again and again: an attempt ends, a job arrives,
//! the world decides. What is timed is all three: taking in both events and the decision.

use std::collections::VecDeque;
use std::env;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use decide::World;
use model::{Action, Ended, Event, Fixed, JobId, Preset};
use serde_json::{Value, json};

use super::Options;
use super::machine::{Progress, resident, timed};
use super::workload::{Workload, has_constant_key};
use crate::print::{self, Failure};

/// Memory is told for queues from this length on.
const N_JOBS_WEIGHED: usize = 100_000;
/// Decisions between two looks at the clock.
const BATCH: usize = 200;

/// One figure: a preset on a queue and a fleet.
pub(crate) struct Row {
    preset: Preset,
    n_jobs: usize,
    n_workers: usize,
    n_decisions: usize,
    /// Time per decision in the median batch: other work on the machine slows only some batches.
    nanos: f64,
    bytes_per_job: usize,
}

impl Row {
    fn per_second(&self) -> f64 {
        1e9 / self.nanos
    }

    /// Bytes per waiting job, by the memory that the process holds; a short queue is lost in the
    /// pages that any process takes.
    fn bytes(&self) -> String {
        if self.n_jobs < N_JOBS_WEIGHED { String::new() } else { self.bytes_per_job.to_string() }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "preset": self.preset.name(),
            "jobs": self.n_jobs,
            "workers": self.n_workers,
            "decisions": self.n_decisions,
            "ns_per_decision": self.nanos.round(),
            "decisions_per_s": self.per_second().round(),
            "bytes_per_job": self.bytes_per_job,
        })
    }
}

/// Memory is weighed in pages, so in a process that keeps none for later and makes none huge: those
/// would count for the jobs.
const FRUGAL: [(&str, &str); 2] = [("MIMALLOC_ALLOW_THP", "0"), ("MIMALLOC_PURGE_DELAY", "0")];
/// For weighing, nothing has to be timed.
const SECONDS_WEIGHED: f64 = 0.001;

/// Measures every preset on every queue and fleet, each in a process of its own: memory that an
/// earlier figure left behind would hide what the next one takes.
pub(crate) fn measure(
    options: &Options,
    presets: &[Preset],
    progress: &Progress,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for preset in presets {
        for n_workers in &options.workers {
            for n_jobs in &options.jobs {
                progress.say(format!("{}: {n_jobs} jobs, {n_workers} workers", preset.name()));
                let timed = (options.seconds, &[][..]);
                let mut row = measure_apart(*preset, *n_jobs, *n_workers, timed)?;
                if *n_jobs >= N_JOBS_WEIGHED {
                    let weighed = (SECONDS_WEIGHED, &FRUGAL[..]);
                    let weighed = measure_apart(*preset, *n_jobs, *n_workers, weighed)?;
                    row.bytes_per_job = weighed.bytes_per_job;
                }
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

fn measure_apart(
    preset: Preset,
    n_jobs: usize,
    n_workers: usize,
    (seconds, memory): (f64, &[(&str, &str)]),
) -> Result<Row, Failure> {
    let binary = env::current_exe().context("find this binary")?;
    let output = Command::new(binary)
        .args(["bench", "decide", "--alone", "--presets", preset.name()])
        .args(["--jobs", &n_jobs.to_string(), "--workers", &n_workers.to_string()])
        .args(["--seconds", &seconds.to_string()])
        .envs(memory.iter().copied())
        .output()
        .context("run a benchmark in a process of its own")?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let figure =
        |name: &str| said[name].as_f64().with_context(|| format!("no {name} was measured"));
    let count = |name: &str| {
        let count = said[name].as_u64().and_then(|count| usize::try_from(count).ok());
        count.with_context(|| format!("no {name} was measured"))
    };
    Ok(Row {
        preset,
        n_jobs,
        n_workers,
        n_decisions: count("decisions")?,
        nanos: figure("ns_per_decision")?,
        bytes_per_job: count("bytes_per_job")?,
    })
}

/// Measures one preset on one queue and fleet, in this process.
pub(crate) fn measure_here(options: &Options, preset: Preset) -> Row {
    let first = |numbers: &[usize]| numbers.first().copied().unwrap_or(1);
    let (n_jobs, n_workers) = (first(&options.jobs), first(&options.workers));
    let mut workload = Workload::new(preset);
    let mut world = World::new(preset.policy(), 0);
    Workload::tenants().for_each(|event| world.apply(event));
    for at in 0..n_workers {
        world.apply(Event::Joined(Box::new(workload.worker(at))));
    }
    let before = resident();
    for _ in 0..n_jobs + n_workers {
        world.apply(Event::Queued(Box::new(workload.job())));
    }
    let mut running = VecDeque::from(placed(&world.decide(workload.now())));
    // Only now do they stand in their lines, and some of them run.
    let bytes_per_job = resident().saturating_sub(before) / (n_jobs + n_workers);
    let mut batches = Vec::new();
    let mut took = Duration::ZERO;
    while took.as_secs_f64() < options.seconds {
        let (count, batch) = timed(|| churn(&mut world, &mut workload, &mut running));
        took += batch;
        batches.push((batch, count));
    }
    let n_decisions = batches.iter().map(|(_, count)| count).sum();
    batches.sort_unstable();
    let (batch, count) = batches[batches.len() / 2];
    let nanos = batch.as_secs_f64() * 1e9 / float(count);
    Row { preset, n_jobs, n_workers, n_decisions, nanos, bytes_per_job }
}

/// Attempts end one by one, each makes room for a decision.
///
/// Never inlined, so that a profiler can be told to look at this alone.
#[inline(never)]
fn churn(world: &mut World, workload: &mut Workload, running: &mut VecDeque<JobId>) -> usize {
    let mut n_decisions = 0;
    for _ in 0..BATCH {
        let Some(job) = running.pop_front() else { break };
        let (cost, at) = (Fixed::ONE, workload.now());
        world.apply(Event::Ended(Ended { job, cost, completed: true, at }));
        world.apply(Event::Queued(Box::new(workload.job())));
        running.extend(placed(&world.decide(workload.now())));
        n_decisions += 1;
    }
    n_decisions
}

fn placed(actions: &[Action]) -> Vec<JobId> {
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
                .map_or_else(String::new, |other| format!("{:.2}", row.nanos / other.nanos))
        };
        let constant = if has_constant_key(row.preset) { "" } else { " *" };
        vec![
            format!("{}{constant}", row.preset.name()),
            row.n_workers.to_string(),
            row.n_jobs.to_string(),
            format!("{:.2}", row.nanos / 1_000.0),
            format!("{:.0}", row.per_second()),
            row.bytes(),
            base(10_000),
            base(100_000),
        ]
    });
    let header =
        ["preset", "workers", "jobs", "µs", "decisions/s", "bytes/job", "× 10 k", "× 100 k"];
    let table = print::table(&header, cells.collect(), &[1, 2, 3, 4, 5, 6, 7]);
    format!(
        "One decision: an attempt ends, a job arrives, the world decides. One core, median of\n\
         batches of {BATCH}. × is the time against a queue of that length; * has no order that is\n\
         constant in time.\n\n\
         {table}\n"
    )
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn float(count: usize) -> f64 {
    count as f64
}
