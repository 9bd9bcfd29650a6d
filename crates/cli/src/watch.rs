//! `maitre watch`: what becomes of jobs, as it happens.

use clap::Args;
use proto::v1;
use serde_json::json;

use crate::client::{Jobs, Target, job_number, refused};
use crate::print::{self, Failure};
use crate::view;

/// Options of `maitre watch`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these jobs; ends when all of them are done.
    #[arg(value_parser = job_number)]
    ids: Vec<u64>,
    /// Only jobs of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only jobs of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// For machines: one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Prints a line for each change.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    let filter = v1::JobFilter {
        tenant: options.tenant.clone().unwrap_or_default(),
        r#type: options.kind.clone().unwrap_or_default(),
        ..v1::JobFilter::default()
    };
    let mut client = target.jobs().await?;
    let request = v1::WatchRequest { filter: Some(filter), ids: options.ids.clone() };
    let stream = client.watch(request).await.map_err(|status| refused(&status))?;
    let mut stream = stream.into_inner();
    // What is done already will not change.
    let mut open = options.unfinished(&mut client, options.ids.clone()).await?;
    while options.ids.is_empty() || !open.is_empty() {
        let response = stream.message().await.map_err(|status| refused(&status))?;
        let Some(response) = response else { break };
        if response.missed {
            print::note("some changes were missed; `maitre jobs` shows how jobs are now");
            if options.json {
                print::data(&serde_json::json!({ "missed": true }).to_string())?;
            }
            open = options.unfinished(&mut client, open).await?;
        }
        for change in response.changes {
            print::data(&if options.json { machine(&change) } else { line(&change) })?;
            if change.state().known().is_some_and(model::State::is_terminal) {
                open.retain(|id| *id != change.id);
            }
        }
    }
    Ok(())
}

impl Options {
    /// Those of the jobs that are not done; the others are told.
    async fn unfinished(&self, client: &mut Jobs, ids: Vec<u64>) -> Result<Vec<u64>, Failure> {
        let mut open = Vec::new();
        for id in ids {
            let job = client.get(v1::GetRequest { id }).await;
            let job = job.map_err(|status| refused(&status))?.into_inner().job.unwrap_or_default();
            if job.finished_ms.is_none() {
                open.push(id);
            } else if self.json {
                print::data(&machine(&last_change(job)))?;
            } else {
                print::data(&crate::job::describe(&job))?;
            }
        }
        Ok(open)
    }
}

/// What whoever had watched would have seen last of a job.
fn last_change(job: v1::Job) -> v1::JobChange {
    let spec = job.spec.unwrap_or_default();
    v1::JobChange {
        id: job.id,
        tenant: spec.tenant,
        r#type: spec.r#type,
        state: job.state,
        at_ms: job.finished_ms.unwrap_or_default(),
        worker: job.worker,
        progress: job.progress,
    }
}

fn line(change: &v1::JobChange) -> String {
    let state = proto::json::state_name(change.state());
    let worker = Some(&change.worker).filter(|worker| !worker.is_empty());
    let worker = worker.map(|worker| format!(" on {worker}")).unwrap_or_default();
    let progress =
        change.progress.as_ref().map(|progress| format!(", {}", view::progress(progress)));
    format!("job {} {state}{worker}{}", change.id, progress.unwrap_or_default())
}

fn machine(change: &v1::JobChange) -> String {
    let progress = change.progress.as_ref();
    json!({
        "id": change.id,
        "tenant": change.tenant,
        "type": change.r#type,
        "state": proto::json::state_name(change.state()),
        "at_ms": change.at_ms,
        "worker": change.worker,
        "progress": progress.map(|progress| progress.fraction),
        "note": progress.map(|progress| &progress.note),
        "stage": progress.map(|progress| &progress.stage),
    })
    .to_string()
}
