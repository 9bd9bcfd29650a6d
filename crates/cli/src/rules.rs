//! `maitre rules`: every rule there is.

use std::fmt::Write;

use anyhow::Context;
use clap::Args;
use decide::rules;

use crate::print::{self, Failure};

/// Options of `maitre rules`.
#[derive(Args)]
pub(crate) struct Options {
    /// For machines.
    #[arg(long)]
    json: bool,
    /// As the page `docs/rules.md`.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Prints every rule.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.json {
        let rules: Vec<serde_json::Value> = rules::ALL
            .iter()
            .map(|sheet| {
                serde_json::json!({
                    "rule": sheet.rule.name(),
                    "rewards": sheet.rewards,
                    "range": sheet.range,
                    "presets": presets(sheet),
                })
            })
            .collect();
        return print::data(&serde_json::to_string_pretty(&rules).context("write the rules down")?);
    }
    if options.markdown {
        return print::data(&page());
    }
    let rows = rules::ALL.iter().map(|sheet| {
        vec![
            sheet.rule.name().to_owned(),
            sheet.range.to_owned(),
            presets(sheet).join(", "),
            sheet.rewards.to_owned(),
        ]
    });
    print::data(&print::table(&["rule", "range", "presets", "rewards"], rows.collect(), &[]))
}

fn presets(sheet: &decide::Sheet) -> Vec<&'static str> {
    rules::presets_with(sheet).into_iter().map(model::Preset::name).collect()
}

/// All rules as a page of Markdown.
fn page() -> String {
    let mut page = String::from(
        "# Rules\n\n\
         This page is for operators who change a policy. `cargo xtask docs` writes it.\n\n\
         A scoring rule gives points to a job, or to a job on a worker. Points have three\n\
         decimals and are added exactly. A veto is not a number: no points outweigh it.\n\
         A policy can change the weight of a rule, or switch it off:\n\
         `{ \"preset\": \"balanced\", \"rules\": { \"hint\": 0 } }`.\n\n\
         | rule | rewards | points | presets |\n| --- | --- | --- | --- |\n",
    );
    for sheet in rules::ALL {
        let presets = presets(sheet);
        let presets =
            if presets.is_empty() { "off by default".to_owned() } else { presets.join(", ") };
        let (rule, rewards, range) = (sheet.rule.name(), sheet.rewards, sheet.range);
        writeln!(page, "| `{rule}` | {rewards} | {range} | {presets} |")
            .expect("writing to a string does not fail");
    }
    page
}
