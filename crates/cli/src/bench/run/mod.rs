//! `maitre bench run`: how fast jobs that do nothing go through a real scheduler, durably and over
//! the wire, and what the store and the wire alone could do in the same run.

mod data;
mod site;
pub(crate) mod worker;
pub(crate) mod echo;
mod raw;
mod load;
mod latency;
mod alike;
mod figure;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::Value;

use super::machine::{Progress, cpu_of, now};
use crate::client::wait;
use crate::print::{self, Failure};
use data::{Data, Fresh};
use echo::Wire;
use load::Load;
use raw::Raw;
use site::Site;

/// Between two things that are timed one by one: a machine with nothing to do takes a nap, and
/// what it does next takes longer than in a hurry.
const PAUSE: Duration = Duration::from_millis(5);
/// `maitre dev` is measured once it has settled.
const SETTLE: Duration = Duration::from_secs(2);

/// The queues of which figures are promised.
const JOBS: &str = "10000,100000,1000000";

/// Options of `maitre bench run`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre bench run
  maitre bench run --jobs 10000 --seconds 1
  maitre bench run --dir /var/lib --json
  maitre bench run --store postgres://me@localhost/postgres --schedulers 4
  maitre bench run --store postgres://me@localhost/postgres --forget
  maitre bench run --jobs 10000,1000000 --rounds 5")]
pub(crate) struct Options {
    /// Queue lengths.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = JOBS)]
    jobs: Vec<u64>,
    /// The store to measure: `sqlite`, or the `postgres://` address of a server. The benchmark
    /// creates databases there, and removes them.
    #[arg(long, value_name = "STORE", default_value = "sqlite")]
    store: String,
    /// Scheduler processes; several can share a Postgres.
    #[arg(long, value_name = "N", default_value_t = 1)]
    schedulers: u32,
    /// Worker processes, dealt to the schedulers in turn; as many as those, and two at least, if
    /// nothing is said.
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Slots of each worker; 2,000 among all of them, if nothing is said.
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Keep nothing of jobs that succeeded, as most queues do; otherwise they are kept for a week.
    #[arg(long)]
    forget: bool,
    /// Seconds for each figure that is a sample.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,
    /// Measure everything so many times, by turns, and print medians with the least and the most.
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only what bench/peers asks of others too, by the definitions that hold for all of them: the
    /// first queue of `--jobs`, drained to its end, starts, and as many jobs submitted and done at
    /// the same time, in one store.
    #[arg(long, conflicts_with = "rounds")]
    as_peers: bool,
    /// Where `sqlite` keeps its data meanwhile, in a directory that is removed at the end: on
    /// the disk that jobs will be kept on.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Jobs before those that are counted: connections are made, and statements prepared.
const WARM_UP: u64 = 20_000;
/// Jobs that are submitted and done at the same time, at most: they take some seconds.
const TOGETHER_MAX: u64 = 200_000;
/// Slots of all workers.
const SLOTS: u32 = 2_000;

impl Options {
    fn n_workers(&self) -> u32 {
        self.workers.unwrap_or(self.schedulers.max(2))
    }

