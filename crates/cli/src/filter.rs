//! Which jobs a command is about, said by what they are like.

use clap::Args;
use clap::builder::PossibleValuesParser;
use model::maxima::PAGE_MAX;
use model::{Cause, State};
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
    /// In one of these states.
    #[arg(long, value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(State::ALL.map(State::name)))]
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
    /// That ended for this reason.
    #[arg(long, value_parser = PossibleValuesParser::new(Cause::ALL.map(Cause::name)))]
    cause: Option<String>,
}

impl FilterOptions {
    /// Jobs that ended for a reason.
    pub(crate) fn of_cause(cause: &str) -> Self {
        Self { cause: Some(cause.to_owned()), ..Self::default() }
    }

    /// As the scheduler wants it.
    pub(crate) fn wire(&self) -> Result<v1::JobFilter, Failure> {
        let states = self.state.iter().filter_map(|name| State::named(name));
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(v1::JobFilter {
            tenant: text(&self.tenant),
            states: states.map(|state| v1::State::from(state).into()).collect(),
            r#type: text(&self.kind),
            labels: pairs("--label", &self.labels)?.into_iter().collect(),
            group: text(&self.group),
            parent: self.parent.unwrap_or_default(),
            worker: text(&self.worker),
            cause: text(&self.cause),
        })
    }
}

/// Jobs that pass a filter, newest first and older than `before`: at most so many, in as many
/// pages as that takes.
pub(crate) async fn newest(
    client: &mut Jobs,
    filter: &v1::JobFilter,
    before: u64,
    max: u32,
) -> Result<v1::ListResponse, Failure> {
    let mut found = v1::ListResponse { jobs: Vec::new(), next_before: before };
    loop {
        let page_size = page_room(max, found.jobs.len());
        let (filter, before) = (Some(filter.clone()), found.next_before);
        let request = v1::ListRequest { filter, before, page_size };
        let page = client.list(request).await.map_err(|status| refused(&status))?.into_inner();
        found.jobs.extend(page.jobs);
        found.next_before = page.next_before;
        if found.next_before == 0 || page_room(max, found.jobs.len()) == 0 {
            return Ok(found);
        }
    }
}

/// How many of `max` the next page is to have, if so many are there: 0 means that this is all.
pub(crate) fn page_room(max: u32, n_found: usize) -> u32 {
    let page_max = u32::try_from(PAGE_MAX).unwrap_or(u32::MAX);
    max.saturating_sub(u32::try_from(n_found).unwrap_or(u32::MAX)).min(page_max)
}

/// All jobs that pass a filter, newest first: their ids and states.
pub(crate) async fn all(
    client: &mut Jobs,
    filter: &v1::JobFilter,
) -> Result<Vec<(u64, v1::State)>, Failure> {
    let page_size = page_room(u32::MAX, 0);
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
