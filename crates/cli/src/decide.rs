//! `maitre decide`: one decision on a snapshot.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use model::{Action, Decision, Placement, Snapshot};
use snapshot::SnapshotError;

use crate::print::{self, Failure};

/// Options of `maitre decide`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre decide examples/kitchen.json --table
  maitre decide --policy aging < snapshot.json
  maitre decide quota.json --policy '{\"preset\":\"balanced\",\"reserve\":false}'")]
pub(crate) struct Options {
    /// The snapshot; `-` or nothing reads standard input.
    file: Option<PathBuf>,
    /// Decide by this policy instead of the snapshot's: a preset's name, or a JSON object.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// For people: tables instead of JSON.
    #[arg(long)]
    table: bool,
    /// Judge the decision by the independent checker, too; what it finds is an error.
    #[arg(long)]
    check: bool,
    /// Print the JSON Schema of a snapshot, and do nothing else.
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// Reads, decides, prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.schema {
        let schema = serde_json::to_string_pretty(&snapshot::schema());
        return print::data(&schema.context("write the schema down")?);
    }
    let text = read(options.file.as_deref())?;
    let mut snapshot = snapshot::parse(&text).map_err(|error| bad_input(&error))?;
    if let Some(policy) = &options.policy {
        snapshot.policy = snapshot::policy(policy).map_err(|error| bad_input(&error))?;
    }
    let decision = decide::decide(&snapshot);
    if options.check {
        judge(&snapshot, &decision)?;
    }
    let said = if options.table { tables(&decision) } else { snapshot::decision_text(&decision) };
    print::data(&said)
}

fn read(file: Option<&Path>) -> Result<String, Failure> {
    let file = file.filter(|file| *file != Path::new("-"));
    let name = file.map_or_else(|| "standard input".to_owned(), |file| file.display().to_string());
    let bytes = file.map_or_else(
        || {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        },
        fs::read,
    );
    let bytes = bytes.map_err(|error| Failure::Input {
        error: format!("cannot read `{name}`: {error}"),
        hint: Some("give the path of a snapshot, or pipe one in".to_owned()),
    })?;
    String::from_utf8(bytes).map_err(|error| Failure::Input {
        error: format!("`{name}` is not UTF-8 text: {error}"),
        hint: None,
    })
}

fn bad_input(error: &SnapshotError) -> Failure {
    Failure::Input { error: error.to_string(), hint: error.hint().map(ToOwned::to_owned) }
}

fn judge(snapshot: &Snapshot, decision: &Decision) -> Result<(), Failure> {
    let violations = decide::check::check(snapshot, decision);
    if violations.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(Failure::Other(anyhow::anyhow!("the decision breaks its rules:\n{}", told.join("\n"))))
}

/// A decision for people: what is done, then what waits.
fn tables(decision: &Decision) -> String {
    let mut done = Vec::new();
    for action in &decision.actions {
        match action {
            Action::Place(placement) => done.push(vec![
                "place".to_owned(),
                placement.job.to_string(),
                format!("on {}", placement.worker),
                placement.score.to_string(),
                points(placement),
            ]),
            Action::Preempt(preempt) => done.push(vec![
                "preempt".to_owned(),
                preempt.victim.to_string(),
                format!("on {}", preempt.worker),
                String::new(),
                format!("for job {}", preempt.preemptor),
            ]),
            // A deferred job is among the holds, with its reason.
            Action::Defer(_) => {}
        }
    }
    let holds = decision
        .holds
        .iter()
        .map(|hold| vec![hold.job.to_string(), hold.reason.name().to_owned(), hold.detail.clone()]);
    let holds: Vec<Vec<String>> = holds.collect();
    let mut text = String::new();
    if !done.is_empty() {
        text += &print::table(&["action", "job", "worker", "score", "why"], done, &[3]);
    }
    if !holds.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &print::table(&["held", "reason", "detail"], holds, &[]);
    }
    if text.is_empty() {
        text.push_str("nothing to decide\n");
    }
    text
}

fn points(placement: &Placement) -> String {
    let said: Vec<String> = placement
        .points
        .iter()
        .map(|said| format!("{} {}", said.rule.name(), said.points))
        .collect();
    said.join(", ")
}
