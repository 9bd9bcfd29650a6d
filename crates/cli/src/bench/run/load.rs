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
/// A longer queue is not drained to its end: the rate is that of so many jobs from its front.
const DRAINED_MAX: u64 = 200_000;
/// A short one is filled and drained again until it was so many jobs: less is over in no time.
const DRAINED_MIN: u64 = 50_000;
/// But not more often than this: each time everything is started anew.
const ROUNDS_MAX: u64 = 5;

/// What was seen at one length of the queue.
pub(crate) struct Load {
    pub(crate) n_jobs: u64,
    pub(crate) submits: f64,
    /// From the first end to the last: what is said of others too.
    pub(crate) drains: f64,
    /// From the first end to the last claim, so that as many are claimed as end meanwhile: what
    /// queues of different lengths are compared by.
    pub(crate) steady: f64,
    /// Claims that another scheduler was quicker to make, of a hundred.
    pub(crate) lost: f64,
    pub(crate) bytes_per_job: usize,
}

/// Fills a queue, then drains it.
pub(crate) async fn measure(n_jobs: u64, data: &Data, options: &Options) -> Result<Load, Failure> {
    let n_rounds = (DRAINED_MIN / n_jobs).clamp(1, ROUNDS_MAX);
    let (mut submitting, mut whole, mut steady) = (Duration::ZERO, Part::NONE, Part::NONE);
    let (mut won, mut lost, mut held) = (0, 0, 0);
    for _ in 0..n_rounds {
        let fresh = data.fresh("load").await?;
        let mut site = Site::start(&fresh, options).await?;
        let before = site.resident();
        submitting += submit(&site, n_jobs).await?;
        held = held.max(site.resident().saturating_sub(before));
        site.hire(options.n_workers(), options.n_slots()).await?;
        let seen = drain(&site, n_jobs, n_jobs.min(DRAINED_MAX)).await?;
        whole.add(seen.whole);
        // With slots for all of them, all are claimed before anything is done.
        let n_slots = u64::from(options.n_workers().saturating_mul(options.n_slots()));
        steady.add(if n_jobs > n_slots { seen.steady } else { seen.whole });
        let seen = site.look().await?;
        won += seen.won;
        lost += seen.lost;
    }
    Ok(Load {
        n_jobs,
        submits: per_second(n_jobs * n_rounds, submitting),
        drains: whole.per_second(),
        steady: steady.per_second(),
        lost: per_cent(lost, won + lost),
        bytes_per_job: held / usize::try_from(n_jobs).unwrap_or(usize::MAX).max(1),
    })
}

/// So many jobs in so much time.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    n_jobs: u64,
    took: Duration,
}

impl Part {
    const NONE: Self = Self { n_jobs: 0, took: Duration::ZERO };

    fn add(&mut self, other: Self) {
        self.n_jobs += other.n_jobs;
        self.took += other.took;
    }

    pub(crate) fn per_second(self) -> f64 {
        per_second(self.n_jobs, self.took)
    }
}

/// What was seen of a queue that emptied.
pub(crate) struct Drain {
    /// From the first jobs that are done to the last.
    pub(crate) whole: Part,
    /// From the first that are done until none is left to be claimed.
    pub(crate) steady: Part,
}

/// Watches a queue of `n_jobs` until `n_last` of them are done.
pub(crate) async fn drain(site: &Site, n_jobs: u64, n_last: u64) -> Result<Drain, Failure> {
    let first = site.until(|seen| seen.done > 0).await?.done;
    let start = now();
    let part = |seen: &Seen| Part { n_jobs: seen.done - first, took: start.elapsed() };
    let seen = site.until(|seen| seen.won >= n_jobs || seen.done >= n_last).await?;
    let steady = part(&seen);
    let seen = site.until(|seen| seen.done >= n_last).await?;
    Ok(Drain { whole: part(&seen), steady })
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
pub(crate) async fn submit(site: &Site, n_jobs: u64) -> Result<Duration, Failure> {
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
