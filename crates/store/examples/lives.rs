//! How many jobs live and end in a Postgres in a second, in full batches.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example"
)]

use std::time::Instant;

use model::{Ending, JobId, Measured, Name, Spec, TenantId, WorkerId};
use store::{Claim, End, NewJob, Options, Postgres, Provided, Repeat, Start, Store, Submission};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let url = std::env::args().nth(1);
    let seconds: f64 = std::env::args().nth(2).map_or(10.0, |text| text.parse().unwrap());
    let n_lines: usize = std::env::args().nth(3).map_or(1, |text| text.parse().unwrap());
    let cluster = cluster::Cluster::start(cluster::Sync::On).unwrap();
    let database = cluster.database().unwrap();
    let url = url.filter(|url| url != "-").unwrap_or_else(|| database.url().to_owned());
    let mut lines = Vec::new();
    for line in 0..n_lines {
        let store = Postgres::connect(&url, Options::default()).await.unwrap();
        lines.push(tokio::spawn(async move {
            let start = Instant::now();
            let (mut n, mut spent) = (0, [0.0; 4]);
            while start.elapsed().as_secs_f64() < seconds {
                live(&store, line, &mut spent).await;
                n += 1_000;
            }
            (f64::from(n) / start.elapsed().as_secs_f64(), spent, n / 1_000)
        }));
    }
    let mut sum = 0.0;
    for line in lines {
        let (rate, spent, n) = line.await.unwrap();
        let per = spent.map(|s| s * 1e3 / f64::from(n));
        println!("{rate:.0} lives/s; submit, claim, start, complete of 1,000: {per:.1?} ms");
        sum += rate;
    }
    println!("{sum:.0} lives/s in all");
}

async fn live(store: &Postgres, line: usize, spent: &mut [f64; 4]) {
    let tenant = TenantId::new("default");
    let spec = Spec { payload: vec![7; 100], ..Spec::new(tenant.clone(), Name::new("noop")) };
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    let submission = Submission { tenant, idempotency: None, jobs: vec![job; 1_000], first: None };
    let at = Instant::now();
    let submitted = store.submit(submission).await.unwrap().unwrap();
    spent[0] += at.elapsed().as_secs_f64();
    let jobs: Vec<JobId> = submitted.jobs.into_iter().map(|record| record.id).collect();
    let worker = WorkerId::new(&format!("w{line}"));
    let claim = |job: &JobId| Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new("default"),
        limits: Vec::new(),
        holds: None,
        why: "score 100, headroom 100".to_owned(),
    };
    let at = Instant::now();
    store.claim(jobs.iter().map(claim).collect()).await.unwrap();
    spent[1] += at.elapsed().as_secs_f64();
    let start = |job: &JobId| Start { job: job.clone(), attempt: 1, worker: worker.clone() };
    let at = Instant::now();
    store.start(jobs.iter().map(start).collect()).await.unwrap();
    spent[2] += at.elapsed().as_secs_f64();
    let end = |job: &JobId| End {
        job: job.clone(),
        attempt: 1,
        worker: worker.clone(),
        ending: Ending::Succeeded,
        error: None,
        result: None,
        exit_code: None,
        measured: Measured::default(),
        cost: None,
        fetched: None,
        provided: Provided::default(),
        has_started: true,
        draw: 0,
    };
    let at = Instant::now();
    store.complete(jobs.iter().map(end).collect()).await.unwrap();
    spent[3] += at.elapsed().as_secs_f64();
}
