//! `maitre cancel`, `retry`, `hold`, `release` and `priority`: jobs that people change.

use clap::Args;
use proto::v1;
use serde_json::json;

use crate::client::{Target, refused};
use crate::print::{self, Failure};
use crate::view;

/// Options of commands that change jobs.
#[derive(Args)]
pub(crate) struct Options {
    /// The jobs.
    #[arg(required = true)]
    ids: Vec<u64>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre priority`.
#[derive(Args)]
pub(crate) struct PriorityOptions {
    /// Higher is sooner, from -1000 to 1000.
    #[arg(allow_negative_numbers = true)]
    priority: i32,
    #[command(flatten)]
    jobs: Options,
}

/// Calls jobs off.
pub(crate) async fn cancel(options: &Options, target: &Target) -> Result<(), Failure> {
    let request = v1::CancelRequest { ids: options.ids.clone() };
    let response = target.jobs().await?.cancel(request).await;
    tell(options, "cancelled", response.map_err(|status| refused(&status))?.into_inner())
}

/// Takes up jobs again.
pub(crate) async fn retry(options: &Options, target: &Target) -> Result<(), Failure> {
    let request = v1::RetryRequest { ids: options.ids.clone() };
    let response = target.jobs().await?.retry(request).await;
    tell(options, "queued again", response.map_err(|status| refused(&status))?.into_inner())
}

/// Keeps jobs in the queue.
pub(crate) async fn hold(options: &Options, target: &Target) -> Result<(), Failure> {
    amend(options, target, v1::amend_request::Change::OnHold(true), "on hold").await
}

/// Lets jobs go again.
pub(crate) async fn release(options: &Options, target: &Target) -> Result<(), Failure> {
    amend(options, target, v1::amend_request::Change::OnHold(false), "released").await
}

/// Gives jobs another priority.
pub(crate) async fn priority(options: &PriorityOptions, target: &Target) -> Result<(), Failure> {
    let change = v1::amend_request::Change::Priority(options.priority);
    let done = format!("has priority {}", options.priority);
    amend(&options.jobs, target, change, &done).await
}

async fn amend(
    options: &Options,
    target: &Target,
    change: v1::amend_request::Change,
    done: &str,
) -> Result<(), Failure> {
    let request = v1::AmendRequest { ids: options.ids.clone(), change: Some(change) };
    let response = target.jobs().await?.amend(request).await;
    tell(options, done, response.map_err(|status| refused(&status))?.into_inner())
}

/// Says of each job what became of it; exit code 1 if one was not changed.
fn tell(options: &Options, done: &str, response: v1::ChangeResponse) -> Result<(), Failure> {
    let changes = response.changes;
    if options.json {
        let changes: Vec<serde_json::Value> = changes.iter().map(change).collect();
        print::json(&changes)?;
    } else {
        let lines = changes.iter().map(|change| {
            let is_stopping = matches!(change.state(), v1::State::Claimed | v1::State::Running);
            match (change.changed, is_stopping && done == "cancelled") {
                (true, true) => format!("job {} stopping", change.id),
                (true, false) => format!("job {} {done}", change.id),
                (false, _) => format!("job {} unchanged: {}", change.id, change.problem),
            }
        });
        print::data(&lines.collect::<Vec<String>>().join("\n"))?;
    }
    if changes.iter().all(|change| change.changed) { Ok(()) } else { Err(Failure::Exit(1)) }
}

fn change(change: &v1::Change) -> serde_json::Value {
    json!({
        "id": change.id,
        "changed": change.changed,
        "state": view::state_name(change.state()),
        "problem": change.problem,
    })
}
