//! Cases for Postgres alone: how it finds work, and how several schedulers share it.

mod look;
mod given;
mod hurt;
mod walk;
mod order;
mod ends;
mod plans;
mod recent;
mod sql;
mod completions;
mod told;
mod questions;
mod forgotten;
mod agree;
mod session;
mod budget;
mod broken;

use std::time::Duration;

use cluster::{Cluster, Database};
use model::{JobId, Millis, Name, Spec, TenantId, WorkerId};

use super::*;
use crate::conformance::{Time, options};
use crate::{
    Claim, Claimed, NewJob, News, Reach, Repeat, Seen, Setting, SettingKind, Shared as _,
    Store as _, Submission, Window,
};

/// The number of connections that wait for a lock.
const ONE_WAITS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn database() -> Database {
    let cluster = Cluster::shared().unwrap_or_else(|error| panic!("{error}"));
    cluster.database().unwrap_or_else(|error| panic!("{error}"))
}

async fn open(database: &Database, time: &Time) -> Postgres {
    let many = Options { jobs_max: 100_000, tenant_jobs_max: 100_000, ..options(time) };
    Postgres::connect(database.url(), many).await.unwrap_or_else(|error| panic!("{error}"))
}

fn submission(tenant: &str, kind: &str, n_jobs: usize) -> Submission {
    let tenant = TenantId::new(tenant);
    let spec = Spec::new(tenant.clone(), Name::new(kind));
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    Submission::new(tenant, vec![job; n_jobs])
}

async fn submit(store: &Postgres, submission: Submission) {
    store.submit(submission).await.unwrap().unwrap();
}

fn all(place: usize, n: usize) -> Window {
    Window { stripe: (place, n), jobs_max: 10_000, spare_max: 10_000, reach: Reach::All }
}

fn ids(records: &[Arc<model::Record>]) -> Vec<u64> {
    records.iter().filter_map(|record| record.id.as_number()).collect()
}

/// Few jobs are inserted and many are copied, with the same result.
#[tokio::test]
async fn copied_jobs_equal_inserted_jobs() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut few = submission("a", "kind", 7);
    few.jobs[1].spec.payload = vec![0, 255, 10];
    few.jobs[2].on_hold = true;
    few.jobs[3].spec.not_before = Some(time.now() + Millis(500));
    few.jobs[4].after_indexes = vec![0];
    few.jobs[5].spec.group = Some("ü".to_owned());
    few.jobs[6].spec.priority = -7;
    for n_times in [1, 20] {
        let mut jobs = Vec::new();
        for place in 0..n_times {
            let mut portion = few.jobs.clone();
            portion[0].spec.dedupe_key = Some(format!("{n_times} {place}"));
            portion[4].after_indexes = vec![place * 7];
            jobs.extend(portion);
        }
        let answer = one.submit(Submission::new(few.tenant.clone(), jobs)).await.unwrap().unwrap();
        assert_eq!(answer.is_new, vec![true; n_times * 7]);
        for record in answer.jobs {
            assert_eq!(two.job(record.id.clone()).await.unwrap(), Some(record));
        }
    }
    let seen = ids(&two.window(all(0, 1)).await.unwrap().own);
    assert_eq!(seen.len(), 4 * 21, "{seen:?}");
}

/// The first submission has the key. The other one joins it, with any number of other jobs.
#[tokio::test]
async fn concurrent_submissions_join_the_first_of_their_key() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut jobs = submission("a", "kind", 100);
    for (place, job) in jobs.jobs.iter_mut().enumerate() {
        job.spec.dedupe_key = Some(place.to_string());
    }
    let both = tokio::join!(one.submit(jobs.clone()), two.submit(jobs));
    let (first, second) = (both.0.unwrap().unwrap(), both.1.unwrap().unwrap());
    let numbers = |jobs: &[model::Record]| -> Vec<JobId> {
        jobs.iter().map(|record| record.id.clone()).collect()
    };
    assert_eq!(numbers(&first.jobs), numbers(&second.jobs));
    let is_new = first.is_new.iter().zip(&second.is_new);
    assert!(is_new.clone().all(|(one, two)| one != two), "{:?}", is_new.collect::<Vec<_>>());
}

