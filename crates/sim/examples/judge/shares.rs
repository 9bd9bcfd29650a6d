//! `judge shares`: random replays of tenants that are all backlogged, shares against dues.

use std::process::ExitCode;

use sim::verdict::{self, Cases, ERROR_MAX, SOURCES, Summary, Verdict};
use sim::{Error, Estimates};

use crate::arguments::Arguments;
use crate::markdown::aligned;
use crate::policy::{Kind, Policy};

/// How many replays there are if the command line does not say.
const RUNS: u64 = 200;

/// Replays and prints. The exit code is 1 if one replay fails.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let header = ["policy", "estimates"].into_iter().chain(Summary::HEADER).map(str::to_owned);
    let mut lines: Vec<Vec<String>> = vec![header.collect()];
    let mut failed = Vec::new();
    for text in &arguments.policies {
        let policy = Policy::parse(text)?;
        for source in sources(&policy, arguments) {
            let verdicts = judge(&policy, &source, arguments)?;
            let mut cells = vec![format!("`{}`", policy.name), source.clone()];
            for (seed, verdict) in verdicts.iter().filter(|(_, verdict)| !verdict.is_kept()) {
                let told = verdict::line(*seed, verdict);
                failed.push(format!("{} {source} {told}\n", cells[0]));
            }
            cells.extend(Summary::new(&verdicts).cells());
            lines.push(cells);
        }
    }
    print!("{}", aligned(&lines, 2));
    println!("\nkept: each tenant within {ERROR_MAX} of its due");
    print!("{}", failed.concat());
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Baselines have no use for estimates.
fn sources(policy: &Policy, arguments: &Arguments) -> Vec<String> {
    match &policy.kind {
        Kind::Baseline(_) => vec![String::new()],
        Kind::Preset(_) if arguments.estimates.is_empty() => SOURCES.map(str::to_owned).to_vec(),
        Kind::Preset(_) => arguments.estimates.clone(),
    }
}

fn judge(
    policy: &Policy,
    source: &str,
    arguments: &Arguments,
) -> Result<Vec<(u64, Verdict)>, String> {
    let estimates = match source {
        "" => Estimates::None,
        _ => Estimates::parse(source).ok_or(format!("there are no estimates `{source}`"))?,
    };
    let Arguments { n_runs, seed, n_threads, .. } = *arguments;
    let cases = Cases { n_runs: n_runs.unwrap_or(RUNS), seed, n_threads };
    let verdicts = verdict::judge(cases, |case| {
        let on = (&case.workload, &case.fleet);
        policy.scheduler(on, estimates, seed).map_err(Error::Unfit)
    });
    verdicts.map_err(|error| error.to_string())
}
