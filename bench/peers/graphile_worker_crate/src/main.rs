//! graphile_worker (crates.io): one process, with the settings of its own throughput benchmark.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext,
    WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SCHEMA: &str = "graphile_worker";
const LEFT: &str = "SELECT count(*) FROM graphile_worker._private_jobs";
/// The same for all peers: jobs in a call, and concurrent callers.
const BATCH: usize = 1_000;
const SUBMITTERS: usize = 4;
const N_TIMED: usize = 100;

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Reports the start of timed jobs.
#[derive(Clone, Debug)]
struct Starts(mpsc::UnboundedSender<Instant>);

#[derive(Deserialize, Serialize)]
struct Noop {
    is_timed: bool,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if self.is_timed
            && let Some(starts) = context.get_ext::<Starts>()
        {
            starts.0.send(Instant::now()).ok();
        }
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Done {
    let n_jobs: usize = std::env::args().nth(1).ok_or("say how many jobs")?.parse()?;
    let url = std::env::var("PEERS_POSTGRES")?;
    let pool = PgPoolOptions::new().max_connections(50).connect(&url).await?;
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    utils.migrate().await?;
    submit(&utils, n_jobs, false).await?;
    // In production, autovacuum does this once a minute.
    sqlx::query("ANALYZE").execute(&pool).await?;
    let (sender, mut started) = mpsc::unbounded_channel();
    let worker = WorkerOptions::default()
        .database(pool.clone())
        .schema(SCHEMA)
        .concurrency(500)
        .poll_interval(Duration::from_millis(5))
        .complete_job_batch_delay(Duration::from_millis(5))
        .local_queue(LocalQueueConfig::default().with_size(5_000))
        .add_extension(Starts(sender))
        .define_job::<Noop>();
    let worker = Arc::new(worker.init().await?);
    let running = Arc::clone(&worker);
    tokio::spawn(async move { running.run().await.map_err(|error| error.to_string()) });
    // From the first observed end to the last. An observation is as old as its query.
    let (n_first, start) = loop {
        let start = Instant::now();
        let n_left = left(&pool).await?;
        if n_left < n_jobs {
            break (n_left, start);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    empty(&pool).await?;
    let drained = per_second(n_first, start);
    let mut starts = Vec::new();
    for _ in 0..N_TIMED {
        let before = Instant::now();
        submit(&utils, 1, true).await?;
        let start = started.recv().await.ok_or("the worker is gone")?;
        starts.push(start.duration_since(before));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    empty(&pool).await?;
    let start = Instant::now();
    submit(&utils, n_jobs, false).await?;
    empty(&pool).await?;
    let together = per_second(n_jobs, start);
    starts.sort();
    let figures = serde_json::json!({
        "jobs": n_jobs,
        "drained_per_s": drained,
        "together_per_s": together,
        "start_p50_us": starts[starts.len() / 2].as_micros(),
    });
    println!("{figures}");
    std::process::exit(0);
}

async fn submit(utils: &WorkerUtils, n_jobs: usize, is_timed: bool) -> Done {
    let n_left = Arc::new(AtomicUsize::new(n_jobs));
    let mut submitters = JoinSet::new();
    for _ in 0..SUBMITTERS.min(n_jobs) {
        let (utils, n_left) = (utils.clone(), Arc::clone(&n_left));
        submitters.spawn(async move {
            loop {
                let take = |n_left: usize| Some(n_left - n_left.min(BATCH));
                let before = n_left.fetch_update(Relaxed, Relaxed, take).unwrap_or(0);
                if before == 0 {
                    return Ok(());
                }
                let job = || RawJobSpec {
                    identifier: Noop::IDENTIFIER.to_owned(),
                    payload: serde_json::json!({ "is_timed": is_timed }),
                    spec: JobSpec::default(),
                };
                let jobs: Vec<RawJobSpec> = (0..before.min(BATCH)).map(|_| job()).collect();
                utils.add_raw_jobs(&jobs).await?;
            }
        });
    }
    submitters.join_all().await.into_iter().collect()
}

async fn left(pool: &PgPool) -> Done<usize> {
    let n_left: i64 = sqlx::query_scalar(LEFT).fetch_one(pool).await?;
    Ok(usize::try_from(n_left)?)
}

/// A count costs the server time that the worker could use. So polls are rare while the queue is
/// long, but frequent enough for up to 100,000 jobs in a second.
async fn empty(pool: &PgPool) -> Done {
    loop {
        let n_left = left(pool).await?;
        if n_left == 0 {
            return Ok(());
        }
        let pause_ms = u64::try_from(5 + n_left / 100)?.min(1_000);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}

fn per_second(n_jobs: usize, since: Instant) -> f64 {
    n_jobs as f64 / since.elapsed().as_secs_f64()
}
