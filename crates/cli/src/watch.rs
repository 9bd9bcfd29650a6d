//! `maitre watch`: what becomes of jobs, as it happens.

use clap::Args;
use proto::v1;
use serde_json::json;
use tonic::{Response, Status, Streaming};

use crate::away::Away;
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
    let mut watch = Watch { options, filter, open: options.ids.clone(), is_again: false };
    let mut away = Away::default();
    loop {
        let ended = match watch.begin(&mut client).await {
            Ok(stream) => {
                away.is_over();
                watch.follow(&mut client, stream).await?
            }
            Err(status) => Some(status),
        };
        match ended {
            None => return Ok(()),
            Some(status) => away.bear(&status).await?,
        }
    }
}

struct Watch<'a> {
    options: &'a Options,
    filter: v1::JobFilter,
    /// Those of the named jobs that are not done.
    open: Vec<u64>,
    /// Whether something may have happened since it was watched before.
    is_again: bool,
}

impl Watch<'_> {
    async fn begin(&self, client: &mut Jobs) -> Result<Streaming<v1::WatchResponse>, Status> {
        let filter = Some(self.filter.clone());
        let request = v1::WatchRequest { filter, ids: self.options.ids.clone() };
        client.watch(request).await.map(Response::into_inner)
    }

    /// Prints what changes. Answers why there is no more, if it is not because all are done.
    async fn follow(
        &mut self,
        client: &mut Jobs,
        mut stream: Streaming<v1::WatchResponse>,
    ) -> Result<Option<Status>, Failure> {
        if self.is_again {
            self.tell_missed()?;
        }
        self.is_again = true;
        // What is done already will not change.
        self.open = unfinished(client, std::mem::take(&mut self.open)).await?;
        while self.options.ids.is_empty() || !self.open.is_empty() {
            let response = match stream.message().await {
                Ok(Some(response)) => response,
                Ok(None) => return Ok(None),
                Err(status) => return Ok(Some(status)),
            };
            if response.missed {
                self.tell_missed()?;
                self.open = unfinished(client, std::mem::take(&mut self.open)).await?;
            }
            for change in response.changes {
                print::data(&if self.options.json { machine(&change) } else { line(&change) })?;
                if change.state().known().is_some_and(model::State::is_terminal) {
                    self.open.retain(|id| *id != change.id);
                }
            }
        }
        Ok(None)
    }

    fn tell_missed(&self) -> Result<(), Failure> {
        print::note("some changes were missed; `maitre jobs` shows how jobs are now");
        if self.options.json {
            print::data(&json!({ "missed": true }).to_string())?;
        }
        Ok(())
    }
}

/// Those of the jobs that are not done; the others are told.
async fn unfinished(client: &mut Jobs, ids: Vec<u64>) -> Result<Vec<u64>, Failure> {
    let mut open = Vec::new();
    for id in ids {
        let job = client.get(v1::GetRequest { id }).await;
        let job = job.map_err(|status| refused(&status))?.into_inner().job.unwrap_or_default();
        if job.finished_ms.is_some() {
            print::data(&crate::job::describe(&job))?;
        } else {
            open.push(id);
        }
    }
    Ok(open)
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
