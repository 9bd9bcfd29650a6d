//! What the store could do if nobody decided anything and nothing went over a wire.

use std::sync::Arc;

use anyhow::anyhow;
use model::{Ending, JobId, Name, Record, Spec, TenantId, WorkerId};
use store::{Claim, End, NewJob, Options, Repeat, Submission};
use tokio::task::JoinSet;

use super::data::{Data, Fresh};
use super::site::NOOP;
use super::{Options as Run, PAUSE, Spread, nanos, per_second};
use crate::bench::machine::now;
use crate::place::Kept;
use crate::print::Failure;

/// Jobs in one commit.
const BATCH: usize = 1_000;
/// Callers side by side, at most.
const CALLERS_MAX: u32 = 32;
/// Twice as many callers that do less than so much more, twice in a row, are too many.
const GROWTH: f64 = 1.05;
/// Seconds for each number of callers, at most.
const SECONDS_MAX: f64 = 1.5;

/// The store alone.
pub(crate) struct Raw {
    /// Jobs from submission to end in a second, in full batches, by the best number of callers.
    pub(crate) lives: f64,
    pub(crate) callers: u32,
    /// One job taken in, durably.
    pub(crate) commit: Spread,
}

/// Lets jobs live in a store by 1, 2, 4 and more callers side by side, until more of them do not
/// get more done: so much is the limit. Then times single commits.
pub(crate) async fn measure(data: &Data, options: &Run) -> Result<Raw, Failure> {
    let seconds = options.seconds.min(SECONDS_MAX);
    let (mut lives, mut callers, mut n_in_vain) = (0.0, 1, 0);
    let mut n = 1;
    while n <= CALLERS_MAX && n_in_vain < 2 {
        let seen = side_by_side(&data.fresh("raw").await?, n, seconds, options).await?;
        n_in_vain = if seen < lives * GROWTH { n_in_vain + 1 } else { 0 };
        if seen > lives {
            (lives, callers) = (seen, n);
        }
        n *= 2;
    }
    let fresh = data.fresh("raw").await?;
    let kept = fresh.place.open(Options::default()).await?;
    let (start, mut commits) = (now(), Vec::new());
    while start.elapsed().as_secs_f64() < options.seconds {
        let begun = now();
        kept.store.submit(submission(1)).await.map_err(failed)?.map_err(|no| anyhow!(no))?;
        commits.push(nanos(begun.elapsed()));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Raw { lives, callers, commit: Spread::of(commits) })
}

/// Jobs from submission to end in a second, by so many callers. Each has a store of its own where
/// several may share the data, as schedulers do: within one, some calls wait for each other.
async fn side_by_side(
    fresh: &Fresh,
    n_callers: u32,
    seconds: f64,
    options: &Run,
) -> Result<f64, Failure> {
    let mut callers: Vec<Caller> = Vec::new();
    for n in 0..n_callers {
        let kept = match callers.first() {
            Some(first) if !fresh.is_shared() => Arc::clone(&first.kept),
            _ => Arc::new(fresh.place.open(Options::default()).await?),
        };
        let worker = WorkerId::new(&format!("bench-{n}"));
        callers.push(Caller { kept, worker, forgets: options.forget });
    }
    let (mut lines, start) = (JoinSet::new(), now());
    for caller in callers {
        lines.spawn(async move {
            let mut n_jobs = 0;
            while start.elapsed().as_secs_f64() < seconds {
                caller.live().await?;
                n_jobs += u64::try_from(BATCH).unwrap_or(0);
            }
            Ok::<u64, store::Error>(n_jobs)
        });
    }
    let lived = lines.join_all().await.into_iter().sum::<Result<u64, _>>().map_err(failed)?;
    Ok(per_second(lived, start.elapsed()))
}

fn failed(error: store::Error) -> Failure {
    anyhow!(error).context("measure the store alone").into()
}

/// Who lets jobs live.
struct Caller {
    kept: Arc<Kept>,
    worker: WorkerId,
    /// Whether nothing is kept of jobs that succeeded.
    forgets: bool,
}

impl Caller {
    /// A batch of jobs from submission to end: three commits. A scheduler does not write the start
    /// of a job that is over at once, so neither is it written here.
    async fn live(&self) -> Result<(), store::Error> {
        let store = &*self.kept.store;
        let Ok(submitted) = store.submit(submission(BATCH)).await? else { return Ok(()) };
        let jobs: Vec<JobId> = submitted.jobs.into_iter().map(|record: Record| record.id).collect();
        store.claim(jobs.iter().map(|job| self.claim(job)).collect()).await?;
        store.complete(jobs.iter().map(|job| self.end(job)).collect()).await?;
        Ok(())
    }

    fn claim(&self, job: &JobId) -> Claim {
        Claim {
            job: job.clone(),
            fence: 1,
            worker: self.worker.clone(),
            pool: Name::new(model::worker::POOL_DEFAULT),
            limits: Vec::new(),
            holds: None,
            why: "score 100, headroom 100".to_owned(),
        }
    }

    fn end(&self, job: &JobId) -> End {
        let end = End::new(job.clone(), 1, self.worker.clone(), Ending::Succeeded);
        End { has_started: true, forget: self.forgets, ..end }
    }
}

fn submission(n_jobs: usize) -> Submission {
    let tenant = TenantId::new("default");
    let spec = Spec::new(tenant.clone(), Name::new(NOOP));
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    Submission::new(tenant, vec![job; n_jobs])
}
