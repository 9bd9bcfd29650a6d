//! Several schedulers on one Postgres, and workers that move between them.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that fails says where, and knows patience"
)]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster::{Cluster, Database, Sync};
use serde_json::json;

use crate::site::{PATIENCE, Site};

pub(crate) fn database() -> Database {
    let cluster = Cluster::shared().unwrap_or_else(|error| panic!("{error}"));
    cluster.database().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn serve(database: &Database) -> Site {
    Site::start(&["serve", "--store", database.url()])
}

/// Waits for a file, so that a test says when a job ends.
pub(crate) fn until_there(path: &str) -> String {
    format!("while ! test -e {path}; do sleep 0.02; done")
}

#[test]
fn one_scheduler_on_postgres_does_what_one_on_a_file_does() {
    let database = database();
    let mut site = serve(&database);
    let waits = site.submit(&["--need", "gpu=a100", "--", "true"]);
    site.until("it is known why it waits", || {
        (site.json(&["why", &waits])["reason"] == "no-worker-ever").then_some(())
    });
    site.work("w1", &[]);
    assert_eq!(site.said(&["run", "--", "echo", "hello"]), "hello\n");
    let first = site.submit(&["--", "sh", "-c", "exit 3"]);
    let after = site.submit(&["--after", &first, "--", "true"]);
    site.wait(&first, "state", "failed");
    site.wait(&after, "state", "cancelled");
    let later = site.submit(&["--delay", "300ms", "--", "true"]);
    site.wait(&later, "state", "succeeded");
    // Killed and started again, it goes on with what was there.
    let running = site.submit(&["--", "sh", "-c", &until_there(&site.path("go"))]);
    site.wait(&running, "state", "running");
    site.kill_scheduler();
    site.launch(&["serve", "--store", database.url()]);
    std::fs::write(site.path("go"), "").unwrap();
    let job = site.wait(&running, "state", "succeeded");
    assert_eq!((&job["attempts"], &job["losses"]), (&json!(1), &json!(0)));
    assert_eq!(site.job(&waits)["state"], "queued");
    let told = site.json(&["simulate", "--from", database.url(), "--compare", "fifo,balanced"]);
    let n_ran = told["workload"]["n_jobs"].as_u64().unwrap();
    assert_eq!(n_ran, 4, "what ran to an end can be replayed: {told}");
}

#[test]
fn what_one_takes_in_another_runs_and_either_can_call_off() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work_named("w2", &["--exec", "--slots", "2"]);
    for _ in 0..4 {
        let id = one.submit(&["--", "true"]);
        assert_eq!(one.wait(&id, "state", "succeeded")["worker"], "w2");
    }
    let running = two.submit(&["--", "sleep", "60"]);
    two.wait(&running, "state", "running");
    one.said(&["cancel", &running]);
    one.wait(&running, "state", "cancelled");
}

/// Each scheduler has workers of one pool, and claims half of the jobs of both.
#[test]
fn no_slot_is_idle_because_of_jobs_that_it_is_not_for() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    one.work_named("w1", &["--exec", "--slots", "4", "--pool", "x"]);
    two.work_named("w2", &["--exec", "--slots", "4", "--pool", "y"]);
    for (pool, n_jobs) in [("x", "16"), ("y", "40")] {
        one.said(&["submit", "--array", n_jobs, "--pool", pool, "--", "true"]);
    }
    one.until("all of them have run", || {
        let jobs = one.json(&["jobs", "--state", "succeeded", "-n", "100"]);
        (jobs["jobs"].as_array()?.len() == 56).then_some(())
    });
}

/// A scheduler claimed a job for a worker that has moved, and died.
#[test]
fn a_claim_of_which_nothing_came_is_given_up_though_its_worker_is_well() {
    let database = database();
    let mut one = serve(&database);
    one.work("w1", &[]);
    let held = one.submit(&["--hold", "--", "true"]);
    let claim = format!(
        "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms), \
         given AS (INSERT INTO maitre.grants (call, worker, at, jobs) \
             SELECT 7, 'w1', ms, ARRAY[{held}] FROM now) \
         UPDATE maitre.jobs SET state = 'claimed', on_hold = false, fence = fence + 1, \
             attempts = 1, worker = 'w1', claimed = ms, why = '', pool = 'default', place = NULL \
             FROM now WHERE id = {held}"
    );
    database.say(&claim).unwrap();
    let job = one.wait(&held, "state", "succeeded");
    assert_eq!((&job["attempts"], &job["losses"]), (&json!(2), &json!(0)));
}

