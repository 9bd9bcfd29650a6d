//! `judge traces`: one table of traces, policies and sources of estimates, relative to FIFO.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sim::catalog::{Catalog, Trace};
use sim::{Baseline, Fleet, Workload};

use crate::arguments::Arguments;
use crate::figures::Figures;
use crate::markdown::aligned;
use crate::parallel;
use crate::policy::{Kind, Policy};

/// The list of the repository.
const LIST: &str = include_str!("../../traces/judge.toml");

/// A trace that is there.
struct Loaded {
    trace: Trace,
    workload: Workload,
    fleet: Fleet,
}

/// A policy keeps p99 and the longest wait below so many times those of FIFO.
const TIMES_MAX: f64 = 2.0;

/// One row of the table.
struct Row<'a> {
    loaded: &'a Loaded,
    policy: &'a Policy,
    /// `None` for a baseline, which has true lengths or none.
    source: Option<String>,
}

/// Replays and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let text = match &arguments.list {
        Some(path) => fs::read_to_string(path).map_err(|own| format!("the list: {own}"))?,
        None => LIST.to_owned(),
    };
    let catalog = Catalog::parse("the list", &text).map_err(|error| error.to_string())?;
    let loaded = load(catalog, arguments)?;
    let mut policies =
        vec![Policy { name: "fifo".to_owned(), kind: Kind::Baseline(Baseline::Fifo) }];
    for text in arguments.policies.iter().filter(|text| *text != "fifo") {
        policies.push(Policy::parse(text)?);
    }
    let rows = rows(&loaded, &policies, arguments);
    let figures = all(&rows, arguments)?;
    print!("{}", table(&rows, &figures));
    Ok(ExitCode::SUCCESS)
}

/// The traces that are there; the others are named.
fn load(catalog: Catalog, arguments: &Arguments) -> Result<Vec<Loaded>, String> {
    let ours = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/traces"));
    let folders: Vec<PathBuf> = arguments.folders.iter().cloned().chain([ours]).collect();
    let (mut loaded, mut absent) = (Vec::new(), Vec::new());
    for trace in catalog.traces {
        if !arguments.only.is_empty() && !arguments.only.contains(&trace.name) {
            continue;
        }
        match trace.load(&folders).map_err(|error| error.to_string())? {
            Some((workload, fleet)) => loaded.push(Loaded { trace, workload, fleet }),
            None => absent.push(trace.jobs),
        }
    }
    let found: Vec<&str> = loaded.iter().map(|own| own.trace.jobs.as_str()).collect();
    eprintln!("found: {}", found.join(", "));
    if !absent.is_empty() {
        eprintln!("not found, left out: {}", absent.join(", "));
    }
    Ok(loaded)
}

fn rows<'a>(loaded: &'a [Loaded], policies: &'a [Policy], arguments: &Arguments) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for loaded in loaded {
        for policy in policies {
            let all = match &policy.kind {
                Kind::Baseline(_) => vec![None],
                Kind::Preset(_) => loaded.trace.estimates.iter().cloned().map(Some).collect(),
            };
            let asked = &arguments.estimates;
            let is_asked = |source: &Option<String>| {
                asked.is_empty() || source.as_ref().is_none_or(|own| asked.contains(own))
            };
            let sources = all.into_iter().filter(is_asked);
            rows.extend(sources.map(|source| Row { loaded, policy, source }));
        }
    }
    rows
}

/// The figures of all rows; a few replays run at once.
fn all(rows: &[Row<'_>], arguments: &Arguments) -> Result<Vec<Figures>, String> {
    parallel::map(rows, arguments.n_threads, |at, row| {
        let figures = figures(row, arguments.seed);
        eprintln!("{} of {}: {}", at + 1, rows.len(), row.title());
        figures
    })
}

fn figures(row: &Row<'_>, seed: u64) -> Result<Figures, String> {
    let Loaded { workload, fleet, .. } = row.loaded;
    let source = row.source.as_deref().unwrap_or("perfect");
    Figures::new(row.policy, source, (workload, fleet), seed)
}

impl Row<'_> {
    fn title(&self) -> String {
        let (trace, policy) = (&self.loaded.trace.name, &self.policy.name);
        match &self.source {
            Some(source) => format!("{trace}, {policy}, estimates from {source}"),
            None => format!("{trace}, {policy}"),
        }
    }
}

/// Each figure, and in brackets how many times that of FIFO on the same trace it is.
fn table(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let header = ["trace", "policy", "estimates", "mean s", "p99 s", "longest s", "slowdown"];
    let header = header.map(str::to_owned).into_iter().chain(["share error".to_owned()]);
    let mut lines: Vec<Vec<String>> = vec![header.collect()];
    let mut fifo = None;
    for (row, own) in rows.iter().zip(figures) {
        if row.policy.name == "fifo" {
            fifo = Some(own.waits);
        }
        let mut cells = vec![row.loaded.trace.name.clone(), format!("`{}`", row.policy.name)];
        cells.push(row.source.clone().unwrap_or_default());
        for (at, figure) in own.waits.into_iter().enumerate() {
            let decimals = usize::from(figure < 1_000.0);
            let times = fifo.map_or(1.0, |fifo| figure / fifo[at].max(f64::MIN_POSITIVE));
            cells.push(format!("{figure:.decimals$} ({times:.2})"));
        }
        cells.push(own.error.map_or_else(String::new, |error| format!("{:.1} %", error * 100.0)));
        lines.push(cells);
    }
    aligned(&lines, 3) + &too_long(rows, figures)
}

/// Names the rows with a p99 or a longest wait of more than [`TIMES_MAX`] times that of FIFO.
fn too_long(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let mut titles = Vec::new();
    let mut fifo = [0.0; 4];
    for (row, Figures { waits, .. }) in rows.iter().zip(figures) {
        if row.policy.name == "fifo" {
            fifo = *waits;
        }
        if (1..=2).any(|at| waits[at] > TIMES_MAX * fifo[at]) {
            titles.push(format!("- {}\n", row.title()));
        }
    }
    let n_titles = titles.len();
    format!(
        "\np99 or longest wait above {TIMES_MAX} times that of FIFO: {n_titles} of {} rows\n{}",
        rows.len(),
        titles.concat()
    )
}
