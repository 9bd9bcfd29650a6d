//! What the store could do if nobody decided anything and nothing went over a wire.

use anyhow::anyhow;
use model::{Ending, JobId, Name, Record, Spec, TenantId, WorkerId};
use store::{Claim, End, NewJob, Options, Repeat, Start, Store, Submission};
use tokio::task::JoinSet;

use super::data::Fresh;
use super::site::NOOP;
use super::{PAUSE, Spread, nanos, per_second};
use crate::bench::machine::now;
use crate::print::Failure;

/// Jobs in one commit.
const BATCH: usize = 1_000;

/// The store alone.
pub(crate) struct Raw {
    /// Jobs from submission to end in a second, in full batches.
    pub(crate) lives: f64,
    /// One job taken in, durably.
    pub(crate) commit: Spread,
}

/// Lets jobs live in a store of their own, for so many seconds, in as many lines side by side as
/// there will be schedulers.
pub(crate) async fn measure(fresh: &Fresh, n_lines: u32, seconds: f64) -> Result<Raw, Failure> {
    let mut lines = JoinSet::new();
    let start = now();
    for n in 0..n_lines {
        let kept = fresh.place.open(Options::default()).await?;
        lines.spawn(async move {
            let mut n_jobs = 0;
            while start.elapsed().as_secs_f64() < seconds {
                live(&*kept.store, &format!("bench-{n}"), BATCH).await?;
                n_jobs += u64::try_from(BATCH).unwrap_or(0);
            }
            Ok::<u64, store::Error>(n_jobs)
        });
    }
    let lived = lines.join_all().await.into_iter().sum::<Result<u64, _>>().map_err(failed)?;
    let lives = per_second(lived, start.elapsed());
    let kept = fresh.place.open(Options::default()).await?;
    let (start, mut commits) = (now(), Vec::new());
    while start.elapsed().as_secs_f64() < seconds {
        let begun = now();
        kept.store.submit(submission(1)).await.map_err(failed)?.map_err(|no| anyhow!(no))?;
        commits.push(nanos(begun.elapsed()));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Raw { lives, commit: Spread::of(commits) })
}

fn failed(error: store::Error) -> Failure {
    anyhow!(error).context("measure the store alone").into()
}

/// A batch of jobs from submission to end: four commits.
async fn live(store: &dyn Store, worker: &str, n_jobs: usize) -> Result<(), store::Error> {
    let Ok(submitted) = store.submit(submission(n_jobs)).await? else { return Ok(()) };
    let jobs: Vec<JobId> = submitted.jobs.into_iter().map(|record: Record| record.id).collect();
    let worker = WorkerId::new(worker);
    let claim = |job: &JobId| Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new(model::worker::POOL_DEFAULT),
        limits: Vec::new(),
        holds: None,
        why: "score 100, headroom 100".to_owned(),
    };
    store.claim(jobs.iter().map(claim).collect()).await?;
    let start = |job: &JobId| Start { job: job.clone(), attempt: 1, worker: worker.clone() };
    store.start(jobs.iter().map(start).collect()).await?;
    store.complete(jobs.iter().map(|job| end(job, &worker)).collect()).await?;
    Ok(())
}

fn submission(n_jobs: usize) -> Submission {
    let tenant = TenantId::new("default");
    let spec = Spec::new(tenant.clone(), Name::new(NOOP));
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    Submission::new(tenant, vec![job; n_jobs])
}

fn end(job: &JobId, worker: &WorkerId) -> End {
    End::new(job.clone(), 1, worker.clone(), Ending::Succeeded)
}
