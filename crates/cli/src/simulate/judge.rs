//! `maitre simulate --judge shares`: shares of tenants that are all backlogged, against dues.

use clap::ValueEnum;
use serde_json::{Value, json};
use sim::verdict::{self, Cases, ERROR_MAX, SOURCES, Summary, Verdict};
use sim::{Error, Estimates};

use super::run::Called;
use super::{Options, estimates, failure};
use crate::print::{self, Failure};

/// What a policy is judged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Judge {
    // Its help is that of the option: a list of values would read as options.
    Shares,
}

/// How many replays run at once.
const THREADS: usize = 2;

/// What a policy did with one source of estimates.
struct Judged {
    /// The policy with its source.
    name: String,
    verdicts: Vec<(u64, Verdict)>,
}

/// Replays, prints a row for each policy and source, and fails if a replay fails.
pub(super) fn run(options: &Options, policies: &[Called]) -> Result<(), Failure> {
    let mut all = Vec::new();
    for policy in policies {
        for source in sources(options, policy) {
            let estimates = estimates(&source)?;
            all.push(judged(options, policy, (&source, estimates))?);
        }
    }
    if options.json {
        let runs: Vec<Value> = all.iter().map(value).collect();
        print::json(&json!({ "error_max": ERROR_MAX, "runs": runs }))?;
    } else {
        print::data(&text(&all))?;
    }
    let mut verdicts = all.iter().flat_map(|own| &own.verdicts);
    if verdicts.all(|(_, verdict)| verdict.is_kept()) { Ok(()) } else { Err(Failure::Exit(1)) }
}

/// The source that was asked for, or all that shares must not depend on.
fn sources(options: &Options, policy: &Called) -> Vec<String> {
    let asked = policy.source().map(str::to_owned).or_else(|| options.estimates.clone());
    match asked {
        _ if policy.is_baseline() => vec![super::HISTORY.to_owned()],
        Some(source) => vec![source],
        None => SOURCES.map(str::to_owned).to_vec(),
    }
}

fn judged(
    options: &Options,
    policy: &Called,
    (source, estimates): (&str, Estimates),
) -> Result<Judged, Failure> {
    let cases = Cases { n_runs: options.runs, seed: options.under.seed(), n_threads: THREADS };
    let verdicts = verdict::judge(cases, |case| {
        let on = (&case.workload, &case.fleet);
        policy.scheduler(options, on, estimates).map_err(|own| Error::Unfit(own.to_string()))
    });
    Ok(Judged { name: policy.with_source(source), verdicts: verdicts.map_err(failure)? })
}

fn text(all: &[Judged]) -> String {
    let header: Vec<&str> = std::iter::once("policy").chain(Summary::HEADER).collect();
    let row = |own: &Judged| {
        let cells = Summary::new(&own.verdicts).cells();
        std::iter::once(own.name.clone()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let kept = format!("\nKept: each tenant is within {ERROR_MAX} of its due.\n");
    let mut text = print::tables(&header, &rows) + &kept;
    for own in all {
        for (seed, verdict) in own.verdicts.iter().filter(|(_, verdict)| !verdict.is_kept()) {
            text += &print::title(&format!("{}, {}", own.name, verdict::line(*seed, verdict)));
        }
    }
    text
}

fn value(judged: &Judged) -> Value {
    let replay = |(seed, verdict): &(u64, Verdict)| {
        let tenants = verdict.given.iter();
        let tenants = tenants.map(|own| json!({ "due": own.due, "given": own.given }));
        json!({
            "seed": seed,
            "kept": verdict.is_kept(),
            "worst": verdict.worst,
            "tenants": tenants.collect::<Vec<_>>(),
        })
    };
    let Summary { n_runs, n_kept, median, worst, seed } = Summary::new(&judged.verdicts);
    json!({
        "policy": judged.name,
        "n_runs": n_runs,
        "n_kept": n_kept,
        "error_median": median,
        "error_worst": worst.error(),
        "seed_worst": seed,
        "replays": judged.verdicts.iter().map(replay).collect::<Vec<_>>(),
    })
}
