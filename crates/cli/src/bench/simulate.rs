//! `maitre bench simulate`: how a replay grows with the number of jobs.
//!
//! A made-up workload of six types and eight tenants, with bursts and heavy-tailed sizes, asks for
//! nine tenths of the fleet. Each figure is taken in a process of its own.

use std::env;
use std::process::Command;

use anyhow::Context as _;
use clap::Args;
use model::{Millis, Preset as Name};
use serde_json::{Value, json};
use sim::generate::Recipe;
use sim::preset::{Options as How, Preset};
use sim::{Conditions, Estimates, Fleet, seating};

use super::machine::{Progress, on_core, peak, timed};
use crate::print::{self, Failure};

/// Options of `maitre bench simulate`.
#[derive(Args)]
pub(crate) struct Options {
    /// Numbers of jobs.
    #[arg(long, value_delimiter = ',', default_value = "100000,1000000,10000000")]
    jobs: Vec<usize>,
    /// How many workers, of one slot each.
    #[arg(long, default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    workers: u32,
    /// The preset.
    #[arg(long, default_value = "balanced")]
    preset: String,
    /// For machines.
    #[arg(long)]
    json: bool,
    /// Measure one figure in this process.
    #[arg(long, hide = true)]
    alone: bool,
}

/// What the fleet is asked for.
const LOAD: f64 = 0.9;
/// The mean size of a job, in seconds.
const MEAN_S: f64 = 60.0;

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let preset = super::chosen(std::slice::from_ref(&options.preset))?[0];
    if options.alone {
        return print::json(&measure_here(options, preset)?);
    }
    let progress = Progress::start();
    let mut rows = Vec::new();
    for n_jobs in &options.jobs {
        progress.say(format!("{n_jobs} jobs on {} workers", options.workers));
        rows.push(measure_apart(options, *n_jobs)?);
    }
    progress.finish();
    if options.json {
        return print::json(&rows);
    }
    print::data(&table(options, &rows))
}

fn measure_apart(options: &Options, n_jobs: usize) -> Result<Value, Failure> {
    let binary = env::current_exe().context("find this binary")?;
    let output = Command::new(binary)
        .args(["bench", "simulate", "--alone", "--preset", &options.preset])
        .args(["--jobs", &n_jobs.to_string(), "--workers", &options.workers.to_string()])
        .output()
        .context("run a benchmark in a process of its own")?;
    let said = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(said)
}

fn measure_here(options: &Options, preset: Name) -> Result<Value, Failure> {
    let n_jobs = options.jobs.first().copied().unwrap_or(1);
    let recipe = Recipe::parse("the benchmark", &recipe(n_jobs, options.workers));
    let (workload, made) = timed(|| recipe.map(|recipe| recipe.workload()));
    let workload = workload.context("make the workload up")?;
    let fleet: Fleet = seating::parse_toml("the benchmark", &workers(options.workers))
        .context("make the fleet up")?;
    let how = How {
        estimates: Estimates::Perfect,
        seed: 0,
        window: Millis::from_secs(24 * 3_600),
        budget: None,
    };
    let mut world = Preset::new(&workload, &fleet, preset.policy(), how);
    let before = on_core();
    let (replay, took) =
        timed(|| sim::replay(&workload, &fleet, &mut world, &Conditions::default(), &mut |_| {}));
    let replay = replay.context("replay the workload")?;
    let worked = Some(on_core() - before).filter(|worked| *worked > 0.0);
    let worked = worked.unwrap_or(took.as_secs_f64());
    let waits = workload.jobs.iter().zip(&replay.starts);
    let waited = waits.filter(|(job, start)| start.at > job.arrival).count();
    Ok(json!({
        "jobs": n_jobs,
        "workers": options.workers,
        "decisions": replay.n_passes,
        "waited": waited,
        "made_s": made.as_secs_f64(),
        "took_s": took.as_secs_f64(),
        "on_core_s": worked,
        "us_per_decision": worked * 1e6 / float(replay.n_passes),
        "peak_bytes": peak(),
    }))
}

/// Three kinds of workers; one in sixteen can run the rare type.
fn workers(n_workers: u32) -> String {
    let (rare, some) = (n_workers / 16, n_workers / 4);
    let kind = |id: &str, count: u32, types: &str| {
        format!("[[worker]]\nid = '{id}'\ncount = {count}\ntypes = [{types}]\n")
    };
    kind("rare", rare, "'A', 'R'")
        + &kind("some", some, "'A', 'B', 'C'")
        + &kind("any", n_workers - rare - some, "'A', 'B', 'C', 'D', 'E'")
}

fn recipe(n_jobs: usize, n_workers: u32) -> String {
    let rate = LOAD * f64::from(n_workers) / MEAN_S;
    let mut parts = vec![format!("jobs = {n_jobs}\nrate_per_s = {rate}\npriorities = [0, 10]\n")];
    for (name, share) in [("A", 30), ("B", 25), ("C", 20), ("D", 15), ("E", 8), ("R", 2)] {
        parts.push(format!(
            "[[type]]\nname = '{name}'\nshare = {share}\non_demand = 0.3\n\
             size = {{ law = 'lognormal', mean = {MEAN_S}, sigma = 1.5 }}\n"
        ));
    }
    for tenant in 0..8 {
        let weight = [1, 2, 5][tenant % 3];
        parts.push(format!("[[tenant]]\nname = '{tenant}'\nweight = {weight}\n"));
        if tenant == 0 {
            parts.push("burst = { every_s = 600, for_s = 60, factor = 4 }\n".to_owned());
        }
    }
    parts.concat()
}

fn table(options: &Options, rows: &[Value]) -> String {
    let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or(0.0);
    let first = rows.first().map_or(0.0, |row| figure(row, "us_per_decision"));
    let cells = rows.iter().map(|row| {
        vec![
            row["jobs"].to_string(),
            row["workers"].to_string(),
            row["waited"].to_string(),
            row["decisions"].to_string(),
            format!("{:.1}", figure(row, "took_s")),
            format!("{:.1}", figure(row, "on_core_s")),
            format!("{:.2}", figure(row, "us_per_decision")),
            format!("{:.2}", figure(row, "us_per_decision") / first),
            format!("{:.2}", figure(row, "peak_bytes") / 1e9),
        ]
    });
    let header =
        ["jobs", "workers", "waited", "decisions", "s", "core s", "µs", "× first", "peak GB"];
    let table = print::table(&header, cells.collect(), &(0..header.len()).collect::<Vec<_>>());
    format!(
        "A replay under {}: made-up jobs ask for {:.0} % of the fleet. A decision is one pass\n\
         with all that is taken in before it; `µs` are those on the core, for each.\n\n{table}",
        options.preset,
        LOAD * 100.0
    )
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn float(count: u64) -> f64 {
    count as f64
}