fn claim(job: &JobId, worker: &str) -> Claim {
    Claim {
        job: job.clone(),
        fence: 1,
        worker: WorkerId::new(worker),
        pool: Name::new("p"),
        limits: Vec::new(),
        holds: None,
        why: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_schedulers_wins_each_job() {
    const N_JOBS: usize = 300;
    let (database, time) = (database(), Time::new());
    let first = open(&database, &time).await;
    submit(&first, submission("a", "kind", N_JOBS)).await;
    let jobs = first.window(all(0, 1)).await.unwrap().own;
    let mut crowd = Vec::new();
    for n in 0..4 {
        let store = open(&database, &time).await;
        let claims: Vec<Claim> =
            jobs.iter().map(|record| claim(&record.id, &format!("w{n}"))).collect();
        crowd.push(tokio::spawn(async move {
            let mut n_won = 0;
            for part in claims.chunks(30) {
                let claimed = store.claim(part.to_vec()).await.unwrap();
                n_won += claimed.iter().filter(|one| matches!(one, Claimed::Won(_))).count();
            }
            n_won
        }));
    }
    let mut n_won = 0;
    for one in crowd {
        n_won += one.await.unwrap();
    }
    assert_eq!(n_won, N_JOBS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_many_submit_at_once_makes_one_job() {
    let (database, time) = (database(), Time::new());
    for round in 0..10 {
        let mut crowd = Vec::new();
        for _ in 0..4 {
            let store = open(&database, &time).await;
            let mut twice = submission("a", "kind", 1);
            twice.jobs[0].spec.dedupe_key = Some(format!("key {round}"));
            let mut again = submission("a", "kind", 1);
            let key = format!("key {round}");
            again.idempotency = Some(crate::Idempotency { key, body: [7; 32] });
            crowd.push(tokio::spawn(async move {
                let one = store.submit(twice).await.unwrap().unwrap().is_new[0];
                let two = store.submit(again).await.unwrap().unwrap().is_new[0];
                (usize::from(one), usize::from(two))
            }));
        }
        let mut n_new = (0, 0);
        for one in crowd {
            let (one, two) = one.await.unwrap();
            n_new = (n_new.0 + one, n_new.1 + two);
        }
        assert_eq!(n_new, (1, 1));
    }
}

async fn next(news: &mut tokio::sync::mpsc::Receiver<News>) -> News {
    let heard = tokio::time::timeout(Duration::from_secs(20), news.recv());
    heard.await.expect("it is told").expect("somebody tells")
}

#[tokio::test]
async fn peers_are_notified_of_changes() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut news = two.listen();
    assert_eq!(next(&mut news).await, News::Listening);
    submit(&one, submission("a", "kind", 3)).await;
    assert_eq!(next(&mut news).await, News::Work);
    let window = Window { reach: Reach::News, ..all(0, 1) };
    assert_eq!(ids(&two.window(window).await.unwrap().own), [1, 2, 3]);
    let won = one.claim(vec![claim(&JobId::number(1), "w")]).await.unwrap();
    assert!(matches!(won[..], [Claimed::Won(_)]));
    assert_eq!(two.held(WorkerId::new("w")).await.unwrap().len(), 1);
    one.cancel(vec![JobId::number(1)]).await.unwrap();
    assert_eq!(next(&mut news).await, News::CalledOff(JobId::number(1)));
    let off = two.called_off(vec![WorkerId::new("w"), WorkerId::new("v")]).await.unwrap();
    assert_eq!(off, [JobId::number(1)]);
    let setting = Setting { kind: SettingKind::Pool, name: "p".to_owned(), document: None };
    one.set(vec![setting]).await.unwrap();
    assert_eq!(next(&mut news).await, News::Settings);
}

#[tokio::test]
async fn schedulers_that_share_a_store_list_each_other() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    assert_eq!(one.meet("one".to_owned(), false).await.unwrap().all.len(), 1);
    let both = two.meet("two".to_owned(), false).await.unwrap();
    let again = one.meet("one again".to_owned(), false).await.unwrap();
    assert_eq!(both.all.len(), 2);
    assert_ne!(both.place, again.place);
    assert_eq!(again.all[again.place].said, "one again");
    assert_eq!(again.all[both.place].said, "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_is_made_once_and_a_newer_one_is_refused() {
    let (database, time) = (database(), Time::new());
    let opening: Vec<_> = (0..6)
        .map(|_| {
            let (url, options) = (database.url().to_owned(), options(&time));
            tokio::spawn(async move { Postgres::connect(&url, options).await.map(drop) })
        })
        .collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    let newer = "INSERT INTO maitre.migrations (number, name, checksum) \
        SELECT count(*) + 1, 'newer', '' FROM maitre.migrations";
    database.say(newer).unwrap();
    Postgres::connect(database.url(), options(&time)).await.map(drop).unwrap();
    database.say(newer).unwrap();
    let refused = Postgres::connect(database.url(), options(&time)).await.map(drop);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("newer version") && refused.contains("nothing was changed"),
        "{refused}"
    );
}

fn limited(job: &JobId, worker: &str, limit: crate::Limit) -> Claim {
    Claim { limits: vec![limit], ..claim(job, worker) }
}

fn end(job: &JobId, worker: &str) -> crate::End {
    let (worker, ending) = (WorkerId::new(worker), model::Ending::Succeeded);
    crate::End { has_started: true, ..crate::End::new(job.clone(), 1, worker, ending) }
}

/// Many concurrent claims in any order, one by one, and ends of those that are won.
async fn scramble(database: &Database, time: &Time, limit: &crate::Limit, is_ended: bool) -> usize {
    const N_JOBS: usize = 60;
    let first = open(database, time).await;
    submit(&first, submission("a", "kind", N_JOBS)).await;
    let jobs = first.window(all(0, 1)).await.unwrap().own;
    let crowd = (0..6).map(|n| {
        let (url, options) = (database.url().to_owned(), options(time));
        let (jobs, limit, worker) = (jobs.clone(), limit.clone(), format!("w{n}"));
        tokio::spawn(async move {
            let store = Postgres::connect(&url, options).await.unwrap();
            let mut n_won = 0;
            for step in 0..jobs.len() {
                let job = &jobs[(step * (n + 1) * 7) % jobs.len()].id;
                let claims = vec![limited(job, &worker, limit.clone())];
                let claimed = store.claim(claims).await.unwrap();
                if let [Claimed::Won(_)] = claimed[..] {
                    n_won += 1;
                    if is_ended {
                        store.complete(vec![end(job, &worker)]).await.unwrap();
                    }
                }
            }
            n_won
        })
    });
    let mut n_won = 0;
    for one in crowd.collect::<Vec<_>>() {
        n_won += one.await.unwrap();
    }
    n_won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_never_exceed_a_limit() {
    let (database, time) = (database(), Time::new());
    let limit = crate::Limit { name: "jobs a".to_owned(), amount: 2, max: 9, spent: None };
    assert_eq!(scramble(&database, &time, &limit, false).await, 4);
    let store = open(&database, &time).await;
    let held = store.desk.connection().await.unwrap();
    let held = held.query_one("SELECT held FROM holdings", &[]).await.unwrap();
    assert_eq!(held.get::<_, i64>(0), 8);
    // An end releases its usage once.
    let live = store.held(WorkerId::new("w0")).await.unwrap();
    let others = (1..6).map(|n| format!("w{n}"));
    let mut ends: Vec<_> = live.iter().map(|record| end(&record.id, "w0")).collect();
    for worker in others {
        let live = store.held(WorkerId::new(&worker)).await.unwrap();
        ends.extend(live.iter().map(|record| end(&record.id, &worker)));
    }
    store.complete(ends.clone()).await.unwrap();
    store.complete(ends).await.unwrap();
    let held = store.desk.connection().await.unwrap();
    let held = held.query_one("SELECT held FROM holdings", &[]).await.unwrap();
    assert_eq!(held.get::<_, i64>(0), 0);
}
