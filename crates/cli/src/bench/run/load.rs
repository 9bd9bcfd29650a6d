//! How many jobs go in and out in a second.

use std::time::Duration;

use anyhow::anyhow;
use proto::v1;
use tokio::task::JoinSet;

use super::data::Fresh;
use super::site::{NOOP, Site};
use super::{Options, per_cent, per_second};
use crate::bench::machine::now;
use crate::print::Failure;

/// Jobs in one request.
const BATCH: u64 = 1_000;
/// Requests under way at once.
const SUBMITTERS: u64 = 4;
/// A long queue is not drained to its end: the rate is that of so many jobs from its front.
const DRAINED_MAX: u64 = 200_000;

/// What was seen at one length of the queue.
pub(crate) struct Load {
    pub(crate) n_jobs: u64,
    pub(crate) submits: f64,
    pub(crate) drains: f64,
    /// Claims that another scheduler was quicker to make, of a hundred.
    pub(crate) lost: f64,
    pub(crate) bytes_per_job: usize,
}

/// Fills a queue, then drains it.
pub(crate) async fn measure(
    n_jobs: u64,
    fresh: &Fresh,
    options: &Options,
) -> Result<Load, Failure> {
    let mut site = Site::start(fresh, options.schedulers).await?;
    let before = site.resident();
    let took = submit(&site, n_jobs).await?;
    let held = site.resident().saturating_sub(before);
    let bytes_per_job = held / usize::try_from(n_jobs).unwrap_or(usize::MAX).max(1);
    site.hire(options.workers, options.slots).await?;
    let drains = drain(&site, n_jobs.min(DRAINED_MAX)).await?;
    let seen = site.look().await?;
    let lost = per_cent(seen.lost, seen.won + seen.lost);
    Ok(Load { n_jobs, submits: per_second(n_jobs, took), drains, lost, bytes_per_job })
}

/// From the first jobs that are done to the last.
async fn drain(site: &Site, n_jobs: u64) -> Result<f64, Failure> {
    let first = site.until(|seen| seen.done > 0).await?.done;
    let start = now();
    let last = site.until(|seen| seen.done >= n_jobs).await?.done;
    Ok(per_second(last - first, start.elapsed()))
}

/// Jobs that are submitted and done at the same time, from the first request to the last end.
pub(crate) async fn together(site: &Site, n_jobs: u64) -> Result<f64, Failure> {
    let before = site.look().await?.done;
    let start = now();
    submit(site, n_jobs).await?;
    site.until(|seen| seen.done >= before + n_jobs).await?;
    Ok(per_second(n_jobs, start.elapsed()))
}

/// Submits jobs that do nothing, in full requests.
async fn submit(site: &Site, n_jobs: u64) -> Result<Duration, Failure> {
    let start = now();
    let mut submitters = JoinSet::new();
    for n in 0..SUBMITTERS {
        let n_own = n_jobs / SUBMITTERS + u64::from(n < n_jobs % SUBMITTERS);
        let mut jobs = site.jobs();
        submitters.spawn(async move {
            let mut left = n_own;
            while left > 0 {
                let batch = left.min(BATCH);
                jobs.submit(noops(batch)).await?;
                left -= batch;
            }
            Ok::<(), tonic::Status>(())
        });
    }
    for answer in submitters.join_all().await {
        answer.map_err(|status| anyhow!("could not submit: {status}"))?;
    }
    Ok(start.elapsed())
}

pub(crate) fn noops(n_jobs: u64) -> v1::SubmitRequest {
    let job = v1::Spec { r#type: NOOP.to_owned(), ..v1::Spec::default() };
    let jobs = vec![job; usize::try_from(n_jobs).unwrap_or(0)];
    v1::SubmitRequest { jobs, ..v1::SubmitRequest::default() }
}