#[test]
fn a_limit_holds_across_schedulers() {
    let database = database();
    let mut one = serve(&database);
    one.said(&["set", "tenant", "t", r#"{"jobs_max": 1}"#]);
    let mut two = serve(&database);
    one.work_named("w1", &["--exec", "--slots", "4"]);
    two.work_named("w2", &["--exec", "--slots", "4"]);
    // Who finds the place taken fails for good.
    let place = one.path("place");
    let script = format!("mkdir {place} || exit 9; sleep 0.03; rmdir {place}");
    let jobs: Vec<String> = (0..16)
        .map(|n| {
            let site = if n % 2 == 0 { &one } else { &two };
            site.submit(&["--tenant", "t", "--attempts", "1", "--", "sh", "-c", &script])
        })
        .collect();
    for job in &jobs {
        one.until("it is final", || {
            let job = one.job(job);
            assert_ne!(job["state"], "failed", "two ran at once: {job}");
            (job["state"] == "succeeded").then_some(())
        });
    }
}

#[test]
fn what_a_dead_scheduler_had_another_takes_over() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    one.work("w1", &[]);
    let marker = one.path("first");
    let script = format!("test -e {marker} || {{ touch {marker}; sleep 60; }}");
    let job = one.submit(&["--", "sh", "-c", &script]);
    one.until("it runs", || std::path::Path::new(&marker).exists().then_some(()));
    one.kill_scheduler();
    two.work("w2", &[]);
    let job = two.wait(&job, "state", "succeeded");
    assert_eq!((&job["worker"], &job["losses"]), (&json!("w2"), &json!(1)));
}

#[test]
fn a_worker_that_moves_to_another_scheduler_keeps_its_attempts() {
    let database = database();
    let (mut one, two) = (serve(&database), serve(&database));
    let way = Way::to(one.address());
    one.work("w1", &["--server", &way.address]);
    let (runs, go) = (one.path("runs"), one.path("go"));
    let script = format!("echo x >> {runs}; {}", until_there(&go));
    let job = one.submit(&["--", "sh", "-c", &script]);
    one.wait(&job, "state", "running");
    way.lead_to(two.address());
    one.kill_scheduler();
    two.until("the worker is there", || {
        (two.json(&["workers"])[0]["state"] == "serving").then_some(())
    });
    std::fs::write(&go, "").unwrap();
    let done = two.wait(&job, "state", "succeeded");
    assert_eq!((&done["attempts"], &done["losses"]), (&json!(1), &json!(0)));
    assert_eq!(one.lines("runs"), ["x"], "it ran once");
    // And the worker goes on working for its new scheduler.
    let next = two.submit(&["--", "true"]);
    assert_eq!(two.wait(&next, "state", "succeeded")["worker"], "w1");
}

#[test]
fn what_a_job_said_last_to_a_scheduler_that_died_with_it_is_read_at_the_next() {
    let database = database();
    let (mut one, two) = (serve(&database), serve(&database));
    let way = Way::to(one.address());
    one.work("w1", &["--server", &way.address]);
    let (go, over) = (one.path("go"), one.path("over"));
    let script = format!("echo first; {}; echo last; touch {over}", until_there(&go));
    let job = one.submit(&["--", "sh", "-c", &script]);
    one.until("it speaks", || (one.said(&["logs", &job]) == "first\n").then_some(()));
    // It takes what comes, and does nothing with it.
    one.suspend_scheduler();
    std::fs::write(&go, "").unwrap();
    two.until("it is over", || std::path::Path::new(&over).exists().then_some(()));
    // For the worker to hand it over, which nobody sees: if it takes longer, nothing is tested.
    std::thread::sleep(Duration::from_millis(100));
    way.lead_to(two.address());
    one.kill_scheduler();
    two.wait(&job, "state", "succeeded");
    // If its lease was over before it moved, it ran again.
    let said = two.said(&["logs", &job]);
    assert!(said.ends_with("first\nlast\n"), "{said}");
}

/// A way to one of several schedulers, as a name or a balancer is.
pub(crate) struct Way {
    pub(crate) address: String,
    target: Arc<Mutex<String>>,
}

impl Way {
    pub(crate) fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = Arc::new(Mutex::new(target.to_owned()));
        let leads_to = Arc::clone(&target);
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let target = leads_to.lock().unwrap().clone();
                if let Ok(to) = TcpStream::connect(target) {
                    pass((from.try_clone().unwrap(), to.try_clone().unwrap()));
                    pass((to, from));
                }
            }
        });
        Self { address, target }
    }

    pub(crate) fn lead_to(&self, target: &str) {
        target.clone_into(&mut self.target.lock().unwrap());
    }
}

