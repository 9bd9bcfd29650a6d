//! One worker asks for its best job under rules, against scoring every job.

use std::time::Duration;

use decide::World;
use model::{Action, Ended, Event, Fixed, Freed, Preset, Timestamp, WorkerId};
use serde_json::{Value, json};

use super::machine::{Progress, resident, timed};
use super::workload::{Farm, Workload};

const N_JOBS: u64 = 50_000;
const N_WORKERS: u64 = 200;

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

/// Pulls by every worker in turn; each answer is checked by scoring every job.
pub(crate) fn measure(preset: Preset, seconds: f64, progress: &Progress) -> Report {
    progress.say(format!("{}: {}", preset.name(), Farm::NAME));
    let (mut world, bytes_per_pair) = farm(preset);
    let mut report =
        Report { preset, pulls: Vec::new(), all: Vec::new(), n_wrong: 0, bytes_per_pair };
    let mut now = Timestamp(3_600_000);
    let mut spent = Duration::ZERO;
    while report.pulls.len() < 200 || spent.as_secs_f64() < 3.0 * seconds {
        let turn = u64::try_from(report.pulls.len()).expect("there are few pulls");
        let worker = WorkerId::number(turn % N_WORKERS);
        now.0 += 50;
        let (expected, all) = timed(|| world.best_by_scoring_all(&worker));
        let freed = Freed { worker: worker.clone(), completed: 1 };
        let (actions, took) = timed(|| world.fetch(&freed, now));
        let found = actions.iter().find_map(|action| match action {
            Action::Place(placement) => Some(placement.job.clone()),
            Action::Preempt(_) | Action::Defer(_) => None,
        });
        report.n_wrong += usize::from(found != expected);
        report.pulls.push(took);
        report.all.push(all);
        spent += took + all;
        if let Some(job) = found {
            world.apply(Event::Ended(Ended { job, cost: Fixed::ONE, completed: true }));
        }
    }
    report.pulls.sort_unstable();
    report.all.sort_unstable();
    report
}

fn farm(preset: Preset) -> (World, usize) {
    let mut farm = Farm::new(N_WORKERS);
    let mut world = World::new(preset.policy(), 0);
    Workload::tenants().for_each(|event| world.apply(event));
    world.apply(Event::Cluster(Box::new(Farm::cluster())));
    for at in 0..N_WORKERS {
        world.apply(Event::Joined(Box::new(farm.worker(at))));
    }
    let before = resident();
    for at in 0..N_JOBS {
        world.apply(Event::Queued(Box::new(farm.job(at, N_JOBS))));
    }
    // Every worker asks once, so that the orders by inputs are made.
    for at in 0..N_WORKERS {
        let freed = Freed { worker: WorkerId::number(at), completed: 0 };
        world.fetch(&freed, Timestamp(3_600_000));
    }
    let pairs = usize::try_from(N_JOBS * N_WORKERS).expect("there are ten million pairs");
    (world, resident().saturating_sub(before) / pairs)
}

/// The nearest-rank percentile of sorted times.
fn at(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
