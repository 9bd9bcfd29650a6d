//! What the store could do if nobody decided anything and nothing went over a wire.

use std::path::Path;

use anyhow::anyhow;
use model::{Ending, JobId, Name, Record, Spec, TenantId, WorkerId};
use store::{Claim, End, NewJob, Options, Repeat, Sqlite, Start, Store, Submission};

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

/// Lets jobs live in a store of their own, for so many seconds.
pub(crate) async fn measure(place: &Path, seconds: f64) -> Result<Raw, Failure> {
    let store = Sqlite::open(&place.join("raw.db"), Options::default()).map_err(failed)?;
    let start = now();
    let mut n_jobs = 0;
    while start.elapsed().as_secs_f64() < seconds {
        live(&store, BATCH).await.map_err(failed)?;
        n_jobs += u64::try_from(BATCH).unwrap_or(0);
    }
    let lives = per_second(n_jobs, start.elapsed());
    let (start, mut commits) = (now(), Vec::new());
    while start.elapsed().as_secs_f64() < seconds {
        let begun = now();
        store.submit(submission(1)).await.map_err(failed)?.map_err(|no| anyhow!(no))?;
        commits.push(nanos(begun.elapsed()));
        tokio::time::sleep(PAUSE).await;
    }
    store.close();
    Ok(Raw { lives, commit: Spread::of(commits) })
}

fn failed(error: store::Error) -> Failure {
    anyhow!(error).context("measure the store alone").into()
}

/// A batch of jobs from submission to end: four commits.
async fn live(store: &Sqlite, n_jobs: usize) -> Result<(), store::Error> {
    let Ok(submitted) = store.submit(submission(n_jobs)).await? else { return Ok(()) };
    let jobs: Vec<JobId> = submitted.jobs.into_iter().map(|record: Record| record.id).collect();
    let worker = WorkerId::new("bench-1");
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
    Submission { tenant, idempotency: None, jobs: vec![job; n_jobs], first: None }
}

fn end(job: &JobId, worker: &WorkerId) -> End {
    End::new(job.clone(), 1, worker.clone(), Ending::Succeeded)
}