fn pass((mut from, mut to): (TcpStream, TcpStream)) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Asks until somebody who watches would be told so.
fn ready(site: &Site) -> bool {
    crate::doors::get(site.address(), "/readyz").starts_with("HTTP/1.1 200")
}

#[test]
fn a_scheduler_that_loses_its_store_says_so_and_goes_on_when_it_is_back() {
    let cluster = Cluster::start(Sync::Off).unwrap_or_else(|error| panic!("{error}"));
    let database = cluster.database().unwrap();
    let mut site = serve(&database);
    site.work("w1", &[]);
    assert_eq!(site.said(&["run", "--", "echo", "before"]), "before\n");
    assert!(ready(&site));
    cluster.crash().unwrap();
    site.until("it says that it is not ready", || (!ready(&site)).then_some(()));
    let refused = site.maitre(&["submit", "--", "true"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("did not answer"), "{told}");
    cluster.resume().unwrap();
    // Nobody has to do anything for it.
    site.until("it is ready again", || ready(&site).then_some(()));
    assert_eq!(site.said(&["run", "--", "echo", "after"]), "after\n");
}

#[test]
fn a_store_that_is_away_at_the_start_is_waited_for() {
    let cluster = Cluster::start(Sync::Off).unwrap_or_else(|error| panic!("{error}"));
    let database = cluster.database().unwrap();
    let mut site = serve(&database);
    let waiting = site.submit(&["--", "true"]);
    let address = site.address().to_owned();
    site.kill_scheduler();
    cluster.crash().unwrap();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| site.launch(&["serve", "--store", database.url()]));
        // It listens long before it knows anything.
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "it does not listen");
        }
        let told = crate::doors::get(&address, "/readyz");
        assert!(told.starts_with("HTTP/1.1 503") && told.contains("cannot be reached"), "{told}");
        assert!(crate::doors::get(&address, "/healthz").ends_with("ok\n"));
        cluster.resume().unwrap();
        started.join().unwrap();
    });
    site.until("it is ready", || ready(&site).then_some(()));
    site.work("w1", &[]);
    site.wait(&waiting, "state", "succeeded");
}

/// What the next version may do to the schema: a table and columns of its own, and nothing that
/// this version would trip over.
const NEXT: &str = "SET search_path = maitre; \
    CREATE TABLE novelties (job bigint PRIMARY KEY, what text NOT NULL); \
    ALTER TABLE jobs ADD COLUMN novelty text; \
    ALTER TABLE finished ADD COLUMN novelty text DEFAULT 'none'; \
    CREATE INDEX ON jobs (novelty) WHERE novelty IS NOT NULL; \
    INSERT INTO migrations (number, name, checksum) \
        SELECT count(*) + 1, 'next', 'unknown here' FROM migrations";

