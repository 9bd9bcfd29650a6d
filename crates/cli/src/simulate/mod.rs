//! `maitre simulate`: what a policy would have done with a workload.

mod run;
mod show;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use model::{Fixed, Millis};
use sim::read::{self, Reading};
use sim::{Bounds, Error, Estimates, Fleet, Workload};

use crate::print::{self, Failure};
use run::Outcome;

/// Options of `maitre simulate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre simulate jobs.csv.gz --fleet slots.csv --weights 1,2,5 --policy balanced
  maitre simulate log.swf.gz --fleet 1x100 --compare easy,easy-sjbf,balanced --json
  maitre simulate log.swf.gz --fleet 1750 --policy '{\"preset\":\"balanced\",\"reserve\":false}'

Policies: every preset, a policy as JSON, and fifo, fcfs, prio, sjf, sfq, sfq-sjf, seed3, seed4,
easy, easy:perfect, easy-sjbf, easy-sjbf:perfect")]
pub(crate) struct Options {
    /// The workload: `.swf` or `.csv`, packed with gzip or not.
    file: PathBuf,
    /// The workers: a `.csv` file, or a size such as `64` or `10x8` (workers x slots).
    #[arg(long, value_name = "FILE|SIZE")]
    fleet: Option<String>,
    /// How to read the workload.
    #[arg(long, value_enum, default_value_t = Kind::Plain)]
    workload: Kind,
    /// Weights of the tenants, by id; after the last, the first again.
    #[arg(long, value_delimiter = ',', value_name = "WEIGHT")]
    weights: Vec<u32>,
    /// A preset, a baseline, or a policy as JSON; may be given again.
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,
    /// Several policies at once.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    compare: Vec<String>,
    /// What presets believe about lengths: none, user, perfect, history, or wrong:FACTOR.
    #[arg(long, default_value = "perfect", value_name = "SOURCE")]
    estimates: String,
    /// Decide only at multiples of so many milliseconds.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1..))]
    tick: Option<i64>,
    /// Jobs arrive so many times as fast.
    #[arg(long, value_name = "FACTOR", conflicts_with = "load")]
    compress: Option<f64>,
    /// Jobs arrive so fast that the fleet is asked for so many times what it can do.
    #[arg(long, value_name = "LOAD")]
    load: Option<f64>,
    /// Only the first so many jobs.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// What tenants used longer ago than so many seconds is forgiven.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    window: Option<i64>,
    /// What draws come from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write `job_id,start_ms` for each job, by id; for one policy.
    #[arg(long, value_name = "FILE")]
    starts: Option<PathBuf>,
    /// So many bad rows are passed over.
    #[arg(long, default_value_t = 100, value_name = "N")]
    bad_max: usize,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// How to read a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// As its format says.
    Plain,
    /// The log of KTH with three tenants, priorities and people; on 100 slots.
    KthM,
}

/// Slots of the machine of KTH.
const KTH_SLOTS: u32 = 100;
/// Weights of its tenants.
const KTH_WEIGHTS: [u32; 3] = [1, 2, 5];

/// Replays and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let names: Vec<&String> = options.policy.iter().chain(&options.compare).collect();
    if options.starts.is_some() && names.len() > 1 {
        return Err(wrong("`--starts` is for one policy".to_owned(), None));
    }
    let (workload, fleet) = input(options)?;
    tell_bad(&workload);
    let balanced = "balanced".to_owned();
    let names = if names.is_empty() { vec![&balanced] } else { names };
    let mut outcomes: Vec<Outcome> = Vec::new();
    for name in names {
        outcomes.push(run::run(options, name, &workload, &fleet)?);
    }
    if let (Some(path), [outcome]) = (&options.starts, outcomes.as_slice()) {
        write_starts(path, &workload, outcome)?;
    }
    let bounds = Bounds::new(&workload, &fleet);
    if options.json {
        return print::json(&show::json(&workload, &fleet, &bounds, &outcomes));
    }
    print::data(&show::tables(&workload, &bounds, &outcomes))
}

