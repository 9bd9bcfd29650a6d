//! `maitre watch`: what becomes of jobs, as it happens.

use clap::Args;
use proto::v1;
use serde_json::json;
use tonic::{Response, Status, Streaming};

use crate::away::Away;
use crate::client::{Jobs, Target, job_number};
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
        let mut unanswered = self.sort_out(client).await?;
        while unanswered.is_none() && (self.options.ids.is_empty() || !self.open.is_empty()) {
            let response = match stream.message().await {
                Ok(Some(response)) => response,
                Ok(None) => return Ok(Some(Status::unavailable("the answer broke off"))),
                Err(status) => return Ok(Some(status)),
            };
            if response.missed {
                self.tell_missed()?;
                unanswered = self.sort_out(client).await?;
            }
            for change in response.changes {
                self.tell(&change)?;
                if change.state().known().is_some_and(model::State::is_terminal) {
                    self.open.retain(|id| *id != change.id);
                }
            }
        }
        Ok(unanswered)
    }

    /// Tells of the named jobs that are done. Answers why it is not known which, if it is not.
    async fn sort_out(&mut self, client: &mut Jobs) -> Result<Option<Status>, Failure> {
        for id in self.open.clone() {
            let job = match client.get(v1::GetRequest { id }).await {
                Ok(response) => response.into_inner().job.unwrap_or_default(),
                Err(status) => return Ok(Some(status)),
            };
            if job.finished_ms.is_none() {
                continue;
            }
            self.open.retain(|open| *open != id);
            if self.options.json {
                self.tell(&last_change(job))?;
            } else {
                print::data(&crate::job::describe(&job))?;
            }
        }
        Ok(None)
    }

    fn tell(&self, change: &v1::JobChange) -> Result<(), Failure> {
        print::data(&if self.options.json { machine(change) } else { line(change) })
    }

    fn tell_missed(&self) -> Result<(), Failure> {
        print::note("some changes were missed; `maitre jobs` shows how jobs are now");
        if self.options.json {
            print::data(&json!({ "missed": true }).to_string())?;
        }
        Ok(())
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
