//! How many jobs go in and out in a second.

use std::time::Duration;

use anyhow::anyhow;
use proto::v1;
use tokio::task::JoinSet;

use super::data::Data;
use super::site::{NOOP, Seen, Site};
use super::{Options, per_cent, per_second};
use crate::bench::machine::now;
use crate::print::Failure;

/// Jobs in one request.
const BATCH: u64 = 1_000;
/// Requests under way at once.
const SUBMITTERS: u64 = 4;
/// A long queue is not drained to its end: the rate is that of so many jobs from its front.
const DRAINED_MAX: u64 = 200_000;
/// A short one is filled and drained again until it was so many jobs: less is over in no time.
const DRAINED_MIN: u64 = 50_000;
/// But not more often than this: each time everything is started anew.
const ROUNDS_MAX: u64 = 5;

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
pub(crate) async fn measure(n_jobs: u64, data: &Data, options: &Options) -> Result<Load, Failure> {
    let n_rounds = (DRAINED_MIN / n_jobs).clamp(1, ROUNDS_MAX);
    let (mut submitting, mut draining) = (Duration::ZERO, Duration::ZERO);
    let (mut n_drained, mut won, mut lost, mut held) = (0, 0, 0, 0);
    for _ in 0..n_rounds {
        let fresh = data.fresh("load")?;
        let mut site = Site::start(&fresh, options).await?;
        let before = site.resident();
        submitting += submit(&site, n_jobs).await?;
        held = held.max(site.resident().saturating_sub(before));
        site.hire(options.workers, options.slots).await?;
        let (n, took) = drain(&site, n_jobs, options.workers.saturating_mul(options.slots)).await?;
        n_drained += n;
        draining += took;
        let seen = site.look().await?;
        won += seen.won;
        lost += seen.lost;
    }
    Ok(Load {
        n_jobs,
        submits: per_second(n_jobs * n_rounds, submitting),
        drains: per_second(n_drained, draining),
        lost: per_cent(lost, won + lost),
        bytes_per_job: held / usize::try_from(n_jobs).unwrap_or(usize::MAX).max(1),
    })
}

/// From the first jobs that are done until the last is claimed: as many are claimed as are done
/// meanwhile. Before, slots fill, and after, they only empty. If there are slots for all of them it
/// is until the last is done.
async fn drain(site: &Site, n_jobs: u64, n_slots: u32) -> Result<(u64, Duration), Failure> {
    let first = site.until(|seen| seen.done > 0).await?.done;
    let start = now();
    let are_all_claimed = |seen: &Seen| seen.won >= n_jobs && n_jobs > u64::from(n_slots);
    let n_done = n_jobs.min(DRAINED_MAX);
    let is_over = |seen: &Seen| are_all_claimed(seen) || seen.done >= n_done;
    let last = site.until(is_over).await?.done;
    Ok((last - first, start.elapsed()))
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
