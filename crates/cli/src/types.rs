//! `maitre types`: what kinds of jobs there are, who takes them, and what holds for them.

use std::time::Duration;

use clap::{Args, Subcommand};
use proto::{json, v1};
use serde_json::{Value, json};

use crate::client::{Target, refused};
use crate::print::{self, Failure};
use crate::spec::pairs;
use crate::view;

/// How often, and how many times, others are looked at until they go by what was set.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_MAX: usize = 30;

/// Options of `maitre types`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre types
  maitre types show vacuum
  maitre types set vacuum interval=17m jobs_max=16 admin.threshold=0.5
  maitre types unset vacuum interval
  maitre types history vacuum")]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// For machines.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Show what holds for a type, and who says so.
    Show(One),
    /// Change what holds for a type, at once.
    Set {
        /// The type.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// A field of the policy, `admin.FIELD` or `worker.FIELD`. Lengths have units: `17m`.
        #[arg(required = true, value_name = "FIELD=VALUE")]
        values: Vec<String>,
    },
    /// Let the descriptor or the default hold again.
    Unset {
        /// The type.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// The fields.
        #[arg(required = true)]
        fields: Vec<String>,
    },
    /// Show the last runs: ten that went well, and ten that did not.
    History(One),
    /// Ask a worker again what it says about a type.
    Describe(One),
}

/// One type.
#[derive(Args)]
struct One {
    /// The type.
    #[arg(value_name = "TYPE")]
    kind: String,
}

/// Lists the types, or does something about one.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    match &options.what {
        None => list(options, target).await,
        Some(What::Show(one)) => {
            let request = v1::TypeRequest { r#type: one.kind.clone() };
            let response = target.detection().await?.r#type(request).await;
            show(options, &response.map_err(|status| refused(&status))?.into_inner())
        }
        Some(What::Set { kind, values }) => {
            let values = pairs("", values)?.into_iter().collect();
            set(options, target, kind, values).await
        }
        Some(What::Unset { kind, fields }) => {
            let values = fields.iter().map(|field| (field.clone(), String::new())).collect();
            set(options, target, kind, values).await
        }
        Some(What::History(one)) => history(options, target, &one.kind).await,
        Some(What::Describe(one)) => {
            let request = v1::DescribeTypeRequest { r#type: one.kind.clone() };
            let response = target.detection().await?.describe(request).await;
            let worker = response.map_err(|status| refused(&status))?.into_inner().worker;
            if options.json {
                return print::json(&json!({ "type": one.kind, "worker": worker }));
            }
            print::data(&match worker.as_str() {
                "" => format!("another scheduler asks a worker about type {}", one.kind),
                worker => format!("worker {worker} is asked about type {}", one.kind),
            })
        }
    }
}

