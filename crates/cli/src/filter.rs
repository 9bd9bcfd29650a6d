//! Which jobs a command is about, said by what they are like.

use clap::Args;
use proto::v1;

use crate::client::{Jobs, refused};
use crate::print::Failure;
use crate::spec::pairs;

/// Filters; a job must pass all that are given.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterOptions {
    /// Whose.
    #[arg(long)]
    tenant: Option<String>,
    /// In one of these states: blocked, queued, claimed, running, succeeded, failed, cancelled.
    #[arg(long, value_delimiter = ',')]
    state: Vec<String>,
    /// Of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// With this label; may be given several times.
    #[arg(long = "label", short, value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// In this group.
    #[arg(long)]
    group: Option<String>,
    /// Submitted on behalf of this job.
    #[arg(long, value_name = "ID")]
    parent: Option<u64>,
    /// On this worker now, or last.
    #[arg(long)]
    worker: Option<String>,
    /// That ended for this reason: exhausted, permanent, stale, poison, too-late, asked,
    /// dependency.
    #[arg(long)]
    cause: Option<String>,
}

impl FilterOptions {
    /// Jobs that ended for a reason.
    pub(crate) fn of_cause(cause: &str) -> Self {
        Self { cause: Some(cause.to_owned()), ..Self::default() }
    }

    /// As the scheduler wants it.
    pub(crate) fn wire(&self) -> Result<v1::JobFilter, Failure> {
        let states: Result<Vec<i32>, Failure> = self.state.iter().map(|name| state(name)).collect();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(v1::JobFilter {
            tenant: text(&self.tenant),
            states: states?,
            r#type: text(&self.kind),
            labels: pairs("--label", &self.labels)?.into_iter().collect(),
            group: text(&self.group),
            parent: self.parent.unwrap_or_default(),
            worker: text(&self.worker),
            cause: text(&self.cause),
        })
    }
}

fn state(name: &str) -> Result<i32, Failure> {
    let state = model::State::named(name).ok_or_else(|| {
        let all: Vec<&str> = model::State::ALL.iter().map(|state| state.name()).collect();
        Failure::Input {
            error: format!("`--state {name}` is no state"),
            hint: Some(format!("the states are {}", all.join(", "))),
        }
    })?;
    Ok(v1::State::from(state).into())
}

/// All jobs that pass a filter, newest first: their ids and states.
pub(crate) async fn all(
    client: &mut Jobs,
    filter: &v1::JobFilter,
) -> Result<Vec<(u64, v1::State)>, Failure> {
    let page_size = u32::try_from(model::maxima::PAGE_MAX).unwrap_or(u32::MAX);
    let (mut found, mut before) = (Vec::new(), 0);
    loop {
        let request = v1::ListRequest { filter: Some(filter.clone()), before, page_size };
        let page = client.list(request).await.map_err(|status| refused(&status))?.into_inner();
        found.extend(page.jobs.iter().map(|job| (job.id, job.state())));
        before = page.next_before;
        if before == 0 {
            return Ok(found);
        }
    }
}
