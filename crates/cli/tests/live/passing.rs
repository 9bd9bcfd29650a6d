//! Reasons that end by themselves. Each is held for as long as a test wants to see it.

use std::sync::Arc;
use std::thread::JoinHandle;

use cluster::Database;
use proto::v1;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::puppet::hello;
use crate::reasons::page;
use crate::shared::{database, serve};
use crate::site::{Site, until};
use crate::staged::{crowd, puppet, puppet_as, unwell};

/// How often a job is asked about after what the test waited for.
const TIMES: usize = 5;

/// Whether a job waits for this reason alone, and `detail` says this.
fn says(why: &Value, reason: &str, detail: &str) -> bool {
    why["checks"].as_array().is_some_and(|checks| checks.len() == 1)
        && why["checks"][0]["code"] == reason
        && why["reason"] == reason
        && why["detail"].as_str().unwrap_or_default().contains(detail)
}

#[test]
fn a_job_that_the_store_has_not_given_yet_is_being_claimed() {
    let mut site = Site::start(&["serve", "--heartbeat", "1s", "--lease", "20s"]);
    puppet(&mut site, "w1", unwell(), "unhealthy");
    let job = site.submit(&["--", "true"]);
    // Writers wait for this transaction. Readers do not.
    let path = site.data().join("maitre.db");
    let lock = Connection::open(path).expect("it is the store of the scheduler");
    lock.execute_batch("BEGIN IMMEDIATE").expect("the scheduler writes for a moment only");
    site.puppet().report(|beat| beat.unhealthy = false);
    site.until("it is claimed", || {
        says(&site.json(&["why", &job]), "claiming", "for worker `w1`").then_some(())
    });
    let mut seen_after = 0;
    site.until("the reason stays while the store fails", || {
        let why = site.json(&["why", &job]);
        assert!(says(&why, "claiming", "claim"), "nothing changed but: {why}");
        let has_failed = !page(&site, "/metrics").contains("maitre_store_errors_total 0\n");
        seen_after += usize::from(has_failed);
        (seen_after > TIMES).then_some(())
    });
    drop(lock);
    site.wait(&job, "state", "running");
}

/// A transaction of the test's own that lets no scheduler claim a job.
struct Lock {
    database: Arc<Database>,
    holder: Option<JoinHandle<()>>,
}

/// Its statements. The rows are locked once it sleeps, and until its server process is ended.
const HOLD: &str = "SELECT id FROM maitre.jobs FOR UPDATE; SELECT pg_sleep(600)";

/// Server processes that hold the rows.
const HOLDERS: &str = "FROM pg_stat_activity WHERE datname = current_database() \
    AND query LIKE 'SELECT id FROM maitre.jobs FOR UPDATE%' AND wait_event = 'PgSleep'";

impl Lock {
    fn take(database: &Arc<Database>) -> Self {
        let own = Arc::clone(database);
        let holder = std::thread::spawn(move || {
            // It is ended from outside, and says so.
            let _ = own.say(HOLD);
        });
        let lock = Self { database: Arc::clone(database), holder: Some(holder) };
        let is_held = format!("SELECT 1 / count(*) {HOLDERS}");
        until("the jobs are locked", String::new, || database.say(&is_held).ok());
        lock
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.database.say(&format!("SELECT pg_terminate_backend(pid) {HOLDERS}"));
        if let Some(holder) = self.holder.take() {
            let _ = holder.join();
        }
    }
}

#[test]
fn each_of_two_schedulers_says_that_one_of_them_claims_a_job() {
    let database = Arc::new(database());
    let (mut one, mut two) = (serve(&database), serve(&database));
    // The job that one of them claims leaves room for the job that the other is to claim.
    let wide = |name: &str| v1::Hello { slots: 2, ..hello(name) };
    puppet_as(&mut one, wide("w1"), unwell(), "unhealthy");
    puppet_as(&mut two, wide("w2"), unwell(), "unhealthy");
    let jobs = [one.submit(&["--", "true"]), two.submit(&["--", "true"])];
    let reasons = || -> Vec<Value> {
        let all = [&one, &two].map(|site| jobs.each_ref().map(|job| site.json(&["why", job])));
        all.into_iter().flatten().collect()
    };
    let are =
        |reason: &'static str| move |all: &[Value]| all.iter().all(|why| says(why, reason, ""));
    let show = || reasons().iter().map(Value::to_string).collect::<Vec<String>>().join("\n");
    let is_unwell = are("worker-unhealthy");
    until("no worker is well", show, || is_unwell(&reasons()).then_some(()));
    let lock = Lock::take(&database);
    one.puppet().report(|beat| beat.unhealthy = false);
    two.puppet().report(|beat| beat.unhealthy = false);
    let is_claiming = are("claiming");
    let by_another = |why: &Value| says(why, "claiming", "another scheduler is about to claim it");
    until("both are claimed, by one scheduler each", show, || {
        let all = reasons();
        (is_claiming(&all) && all.iter().any(by_another)).then_some(())
    });
    for _ in 0..TIMES {
        let all = reasons();
        assert!(is_claiming(&all), "nothing changed but: {all:#?}");
    }
    drop(lock);
    for job in &jobs {
        one.wait(job, "state", "running");
    }
}

#[test]
fn a_job_whose_inputs_no_worker_reports_waits_four_rounds_and_starts() {
    let mut site = Site::serve();
    site.said(&["policy", r#"{"preset": "simple"}"#]);
    // It says that it holds no input, and that says nothing of workers that run jobs.
    let kind =
        v1::WorkerType { detects_only: true, detect_max: 1, ..hello("looks").types.remove(0) };
    let looks = v1::Hello { types: vec![kind], has_inventory: true, ..hello("looks") };
    puppet_as(&mut site, looks, v1::Heartbeat::default(), "serving");
    site.work("w1", &[]);
    site.until("w1 is there", || (site.json(&["workers"]).as_array()?.len() == 2).then_some(()));
    let job = site.submit(&["--input", "sha256-aa=1000", "--", "true"]);
    let mut rounds: Vec<f64> = Vec::new();
    site.until("it has started", || {
        let why = site.json(&["why", &job]);
        if why["state"] != "queued" || why["reason"] == "claiming" {
            return Some(());
        }
        assert!(says(&why, "vetoed", "its inputs are not known (round "), "{why}");
        let numbers = &why["checks"][0]["numbers"];
        assert_eq!(numbers["rounds"], json!(4.0));
        rounds.push(numbers["round"].as_f64().expect("it is a number"));
        None
    });
    assert!(rounds.is_sorted() && rounds.iter().all(|round| *round < 4.0), "{rounds:?}");
    assert!(rounds.len() > TIMES, "{rounds:?}");
    site.wait(&job, "state", "succeeded");
}

#[test]
fn a_job_behind_more_jobs_than_a_decision_reads_starts() {
    let mut site = Site::start(&["serve"]);
    let job = crowd(&mut site);
    // Nothing happens but that the scheduler reads on.
    site.wait(&job, "state", "succeeded");
}
