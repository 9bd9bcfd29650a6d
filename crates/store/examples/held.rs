//! Measures what a transaction that stays open costs queue scans, claims and completions: Postgres
//! cannot vacuum dead rows while it is open. The example fails if a claim takes more than twice as
//! long as without it.
//!
//! `cargo run --release -p store --example held -- 60` runs jobs for 60 seconds. It alternates
//! between a database with an open transaction and one without, so that both meet the same load of
//! the machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use model::{Ending, JobId, Millis, Name, Spec, TenantId, WorkerId};
use store::{
    Claim, End, Limit, NewJob, Options, Postgres, Reach, Repeat, Start, Store, Submission, Window,
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
    let (begun, mut n, mut spent) = (Instant::now(), 0, BTreeMap::new());
    while begun.elapsed().as_secs_f64() < seconds {
        let both = (live(&without).await, live(&with).await);
        if begun.elapsed().as_secs_f64() > seconds * 0.75 {
            for ((what, without), (_, with)) in both.0.into_iter().zip(both.1) {
                spent.entry(what).or_insert_with(Vec::new).push((without, with));
            }
        }
        n += BATCH;
    }
    let dead = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_all_tables \
        WHERE schemaname = 'maitre'";
    let dead: i64 = client.query_one(dead, &[]).await.unwrap().get(0);
    println!("{n} jobs ran in each database, and {dead} dead rows cannot be vacuumed");
    let ratios: Vec<f64> = spent.into_iter().map(|(what, spent)| tell(what, spent)).collect();
    connection.abort();
    // The first two are claims.
    assert!(ratios[..2].iter().all(|ratio| *ratio <= 2.0), "a claim takes more than twice as long");
}

/// Prints the medians of a stage, and returns their ratio.
fn tell((_, what): (u8, &str), spent: Vec<(f64, f64)>) -> f64 {
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (without, with): (Vec<f64>, Vec<f64>) = spent.into_iter().unzip();
    let (without, with) = (middle(without) * 1e3, middle(with) * 1e3);
    let ratio = with / without;
    println!("{what}: {without:.2} ms without, {with:.2} ms with it: {ratio:.2} times as long");
    ratio
}

/// The measured stages, with the time that each took.
type Spent = Vec<((u8, &'static str), f64)>;

/// Runs a batch of jobs, half of them under a limit.
async fn live(store: &Postgres) -> Spent {
    let tenant = TenantId::new("default");
    let spec = Spec { payload: vec![7; 100], ..Spec::new(tenant.clone(), Name::new("noop")) };
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    let submission = Submission::new(tenant, vec![job; BATCH]);
    store.submit(submission).await.unwrap().unwrap();
    let worker = WorkerId::new("w");
    let session = store.join(worker.clone(), Millis::from_secs(10)).await.unwrap();
    let mut spent = Spent::new();
    let look = async |reach| {
        let ask = Window { stripe: (0, 1), jobs_max: BATCH, spare_max: 0, reach };
        store.shared().unwrap().window(ask).await.unwrap().own
    };
    let at = Instant::now();
    let seen = look(Reach::More).await;
    spent.push(((2, "a look for 500"), at.elapsed().as_secs_f64()));
    let jobs: Vec<JobId> = seen.iter().map(|record| record.id.clone()).collect();
    assert_eq!(jobs.len(), BATCH, "the scan finds all submitted jobs");
    let limit = Limit { name: "limit".to_owned(), amount: 1, max: i64::MAX, spent: None };
    let claim = |job: &JobId, limits: &[Limit]| Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new("default"),
        limits: limits.to_vec(),
        holds: None,
        why: "score 100, headroom 100".to_owned(),
    };
    let (free, limited) = jobs.split_at(BATCH / 2);
    let (free, limited): (Vec<Claim>, Vec<Claim>) = (
        free.iter().map(|job| claim(job, &[])).collect(),
        limited.iter().map(|job| claim(job, std::slice::from_ref(&limit))).collect(),
    );
    let at = Instant::now();
    store.claim(free).await.unwrap();
    spent.push(((0, "a claim of 250"), at.elapsed().as_secs_f64()));
    let at = Instant::now();
    store.claim(limited).await.unwrap();
    spent.push(((1, "a claim of 250 under a limit"), at.elapsed().as_secs_f64()));
    let at = Instant::now();
    store.renew(vec![session], Millis::from_secs(10)).await.unwrap();
    spent.push(((4, "a lease"), at.elapsed().as_secs_f64()));
    let start = |job: &JobId| Start { job: job.clone(), attempt: 1, worker: worker.clone() };
    store.start(jobs.iter().map(start).collect()).await.unwrap();
    let end = |job: &JobId| End::new(job.clone(), 1, worker.clone(), Ending::Succeeded);
    let at = Instant::now();
    store.complete(jobs.iter().map(end).collect()).await.unwrap();
    spent.push(((5, "500 ends"), at.elapsed().as_secs_f64()));
    let at = Instant::now();
    look(Reach::All).await;
    spent.push((
        (3, "a look at everything, once a second or more seldom"),
        at.elapsed().as_secs_f64(),
    ));
    spent
}