async fn set(
    options: &Options,
    target: &Target,
    kind: &str,
    values: std::collections::HashMap<String, String>,
) -> Result<(), Failure> {
    let mut detection = target.detection().await?;
    let request = v1::SetTypeRequest { r#type: kind.to_owned(), values };
    let response = detection.set_type(request).await;
    let mut now = response.map_err(|status| refused(&status))?.into_inner();
    // Other schedulers hear of it at once, and say so within a second.
    for _ in 0..LOOKS_MAX {
        if now.schedulers_current >= now.schedulers {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let request = v1::TypeRequest { r#type: kind.to_owned() };
        let response = detection.r#type(request).await;
        now = response.map_err(|status| refused(&status))?.into_inner();
    }
    show(options, &now)
}

fn show(options: &Options, kind: &v1::TypeResponse) -> Result<(), Failure> {
    if options.json {
        return print::json(&json::kind(kind));
    }
    print::data(&heading(kind))?;
    let policy = kind.policy.iter();
    let rows = policy
        .map(|one| vec![one.name.clone(), one.value.clone(), one.origin.clone(), one.help.clone()]);
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        print::data(&print::table(&["field", "value", "says", "meaning"], rows, &[]))?;
    }
    let admin = kind.admin.iter().map(|one| ("admin", one));
    let worker = kind.worker.iter().map(|one| ("worker", one));
    let rows: Vec<Vec<String>> = admin.chain(worker).map(config_row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    print::data(&print::table(&["field", "value", "says", "meaning"], rows, &[]))
}

fn heading(kind: &v1::TypeResponse) -> String {
    let mut lines = vec![match kind.display_name.as_str() {
        "" => kind.r#type.clone(),
        name => format!("{} ({name}): {}", kind.r#type, kind.description),
    }];
    let detectors = match (kind.detectors.len(), kind.elsewhere) {
        (0, false) => "no worker can look for it now".to_owned(),
        (0, true) => "looked for by workers of another scheduler".to_owned(),
        _ => format!("looked for by {}", kind.detectors.join(", ")),
    };
    let due = kind.next_due_ms.map(|at| format!("next {}", view::ago(at, kind.now_ms)));
    let last =
        kind.last_success_ms.map(|at| format!("last success {}", view::ago(at, kind.now_ms)));
    // Nothing is set or described for a type without detection: no worker is to look for it.
    let detectors = Some(detectors).filter(|_| !kind.policy.is_empty());
    let parts: Vec<String> = [detectors, due, last].into_iter().flatten().collect();
    if !parts.is_empty() {
        lines.push(parts.join("; "));
    }
    if let Some(run) = &kind.running {
        let until = view::ago(run.until_ms, kind.now_ms);
        lines.push(format!(
            "run {} is {}: {} proposed, {} taken; its time is out {until}",
            run.run, run.phase, run.proposed, run.taken
        ));
    }
    if let Some(known) = &kind.prediction {
        lines.push(prediction(known));
    }
    if kind.schedulers > 1 {
        let (n_current, n) = (kind.schedulers_current, kind.schedulers);
        lines.push(format!("{n_current} of {n} schedulers go by what is set"));
    }
    lines.join("\n")
}

/// How long jobs of the type take, and how far predictions of that are to be believed.
fn prediction(known: &v1::TypePrediction) -> String {
    let (typical, n_judged) = (took(known.typical_ms), known.judged);
    let percent = known.skill_thousandths / 10;
    let runs = if n_judged == 1 { "run" } else { "runs" };
    format!("typical length {typical}; prediction skill {percent} %, from {n_judged} judged {runs}")
}

fn took(ms: u64) -> String {
    match ms {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

fn config_row((place, value): (&str, &v1::ConfigValue)) -> Vec<String> {
    let field: Value = serde_json::from_str(&value.field_json).unwrap_or_default();
    let says = if value.is_set { "set" } else { "descriptor" };
    let help = field["help"].as_str().unwrap_or_default();
    // A text is shown as it is set, without quotes.
    let text = serde_json::from_str::<String>(&value.value);
    let text = text.unwrap_or_else(|_| value.value.clone());
    vec![format!("{place}.{}", value.name), text, says.to_owned(), help.to_owned()]
}

async fn history(options: &Options, target: &Target, kind: &str) -> Result<(), Failure> {
    let request = v1::RunsRequest { r#type: kind.to_owned() };
    let response = target.detection().await?.runs(request).await;
    let runs = response.map_err(|status| refused(&status))?.into_inner().runs;
    if options.json {
        return print::json(&runs.iter().map(json::run).collect::<Vec<Value>>());
    }
    if runs.is_empty() {
        print::note(&format!("no runs of type {kind}\n\nhint: `maitre detect {kind}` starts one"));
        return Ok(());
    }
    let now = target.now_ms().await?;
    let rows = runs.iter().map(|run| run_row(run, now)).collect();
    let header = [
        "run",
        "status",
        "began",
        "took",
        "worker",
        "proposed",
        "taken",
        "done",
        "failed",
        "called off",
        "why",
    ];
    print::data(&print::table(&header, rows, &[5, 6, 7, 8, 9]))
}

fn run_row(run: &v1::RunRecord, now: i64) -> Vec<String> {
    let mut why: Vec<String> =
        Some(run.error.clone()).filter(|e| !e.is_empty()).into_iter().collect();
    let mut refused: Vec<(&String, &u32)> = run.refused.iter().collect();
    refused.sort();
    why.extend(refused.iter().map(|(reason, n)| format!("{n} {reason}")));
    vec![
        run.run.clone(),
        run.status.clone(),
        view::ago(run.started_ms, now),
        view::length((run.ended_ms - run.started_ms) / 1_000),
        run.worker.clone(),
        run.proposed.to_string(),
        run.taken.to_string(),
        run.succeeded.to_string(),
        run.failed.to_string(),
        run.cancelled.to_string(),
        why.join(", "),
    ]
}

async fn list(options: &Options, target: &Target) -> Result<(), Failure> {
    let response = target.admin().await?.types(v1::TypesRequest {}).await;
    let types = response.map_err(|status| refused(&status))?.into_inner().types;
    if options.json {
        return print::json(&types.iter().map(json::type_load).collect::<Vec<Value>>());
    }
    if types.is_empty() {
        print::note(
            "no types\n\nhint: a type is there once a job, a worker or `maitre set type` names it",
        );
        return Ok(());
    }
    let rows = types.iter().map(row).collect();
    let header = ["type", "blocked", "queued", "running", "workers", "takes", "ram", "set"];
    print::data(&print::table(&header, rows, &[1, 2, 3, 4, 5, 6]))
}

fn row(kind: &v1::TypeStatus) -> Vec<String> {
    vec![
        kind.name.clone(),
        kind.blocked.to_string(),
        kind.queued.to_string(),
        kind.running.to_string(),
        kind.workers.to_string(),
        kind.duration_ms.map(took).unwrap_or_default(),
        kind.ram_peak_mb.map(|mb| format!("{mb} MB")).unwrap_or_default(),
        kind.json.clone(),
    ]
}
