//! `judge families`: generated families, relative to FIFO.

use std::process::ExitCode;

use model::Fixed;
use sim::Baseline;
use sim::generate::Family;

use crate::arguments::Arguments;
use crate::figures::Figures;
use crate::markdown::aligned;
use crate::parallel;
use crate::policy::{Kind, Policy};

/// Sources of estimates if the command line names none.
const SOURCES: [&str; 4] = ["perfect", "history", "none", "wrong:4"];
/// How many replays of each family there are if the command line does not say.
const RUNS: u64 = 20;
/// A policy with a source of estimates.
struct Contender<'a> {
    policy: &'a Policy,
    source: String,
}

/// How many times the figures of FIFO those of a replay are, in the order of [`Figures`]. A wait
/// below the mean length of the jobs counts as that.
type Ratios = [f64; 4];

/// Replays and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let families = families(&arguments.only)?;
    let policies: Result<Vec<Policy>, String> =
        arguments.policies.iter().map(|text| Policy::parse(text)).collect();
    let policies = policies?;
    let contenders: Vec<Contender<'_>> =
        policies.iter().flat_map(|policy| contenders(policy, arguments)).collect();
    let n_runs = arguments.n_runs.unwrap_or(RUNS);
    let runs: Vec<(Family, u64)> = families
        .iter()
        .flat_map(|family| (0..n_runs).map(|run| (*family, arguments.seed + run)))
        .collect();
    let ratios = parallel::map(&runs, arguments.n_threads, |_, run| ratios(*run, &contenders))?;
    let header = ["family", "policy", "estimates", "mean", "p99", "longest", "slowdown"];
    let header = header.into_iter().chain(["worst p99", "worst longest"]).map(str::to_owned);
    let mut lines: Vec<Vec<String>> = vec![header.collect()];
    for family in families.iter().map(|own| Some(*own)).chain([None]) {
        for (at, contender) in contenders.iter().enumerate() {
            let own = runs.iter().zip(&ratios);
            let own = own.filter(|((other, _), _)| family.is_none_or(|family| family == *other));
            let own: Vec<Ratios> = own.map(|(_, ratios)| ratios[at]).collect();
            lines.push(line(family, contender, &own));
        }
    }
    print!("{}", aligned(&lines, 3));
    println!(
        "\nHow many times the figure of FIFO; geometric means of {n_runs} replays of each family \
         from seed {}. A wait below the mean length of the jobs counts as that.",
        arguments.seed
    );
    Ok(ExitCode::SUCCESS)
}

/// Those of the names; without names all but the backlogged one, which `shares` judges.
fn families(names: &[String]) -> Result<Vec<Family>, String> {
    if names.is_empty() {
        return Ok(Family::ALL.into_iter().filter(|own| *own != Family::Backlogged).collect());
    }
    let known = Family::ALL.map(Family::name).join(", ");
    let family = |name: &String| {
        Family::from_name(name).ok_or_else(|| format!("there is no family `{name}`: {known}"))
    };
    names.iter().map(family).collect()
}

fn contenders<'a>(policy: &'a Policy, arguments: &Arguments) -> Vec<Contender<'a>> {
    let sources = match &policy.kind {
        Kind::Baseline(_) => vec![String::new()],
        Kind::Preset(_) if arguments.estimates.is_empty() => SOURCES.map(str::to_owned).to_vec(),
        Kind::Preset(_) => arguments.estimates.clone(),
    };
    sources.into_iter().map(|source| Contender { policy, source }).collect()
}

/// The ratios of each contender for one workload.
fn ratios((family, seed): (Family, u64), all: &[Contender<'_>]) -> Result<Vec<Ratios>, String> {
    let mut made = family.instance(seed);
    made.fleet.sift(&mut made.workload, 0).map_err(|error| error.to_string())?;
    let on = (&made.workload, &made.fleet);
    let fifo = Policy { name: "fifo".to_owned(), kind: Kind::Baseline(Baseline::Fifo) };
    let fifo = Figures::new(&fifo, "none", on, seed)?.waits;
    let lengths = made.workload.jobs.iter().map(|job| Fixed::thousandths(job.duration.0).to_f64());
    let (sum, n_jobs) = lengths.fold((0.0, 0.0), |(sum, n), own| (sum + own, n + 1.0));
    // A ratio of two waits that are shorter than a job tells nothing.
    let least = [sum / n_jobs, sum / n_jobs, sum / n_jobs, 1.0];
    let ratios = all.iter().map(|own| {
        let source = if own.source.is_empty() { "none" } else { &own.source };
        let waits = Figures::new(own.policy, source, on, seed)?.waits;
        Ok([0, 1, 2, 3].map(|at| waits[at].max(least[at]) / fifo[at].max(least[at])))
    });
    ratios.collect()
}

fn line(family: Option<Family>, contender: &Contender<'_>, ratios: &[Ratios]) -> Vec<String> {
    let Contender { policy, source } = contender;
    let mut cells = vec![family.map_or("all", Family::name).to_owned()];
    cells.extend([format!("`{}`", policy.name), source.clone()]);
    let mean = |at: usize| {
        let (sum, n) =
            ratios.iter().fold((0.0, 0.0), |(sum, n), own| (sum + own[at].ln(), n + 1.0));
        (sum / n).exp()
    };
    let worst = |at: usize| ratios.iter().map(|own| own[at]).fold(0.0, f64::max);
    let figures = [mean(0), mean(1), mean(2), mean(3), worst(1), worst(2)];
    cells.extend(figures.map(|figure| format!("{figure:.2}")));
    cells
}
