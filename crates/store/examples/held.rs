//! What a transaction that somebody else holds open does to looking for work and to claims: rows
//! that are gone cannot be swept up for as long as it is open.
//!
//! `cargo run --release -p store --example held -- 60`: for so many seconds jobs live by turns in a
//! database in which somebody holds one open and in one in which nobody does. So both meet the same
//! machine, however busy it is.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example"
)]

use std::time::Instant;

use model::{Ending, JobId, Name, Spec, TenantId, WorkerId};
use store::{
    Claim, End, NewJob, Options, Postgres, Reach, Repeat, Start, Store, Submission, Window,
};
use tokio_postgres::NoTls;

/// Jobs in a batch.
const BATCH: usize = 500;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let seconds: f64 = std::env::args().nth(1).map_or(30.0, |text| text.parse().unwrap());
    let cluster = cluster::Cluster::start(cluster::Sync::On).unwrap();
    let (free, held) = (cluster.database().unwrap(), cluster.database().unwrap());
    let without = Postgres::connect(free.url(), Options::default()).await.unwrap();
    let with = Postgres::connect(held.url(), Options::default()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(held.url(), NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM maitre.jobs";
    client.batch_execute(hold).await.unwrap();
    let (start, mut n, mut spent) = (Instant::now(), 0, Vec::new());
    while start.elapsed().as_secs_f64() < seconds {
        let both = (live(&without).await, live(&with).await);
        if start.elapsed().as_secs_f64() > seconds * 0.75 {
            spent.push(both);
        }
        n += BATCH;
    }
    let dead = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_all_tables \
        WHERE schemaname = 'maitre'";
    let dead: i64 = client.query_one(dead, &[]).await.unwrap().get(0);
    println!("{n} jobs lived in each; {dead} rows are gone and cannot be swept up");
    tell("look", spent.iter().map(|(without, with)| (without.0, with.0)).collect());
    tell("claim of 500", spent.iter().map(|(without, with)| (without.1, with.1)).collect());
    connection.abort();
}

/// The middle of each, and of how many times as long the one takes.
fn tell(what: &str, spent: Vec<(f64, f64)>) {
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (without, with): (Vec<f64>, Vec<f64>) = spent.into_iter().unzip();
    let (without, with) = (middle(without) * 1e3, middle(with) * 1e3);
    let ratio = with / without;
    println!("{what}: {without:.2} ms without, {with:.2} ms with it: {ratio:.2} times as long");
}

/// Lets jobs live; how long a look and a claim took.
async fn live(store: &Postgres) -> (f64, f64) {
    let tenant = TenantId::new("default");
    let spec = Spec { payload: vec![7; 100], ..Spec::new(tenant.clone(), Name::new("noop")) };
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    let submission = Submission::new(tenant, vec![job; BATCH]);
    store.submit(submission).await.unwrap().unwrap();
    let at = Instant::now();
    let ask = Window { stripe: (0, 1), jobs_max: BATCH, reach: Reach::More };
    let seen = store.shared().unwrap().window(ask).await.unwrap();
    let look = at.elapsed().as_secs_f64();
    let worker = WorkerId::new("w");
    let claim = |job: &JobId| Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new("default"),
        limits: Vec::new(),
        holds: None,
        why: "score 100, headroom 100".to_owned(),
    };
    let jobs: Vec<JobId> = seen.own.iter().map(|record| record.id.clone()).collect();
    assert_eq!(jobs.len(), BATCH, "what was submitted is found");
    let at = Instant::now();
    store.claim(jobs.iter().map(claim).collect()).await.unwrap();
    let claimed = at.elapsed().as_secs_f64();
    let start = |job: &JobId| Start { job: job.clone(), attempt: 1, worker: worker.clone() };
    store.start(jobs.iter().map(start).collect()).await.unwrap();
    let end = |job: &JobId| End::new(job.clone(), 1, worker.clone(), Ending::Succeeded);
    store.complete(jobs.iter().map(end).collect()).await.unwrap();
    (look, claimed)
}