#[test]
fn a_version_works_on_with_the_schema_of_the_next_one() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    one.work_named("w1", &["--exec", "--slots", "2"]);
    two.work_named("w2", &["--exec", "--slots", "2"]);
    let gate = one.path("gate");
    let held: Vec<String> =
        (0..4).map(|_| one.submit(&["--", "sh", "-c", &until_there(&gate)])).collect();
    for job in &held {
        one.wait(job, "state", "running");
    }
    let waiting = two.submit(&["--", "true"]);
    database.say(NEXT).unwrap();
    // What is under way ends, what waits starts, and what comes is taken in.
    std::fs::write(&gate, "").unwrap();
    for job in held.iter().chain([&waiting]) {
        assert_eq!(two.wait(job, "state", "succeeded")["attempts"], 1);
    }
    for site in [&one, &two] {
        let first = site.submit(&["--", "true"]);
        let after = site.submit(&["--after", &first, "--", "true"]);
        site.wait(&after, "state", "succeeded");
    }
    // One that has to be started again meanwhile works too; the version after the next does not.
    two.kill_scheduler();
    two.launch(&["serve", "--store", database.url()]);
    assert_eq!(two.said(&["run", "--", "echo", "again"]), "again\n");
    one.said(&["store", "check", "--store", database.url()]);
    database
        .say(&NEXT[NEXT.find("INSERT").unwrap()..].replace(" migrations", " maitre.migrations"))
        .unwrap();
    let mut maitre = Site::program(env!("CARGO_BIN_EXE_maitre"));
    maitre.args(["serve", "--listen", "127.0.0.1:0", "--store", database.url()]);
    let refused = maitre.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("newer version"), "{said}");
}

#[test]
fn any_scheduler_says_what_becomes_of_a_job_of_another_and_why_it_waits() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work("w2", &["--has", "gpu=a100"]);
    let gate = two.path("gate");
    let held = two.submit(&["--need", "gpu=a100", "--", "sh", "-c", &until_there(&gate)]);
    one.wait(&held, "state", "running");
    assert_eq!(one.json(&["why", &held])["state"], "running");
    // Who has no worker at all knows of those of others, and of what none of them can do.
    let waits = one.submit(&["--need", "gpu=a100", "--", "true"]);
    let never = one.submit(&["--need", "gpu=h100", "--", "true"]);
    for site in [&one, &two] {
        site.until("it is full there", || {
            (site.json(&["why", &waits])["reason"] == "workers-full").then_some(())
        });
        site.until("nobody can", || {
            (site.json(&["why", &never])["reason"] == "no-worker-ever").then_some(())
        });
    }
    let watched = std::thread::scope(|scope| {
        let watch = scope.spawn(|| one.said(&["watch", &held, &waits]));
        std::fs::write(&gate, "").unwrap();
        watch.join().unwrap()
    });
    let lines: Vec<&str> = watched.lines().collect();
    for job in [&held, &waits] {
        let end = format!("job {job} succeeded");
        assert!(lines.iter().any(|line| line.starts_with(&end)), "{watched}");
    }
}

#[test]
fn a_tenant_below_its_minimum_gets_its_slot_whichever_scheduler_has_it() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    one.said(&[
        "policy",
        r#"{"preset": "cohort", "preemption": {"enabled": true, "delay_ms": 0}}"#,
    ]);
    one.said(&["quota", "below", "gpu", "--min", "1", "--max", "1"]);
    // The one that takes the job in has workers too, none of which can run it.
    one.work_named("w1", &["--exec", "--slots", "1", "--pool", "other"]);
    two.work_named("w2", &["--exec", "--slots", "2", "--pool", "gpu"]);
    let over = |n: usize| {
        let site = if n == 0 { &one } else { &two };
        site.submit(&["--tenant", "over", "--pool", "gpu", "--", "sleep", "60"])
    };
    let victims: Vec<String> = (0..2).map(over).collect();
    for victim in &victims {
        one.wait(victim, "state", "running");
    }
    // Whoever's stripe each of them is in.
    for _ in 0..2 {
        let job =
            one.submit(&["--tenant", "below", "--priority", "1", "--pool", "gpu", "--", "true"]);
        assert_eq!(one.wait(&job, "state", "succeeded")["worker"], "w2");
    }
    let endings: Vec<serde_json::Value> =
        victims.iter().map(|job| one.job(job)["past_attempts"][0]["ending"].clone()).collect();
    assert!(endings.contains(&json!("preempted")), "{endings:?}");
}
