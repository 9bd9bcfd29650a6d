//! `maitre types`: what kinds of jobs there are, who takes them, and what they took.

use proto::v1;
use serde_json::{Value, json};

use crate::admin::ListOptions;
use crate::client::{Target, refused};
use crate::print::{self, Failure};

/// Lists the types.
pub(crate) async fn run(options: &ListOptions, target: &Target) -> Result<(), Failure> {
    let response = target.admin().await?.types(v1::TypesRequest {}).await;
    let types = response.map_err(|status| refused(&status))?.into_inner().types;
    if options.json() {
        return print::json(&types.iter().map(machine).collect::<Vec<Value>>());
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
    let seconds = |ms: u64| match ms {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    };
    vec![
        kind.name.clone(),
        kind.blocked.to_string(),
        kind.queued.to_string(),
        kind.running.to_string(),
        kind.workers.to_string(),
        kind.duration_ms.map(seconds).unwrap_or_default(),
        kind.ram_peak_mb.map(|mb| format!("{mb} MB")).unwrap_or_default(),
        kind.json.clone(),
    ]
}

fn machine(kind: &v1::TypeStatus) -> Value {
    let document: Option<Value> = serde_json::from_str(&kind.json).ok();
    json!({
        "type": kind.name,
        "blocked": kind.blocked,
        "queued": kind.queued,
        "running": kind.running,
        "workers": kind.workers,
        "samples": kind.samples,
        "duration_ms": kind.duration_ms,
        "ram_peak_mb": kind.ram_peak_mb,
        "document": document,
    })
}
