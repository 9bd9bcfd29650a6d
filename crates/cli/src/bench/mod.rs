//! `maitre bench decide`: how fast decisions are, and how that grows with the queue. The other
//! benchmark is in `run/`.

mod workload;
mod growth;
mod kinds;
mod rules;
mod loading;
mod machine;
pub(crate) mod run;
pub(crate) mod simulate;

use anyhow::Context;
use clap::Args;
use model::Preset;
use serde_json::json;

use crate::print::{self, Failure};

/// Options of `maitre bench decide`.
#[derive(Args)]
pub(crate) struct Options {
    /// Queue lengths.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000,1000000")]
    jobs: Vec<usize>,
    /// Numbers of workers.
    #[arg(long, value_delimiter = ',', default_value = "10,1000,10000")]
    workers: Vec<usize>,
    /// Only these presets.
    #[arg(long, value_delimiter = ',', value_name = "PRESET")]
    presets: Vec<String>,
    /// Measure only how decisions of `balanced` grow with these numbers of kinds of waiting jobs.
    #[arg(long, value_delimiter = ',', value_name = "N")]
    kinds: Vec<usize>,
    /// Only these ways in which kinds differ.
    #[arg(long, value_delimiter = ',', value_enum, requires = "kinds")]
    families: Vec<kinds::Family>,
    /// Seconds for each figure.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// For machines.
    #[arg(long)]
    json: bool,
    /// Measure one figure in this process.
    #[arg(long, hide = true)]
    alone: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let presets = chosen(&options.presets)?;
    if options.alone {
        let row = growth::measure_here(options, presets[0]);
        return print::data(&row.json().to_string());
    }
    let progress = machine::Progress::start();
    if !options.kinds.is_empty() {
        let rows = kinds::measure(&options.kinds, &options.families, options.seconds, &progress);
        progress.finish();
        return if options.json {
            write(&kinds::json(&rows))
        } else {
            print::data(&kinds::table(&rows))
        };
    }
    let growth = growth::measure(options, &presets, &progress)?;
    let pulls = presets
        .iter()
        .filter(|preset| matches!(preset, Preset::Simple | Preset::ResourceAware))
        .map(|preset| rules::measure(*preset, &progress))
        .collect::<Vec<_>>();
    let loading = loading::measure(&progress)?;
    progress.finish();
    if options.json {
        let all = json!({
            "decide": growth.iter().map(growth::Row::json).collect::<Vec<_>>(),
            "pull": pulls.iter().map(rules::Report::json).collect::<Vec<_>>(),
            "load": loading.json(),
        });
        return write(&all);
    }
    let mut text = growth::tables(&growth);
    for pull in &pulls {
        text += &pull.text();
    }
    text += &loading.text();
    print::data(&text)
}

fn write(figures: &serde_json::Value) -> Result<(), Failure> {
    print::data(&serde_json::to_string_pretty(figures).context("write the figures down")?)
}

fn chosen(names: &[String]) -> Result<Vec<Preset>, Failure> {
    if names.is_empty() {
        return Ok(Preset::ALL.to_vec());
    }
    let find = |name: &String| {
        Preset::from_name(name).ok_or_else(|| Failure::Input {
            error: format!("there is no preset `{name}`"),
            hint: Some(format!("one of {}", Preset::ALL.map(Preset::name).join(", "))),
        })
    };
    names.iter().map(find).collect()
}