fn input(options: &Options) -> Result<(Workload, Fleet), Failure> {
    let (reading, weights) = match options.workload {
        Kind::Plain => (Reading::Plain, options.weights.clone()),
        Kind::KthM if options.weights.is_empty() => (Reading::KthM, KTH_WEIGHTS.to_vec()),
        Kind::KthM => (Reading::KthM, options.weights.clone()),
    };
    let how = read::Options { reading, weights, bad_max: options.bad_max };
    let mut workload = read::workload(&options.file, &how).map_err(failure)?;
    let fleet = fleet(options)?;
    fleet.sift(&mut workload, options.bad_max).map_err(failure)?;
    workload.jobs.truncate(options.first.unwrap_or(usize::MAX));
    if workload.jobs.is_empty() {
        let error = "no job of the workload fits the fleet".to_owned();
        return Err(wrong(error, workload.bad.told.first().cloned()));
    }
    if let Some(factor) = options.compress {
        workload.compress(positive("--compress", factor)?);
    }
    if let Some(load) = options.load {
        workload.compress_to(positive("--load", load)?, fleet.slots());
    }
    Ok((workload, fleet))
}

fn fleet(options: &Options) -> Result<Fleet, Failure> {
    match (&options.fleet, options.workload) {
        (Some(text), _) => match Fleet::parse_size(text) {
            Some(fleet) => Ok(fleet),
            None => read::fleet(Path::new(text)).map_err(failure),
        },
        (None, Kind::KthM) => Ok(Fleet::of_size(1, KTH_SLOTS)),
        (None, Kind::Plain) => Err(wrong(
            "there is no fleet to run the workload on".to_owned(),
            Some("`--fleet slots.csv`, `--fleet 64` or `--fleet 10x8`".to_owned()),
        )),
    }
}

fn positive(flag: &str, number: f64) -> Result<Fixed, Failure> {
    let fixed = Fixed::from_f64(number).filter(|fixed| *fixed > Fixed::ZERO);
    fixed.ok_or_else(|| wrong(format!("`{flag}` is {number}; it is more than 0"), None))
}

/// Says which rows were passed over.
fn tell_bad(workload: &Workload) {
    let bad = &workload.bad;
    if bad.count > 0 {
        let more = if bad.count > bad.told.len() { "; …" } else { "" };
        print::note(&format!("{} bad rows: {}{more}", bad.count, bad.told.join("; ")));
    }
}

fn write_starts(path: &Path, workload: &Workload, outcome: &Outcome) -> Result<(), Failure> {
    let jobs = workload.jobs.iter().zip(&outcome.replay.starts);
    let mut by_id: Vec<(u32, String)> =
        jobs.map(|(job, start)| (job.rank, format!("{},{}\n", job.id, start.at.0))).collect();
    by_id.sort_unstable();
    let text: String = by_id.into_iter().map(|(_, line)| line).collect();
    fs::write(path, text).map_err(|error| {
        let problem = format!("cannot write `{}`", path.display());
        Failure::Other(anyhow::Error::new(error).context(problem))
    })
}

fn estimates(options: &Options) -> Result<Estimates, Failure> {
    Estimates::parse(&options.estimates).ok_or_else(|| {
        let error = format!("there is no source of estimates `{}`", options.estimates);
        let hint = "none, user, perfect, history, or wrong:4 for up to four times off";
        wrong(error, Some(hint.to_owned()))
    })
}

/// What `seed3` and presets remember: `seed3` as its source says, presets as a scheduler does.
fn window(options: &Options, of_baseline: bool) -> Millis {
    const HOUR: Millis = Millis::from_secs(3_600);
    const DAY: Millis = Millis::from_secs(24 * 3_600);
    match (options.window, options.workload) {
        (Some(seconds), _) => Millis::from_secs(seconds),
        (None, Kind::Plain) if of_baseline => HOUR,
        (None, Kind::Plain | Kind::KthM) => DAY,
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Read { .. } | Error::Form { .. } | Error::Bad { .. } | Error::Unfit(_) => {
            let error = anyhow::Error::new(error);
            wrong(format!("{error:#}"), None)
        }
    }
}

const fn wrong(error: String, hint: Option<String>) -> Failure {
    Failure::Input { error, hint }
}
