//! `maitre simulate`: what a policy would have done with a workload.

mod history;
mod source;
mod under;
mod run;
mod show;
mod report;
mod judge;
mod frontier;
mod gently;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use model::Millis;
use sim::{Baseline, Bounds, Error, Estimates, Workload};

use crate::print::{self, Failure};
use frontier::Frontier;
use judge::Judge;
use run::{Called, Outcome};
use source::{Kind, Source};
use under::Under;

/// Options of `maitre simulate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre simulate jobs.csv.gz --fleet slots.csv --weights 1,2,5
  maitre simulate log.swf.gz --fleet 1x100 --compare easy,balanced --json
  maitre simulate jobs.csv --fleet 9 --compare fifo,balanced --report report
  maitre simulate --from sqlite://maitre-data/maitre.db --compare balanced
  maitre simulate log.swf --fleet 1750 --policy '{\"preset\":\"cohort\"}'
  maitre simulate --family pareto --seed 7 --compare fifo,balanced
  maitre simulate --judge shares --runs 200 --policy balanced
  maitre simulate jobs.csv --fleet 9 --frontier fair_slack=0s,60s,1h

Policies: every preset, also with its source of estimates
(balanced:perfect, balanced:wrong:4), a policy as JSON, and fifo, fcfs, prio,
sjf, sfq, sfq-sjf, seed3, seed4, easy, easy:perfect, easy-sjbf,
easy-sjbf:perfect, match-s4, match-sjf")]
pub(crate) struct Options {
    #[command(flatten)]
    source: Source,
    /// A preset, a baseline, or a policy as JSON, with a name to call it by if you like:
    /// `plain={"preset":"cohort"}`; may be given again.
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,
    /// Several policies at once.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    compare: Vec<String>,
    /// Source of the lengths that presets expect: history, none, user, perfect, or wrong:FACTOR
    /// [default: history].
    #[arg(long, value_name = "SOURCE")]
    estimates: Option<String>,
    /// Judge policies in random replays, not of a workload. Shares: does each backlogged tenant
    /// get what it is due? The exit code is 1 if one replay fails.
    #[arg(long, value_enum, value_name = "WHAT",
          conflicts_with_all = ["file", "generate", "family", "from", "fleet", "report", "starts"])]
    judge: Option<Judge>,
    /// Run so many random replays for `--judge`, with the seeds from `--seed` on.
    #[arg(long, default_value_t = 200, value_name = "N", requires = "judge")]
    runs: u64,
    /// Replay the policy with each value of one of its numbers, and draw the mean wait against the
    /// longest wait: `fair_slack=0s,10s,60s`.
    #[arg(long, value_name = "FIELD=VALUE,...",
          conflicts_with_all = ["judge", "starts", "compare"])]
    frontier: Option<String>,
    /// What tenants used longer ago than so many seconds is forgiven.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    window: Option<i64>,
    #[command(flatten)]
    under: Under,
    /// Write `job_id,start_ms` for each job, by id, to a file or, for `-`, in place of the tables;
    /// for one policy.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    starts: Option<PathBuf>,
    /// Write `report.html` and its pictures into a folder.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    report: Option<PathBuf>,
    /// For machines.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// With `--json`: the tables, pictures and page of a report are in what is printed.
    #[arg(long, help_heading = "Output", requires = "json")]
    pictures: bool,
    /// Run only when nobody else wants to, be the first to go when memory runs out, and go with
    /// whoever started this.
    #[arg(long, hide = true)]
    gently: bool,
}

impl Options {
    fn prints_starts(&self) -> bool {
        self.starts.as_deref() == Some(Path::new("-"))
    }
}

