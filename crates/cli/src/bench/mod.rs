//! `maitre bench decide`: how fast decisions are, and how that grows with the queue. The other
//! benchmark is in `run/`.

mod workload;
mod growth;
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
        return print::data(&serde_json::to_string_pretty(&all).context("write the figures down")?);
    }
    let mut text = growth::tables(&growth);
    for pull in &pulls {
        text += &pull.text();
    }
    text += &loading.text();
    print::data(&text)
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
