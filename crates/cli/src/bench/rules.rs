//! One worker asks for its best job under rules, against scoring every job.

use std::time::Duration;

use decide::World;
use model::{Action, Ended, Event, Fixed, Freed, JobId, Preset, Timestamp, WorkerId};
use serde_json::{Value, json};

use super::machine::{Progress, timed};
use super::workload::{Farm, Workload};

const N_JOBS: u64 = 50_000;
const N_WORKERS: u64 = 200;
const N_PULLS: u64 = 600;
/// The end of the hour in which jobs arrived.
const NOW: Timestamp = Timestamp(3_600_000);

/// Times of single pulls, and of scoring every job instead.
pub(crate) struct Report {
    preset: Preset,
    pulls: Vec<Duration>,
    all: Vec<Duration>,
    n_wrong: usize,
    bytes_per_pair: usize,
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        json!({
            "preset": self.preset.name(),
            "workload": Farm::NAME,
            "pulls": self.pulls.len(),
            "wrong": self.n_wrong,
            "median_us": micros(at(&self.pulls, 50)),
            "p99_us": micros(at(&self.pulls, 99)),
            "worst_us": micros(at(&self.pulls, 100)),
            "score_all_median_us": micros(at(&self.all, 50)),
            "times_faster": self.times_faster(),
            "bytes_per_pair": self.bytes_per_pair,
        })
    }

    fn times_faster(&self) -> f64 {
        at(&self.all, 50).as_secs_f64() / at(&self.pulls, 50).as_secs_f64()
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "`{}`, one worker asks ({}):\n  \
             {} pulls, median {:.0} µs, p99 {:.0} µs, worst {:.0} µs; \
             scoring every job {:.0} µs: {:.0} × faster\n  \
             {} of them not the job that scoring every job finds; {} bytes a pair\n\n",
            self.preset.name(),
            Farm::NAME,
            self.pulls.len(),
            micros(at(&self.pulls, 50)),
            micros(at(&self.pulls, 99)),
            micros(at(&self.pulls, 100)),
            micros(at(&self.all, 50)),
            self.times_faster(),
            self.n_wrong,
            self.bytes_per_pair,
        )
    }
}

/// Pulls by every worker in turn. Then the same again, on the same world made anew, where each
/// answer is checked by scoring every job.
pub(crate) fn measure(preset: Preset, progress: &Progress) -> Report {
    progress.say(format!("{}: {}", preset.name(), Farm::NAME));
    let mut world = farm(preset);
    let mut report =
        Report { preset, pulls: Vec::new(), all: Vec::new(), n_wrong: 0, bytes_per_pair: 0 };
    let mut found = Vec::new();
    for turn in 0..N_PULLS {
        let (job, took) = pull(&mut world, turn);
        report.pulls.push(took);
        found.push(job);
    }
    let (pairs, bytes) = world.inputs_size();
    report.bytes_per_pair = bytes / pairs.max(1);
    progress.say(format!("{}: checking every answer", preset.name()));
    let mut world = farm(preset);
    for (turn, found) in (0..N_PULLS).zip(found) {
        let (expected, took) = timed(|| world.best_by_scoring_all(&asking(turn)));
        report.all.push(took);
        report.n_wrong += usize::from(found != expected);
        pull(&mut world, turn);
    }
    report.pulls.sort_unstable();
    report.all.sort_unstable();
    report
}

/// The worker whose turn it is.
fn asking(turn: u64) -> WorkerId {
    WorkerId::number(turn % N_WORKERS)
}

/// A worker asks for one job, and is done with it at once.
fn pull(world: &mut World, turn: u64) -> (Option<JobId>, Duration) {
    let freed = Freed { worker: asking(turn), completed: 1 };
    let (actions, took) = timed(|| world.fetch(&freed, NOW));
    let found = actions.iter().find_map(|action| match action {
        Action::Place(placement) => Some(placement.job.clone()),
        Action::Preempt(_) | Action::Defer(_) => None,
    });
    if let Some(job) = found.clone() {
        world.apply(Event::Ended(Ended { job, cost: Fixed::ONE, completed: true, at: NOW }));
    }
    (found, took)
}

fn farm(preset: Preset) -> World {
    let mut farm = Farm::new(N_WORKERS);
    let mut world = World::new(preset.policy(), 0);
    Workload::tenants().for_each(|event| world.apply(event));
    world.apply(Event::Cluster(Box::new(Farm::cluster())));
    for at in 0..N_WORKERS {
        world.apply(Event::Joined(Box::new(farm.worker(at))));
    }
    for at in 0..N_JOBS {
        world.apply(Event::Queued(Box::new(farm.job(at, N_JOBS))));
    }
    // Jobs stand in line from the moment that the world is told.
    world.fetch(&Freed { worker: asking(0), completed: 0 }, NOW);
    world
}

/// The nearest-rank percentile of sorted times.
fn at(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