    /// Of each worker.
    fn n_slots(&self) -> u32 {
        self.slots.unwrap_or((SLOTS / self.n_workers().max(1)).max(1))
    }
}

/// All that was seen, once a round.
struct Rounds(Vec<Report>);

/// All that was seen in one round.
struct Report {
    raw: Raw,
    wire: Wire,
    loads: Vec<Load>,
    /// Jobs submitted and done at the same time, in a second.
    together: f64,
    idle: Spread,
    half: Spread,
    /// Of one core, what `maitre dev` takes with nothing to do; it has no Postgres.
    idle_cpu: Option<f64>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let data = Data::of(&options.store, options.dir.as_deref())?;
    if options.schedulers == 0 || (options.schedulers > 1 && !data.is_shared()) {
        return Err(Failure::Input {
            error: format!("`--schedulers {}` cannot be measured here", options.schedulers),
            hint: Some(
                "one has SQLite to itself; several share a `--store postgres://…`".to_owned(),
            ),
        });
    }
    wait(async {
        let measured = all(options, &data).await;
        let removed = data.remove().await;
        measured.and(removed)
    })
}

/// Measures and prints on these data.
async fn all(options: &Options, data: &Data) -> Result<(), Failure> {
    if options.as_peers {
        let n_jobs = options.jobs.first().copied().unwrap_or(1).max(1);
        let alike = alike::measure(n_jobs, data, options).await?;
        return shown(options, || alike.json(), || alike.text());
    }
    let progress = Progress::start();
    let mut rounds = Vec::new();
    for n in 1..=options.rounds {
        let say = |what: &str| match options.rounds {
            1 => progress.say(what.to_owned()),
            n_rounds => progress.say(format!("{n}/{n_rounds}: {what}")),
        };
        rounds.push(measure(options, data, say).await?);
    }
    progress.finish();
    let rounds = Rounds(rounds);
    shown(options, || rounds.json(), || rounds.text())
}

fn shown(
    options: &Options,
    json: impl Fn() -> Value,
    text: impl Fn() -> String,
) -> Result<(), Failure> {
    if options.json { print::json(&json()) } else { print::data(&text()) }
}

async fn measure(options: &Options, data: &Data, say: impl Fn(&str)) -> Result<Report, Failure> {
    let seconds = options.seconds;
    say("the store alone");
    let raw = raw::measure(data, options).await?;
    say("the wire alone");
    let wire = echo::measure(seconds).await?;
    let mut loads = Vec::new();
    for n_jobs in options.jobs.iter().copied().filter(|n_jobs| *n_jobs > 0) {
        say(&format!("{n_jobs} jobs"));
        loads.push(load::measure(n_jobs, data, options).await?);
    }
    say("jobs that come and go");
    let fresh = data.fresh("site").await?;
    let mut site = Site::start(&fresh, options).await?;
    site.hire(options.n_workers(), options.n_slots()).await?;
    let idle = latency::idle(&site, seconds).await?;
    load::together(&site, WARM_UP).await?;
    let n_together = options.jobs.iter().copied().max().unwrap_or(0).clamp(10_000, TOGETHER_MAX);
    let together = load::together(&site, n_together).await?;
    let half = latency::under(&site, together / 2.0, seconds).await?;
    drop(site);
    say("`maitre dev` with nothing to do");
    let idle_cpu = if data.is_shared() {
        None
    } else {
        Some(idle_cpu(&data.fresh("dev").await?, seconds).await?)
    };
    Ok(Report { raw, wire, loads, together, idle, half, idle_cpu })
}

async fn idle_cpu(fresh: &Fresh, seconds: f64) -> Result<f64, Failure> {
    let (process, _) = site::scheduler("dev", fresh)?;
    tokio::time::sleep(SETTLE).await;
    let (start, before) = (now(), cpu_of(process.id()).unwrap_or_default());
    tokio::time::sleep(Duration::from_secs_f64(seconds.max(2.0))).await;
    let used = cpu_of(process.id()).unwrap_or_default().saturating_sub(before);
    Ok(used.as_secs_f64() / start.elapsed().as_secs_f64())
}

/// Times, by rank.
pub(crate) struct Spread {
    nanos: Vec<u64>,
}

impl Spread {
    pub(crate) fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self { nanos }
    }

    /// In microseconds; `percent` of all are not longer.
    pub(crate) fn micros(&self, percent: usize) -> f64 {
        let at = (self.nanos.len() * percent / 100).min(self.nanos.len().saturating_sub(1));
        self.nanos.get(at).map_or(0.0, |nanos| float(*nanos) / 1_000.0)
    }
}

fn per_second(n: u64, took: Duration) -> f64 {
    float(n) / took.as_secs_f64().max(1e-9)
}

fn per_cent(part: u64, whole: u64) -> f64 {
    100.0 * float(part) / float(whole.max(1))
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn float(count: u64) -> f64 {
    count as f64
}