/// Replays and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.gently {
        gently::be();
    }
    let names = names(options)?;
    // Policies that are wrong are refused before anything is read or replayed.
    let policies: Result<Vec<Called>, Failure> =
        names.iter().map(|name| Called::new(name)).collect();
    let mut policies = policies?;
    if let Some(Judge::Shares) = options.judge {
        return judge::run(options, &policies);
    }
    let frontier = match &options.frontier {
        Some(text) => Some(Frontier::parse(text, names[0])?),
        None => None,
    };
    if let Some(frontier) = &frontier {
        policies = frontier.policies()?;
    }
    let (mut workload, fleet, notes) = options.source.load(options.under.seed())?;
    for note in &notes {
        print::note(note);
    }
    options.under.endow(&mut workload)?;
    tell_bad(&workload);
    options.under.tell_idle(&workload);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for policy in &policies {
        outcomes.push(run::run(options, policy, &workload, &fleet)?);
    }
    let starts = || outcomes.first().map_or_else(String::new, |own| starts(&workload, own));
    if let Some(path) = options.starts.as_ref().filter(|_| !options.prints_starts()) {
        write(path, &starts())?;
    }
    let bounds = Bounds::new(&workload, &fleet);
    let made = || {
        let made = report::Report::new(options, (&workload, &fleet), &bounds, &outcomes);
        let made = made.noting(&notes);
        match &frontier {
            Some(frontier) => made.with_frontier(frontier, &outcomes),
            None => made,
        }
    };
    if let Some(folder) = &options.report {
        let path = made().write(folder)?;
        if print::is_watched() {
            print::note(&format!("the report is in `{}`", path.display()));
        }
    }
    if options.json {
        let mut value = show::json(&workload, &fleet, &bounds, &outcomes);
        if options.pictures {
            value["report"] = made().json();
        }
        return print::json(&value);
    }
    if options.prints_starts() {
        return print::data(&starts());
    }
    match &frontier {
        Some(frontier) => print::data(&frontier.table(&outcomes)),
        None => print::data(&show::tables(&bounds, &outcomes)),
    }
}

/// The policies as they were given; without any, `balanced`.
fn names(options: &Options) -> Result<Vec<&str>, Failure> {
    let names: Vec<&str> =
        options.policy.iter().chain(&options.compare).map(String::as_str).collect();
    let of_one =
        [("--starts", options.starts.is_some()), ("--frontier", options.frontier.is_some())];
    if let Some((flag, _)) = of_one.iter().find(|(_, is_asked)| *is_asked && names.len() > 1) {
        return Err(wrong(format!("`{flag}` is for one policy"), None));
    }
    if options.prints_starts() && options.json {
        let hint = Some("give `--starts` a file".to_owned());
        return Err(wrong("`--starts -` and `--json` are both to be printed".to_owned(), hint));
    }
    Ok(if names.is_empty() { vec!["balanced"] } else { names })
}

/// The policies that have names, the best to begin with first.
pub(crate) fn policies() -> Vec<String> {
    let presets = model::Preset::ALL.map(model::Preset::name).into_iter().rev();
    presets.chain(Baseline::ALL.map(Baseline::name)).map(ToOwned::to_owned).collect()
}

/// Says which rows were passed over.
fn tell_bad(workload: &Workload) {
    let bad = &workload.bad;
    if bad.count > 0 {
        print::note(&format!("{}: {bad}", print::count(bad.count, "bad row")));
    }
}

/// When each job started, by id.
fn starts(workload: &Workload, outcome: &Outcome) -> String {
    let jobs = workload.jobs.iter().zip(&outcome.replay.starts);
    let mut by_id: Vec<(u32, String)> =
        jobs.map(|(job, start)| (job.rank, format!("{},{}\n", job.id, start.at.0))).collect();
    by_id.sort_unstable();
    by_id.into_iter().map(|(_, line)| line).collect()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        let problem = format!("cannot write `{}`", path.display());
        Failure::Other(anyhow::Error::new(error).context(problem))
    })
}

/// The source of estimates that a scheduler has in life.
const HISTORY: &str = "history";

fn estimates(source: &str) -> Result<Estimates, Failure> {
    Estimates::parse(source).ok_or_else(|| {
        let error = format!("there is no source of estimates `{source}`");
        let hint = "none, user, perfect, history, hindsight:type+key for the means of all jobs \
                    that are alike, or wrong:4 for up to four times off";
        wrong(error, Some(hint.to_owned()))
    })
}

/// What `seed3` and presets remember: `seed3` as its source says, presets as a scheduler does.
fn window(options: &Options, of_baseline: bool) -> Millis {
    const HOUR: Millis = Millis::from_secs(3_600);
    const DAY: Millis = Millis::from_secs(24 * 3_600);
    match (options.window, options.source.kind()) {
        (Some(seconds), _) => Millis::from_secs(seconds),
        (None, Kind::Plain) if of_baseline => HOUR,
        (None, Kind::Plain | Kind::KthM) => DAY,
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Bad { .. } => {
            let hint = "`--bad-max N` passes more of them over";
            wrong(error.to_string(), Some(hint.to_owned()))
        }
        Error::Read { .. } | Error::Form { .. } | Error::Unfit(_) => {
            let error = anyhow::Error::new(error);
            wrong(format!("{error:#}"), None)
        }
    }
}

const fn wrong(error: String, hint: Option<String>) -> Failure {
    Failure::Input { error, hint }
}
