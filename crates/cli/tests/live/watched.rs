//! What one scheduler does is seen by whoever watches at another.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::io::{BufRead as _, BufReader};
use std::sync::mpsc;

use serde_json::Value;

use crate::shared::{database, serve};
use crate::site::Site;

/// Lines of `maitre watch`, as they come.
struct Watching {
    child: std::process::Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn at(site: &Site, arguments: &[&str]) -> Self {
        let mut watch = site.command(&[&["watch", "--json"], arguments].concat());
        let mut child = watch.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// What was seen since it was last asked; `{"missed": true}` if something was not.
    fn seen(&self) -> Vec<Value> {
        self.lines.try_iter().map(|line| serde_json::from_str(&line).unwrap()).collect()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is(change: &Value, job: &str, state: &str) -> bool {
    change["id"].as_u64() == job.parse().ok() && change["state"] == state
}

#[test]
fn whoever_watches_at_one_scheduler_sees_the_jobs_of_all() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work("w2", &[]);
    let watching = Watching::at(&one, &[]);
    let of_acme = Watching::at(&one, &["--tenant", "acme"]);
    // From when the other knows that somebody watches.
    one.until("a job of another is seen", || {
        let job = two.submit(&["--tenant", "acme", "--", "true"]);
        two.wait(&job, "state", "succeeded");
        watching.seen().iter().any(|change| change["tenant"] == "acme").then_some(())
    });
    of_acme.seen();
    let held = two.submit(&["--tenant", "globex", "--hold", "--", "true"]);
    let failed = two.submit(&["--tenant", "acme", "--attempts", "1", "--", "false"]);
    let mut seen = Vec::new();
    let mut until_seen = |job: &str, state: &str| {
        one.until(&format!("{job} is seen to be {state}"), || {
            seen.extend(watching.seen());
            seen.iter().any(|change| is(change, job, state)).then_some(())
        });
        std::mem::take(&mut seen)
    };
    let early = until_seen(&failed, "failed");
    let n_ends = early.iter().filter(|change| is(change, &failed, "failed")).count();
    assert_eq!(n_ends, 1, "an end is seen once: {early:?}");
    two.said(&["cancel", &held]);
    until_seen(&held, "cancelled");
    two.said(&["retry", &failed]);
    until_seen(&failed, "failed");
    let of_acme = of_acme.seen();
    assert!(of_acme.iter().any(|change| is(change, &failed, "failed")), "{of_acme:?}");
    assert!(of_acme.iter().all(|change| change["tenant"] == "acme"), "{of_acme:?}");
    // How late others are known is told to those who measure.
    let is_late = one.until("it is told how late", || {
        let metrics = crate::doors::get(one.address(), "/metrics");
        let age = metrics.lines().find_map(|it| it.strip_prefix("maitre_others_age_seconds "));
        age.unwrap().parse().ok().filter(|age: &f64| *age > 0.0)
    });
    assert!(is_late < 60.0, "{is_late}");
    // What both hear of, the scheduler that is asked and the other, is seen once.
    let own = one.submit(&["--", "true"]);
    let seen = until_seen(&own, "succeeded");
    let n_ends = seen.iter().filter(|change| is(change, &own, "succeeded")).count();
    assert_eq!(n_ends, 1, "{seen:?}");
}

#[test]
fn whoever_watches_a_job_that_is_forgotten_elsewhere_sees_its_end() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    one.said(&["set", "type", "exec", r#"{"forget": true}"#]);
    two.work("w2", &[]);
    let gate = two.path("gate");
    let job = two.submit(&["--", "sh", "-c", &crate::shared::until_there(&gate)]);
    let watching = Watching::at(&one, &[&job]);
    let mut seen = Vec::new();
    let mut until_seen = |state: &str| {
        one.until(&format!("it is seen to be {state}"), || {
            seen.extend(watching.seen());
            seen.iter().any(|change| is(change, &job, state)).then_some(())
        });
    };
    until_seen("running");
    std::fs::write(&gate, "").unwrap();
    until_seen("succeeded");
    assert!(one.refused(&["job", &job]).contains("there is no job"));
}

#[test]
fn whoever_watches_is_told_that_something_of_others_was_missed() {
    let database = database();
    let (one, mut two) = (serve(&database), serve(&database));
    two.work("w2", &[]);
    let watching = Watching::at(&one, &[]);
    let mut seen = Vec::new();
    one.until("a job of another is seen", || {
        two.said(&["run", "--", "true"]);
        seen.extend(watching.seen());
        seen.iter().any(|change| change["state"] == "succeeded").then_some(())
    });
    let has_missed = |seen: &[Value]| seen.iter().any(|change| change["missed"] == true);
    assert!(!has_missed(&seen), "{seen:?}");
    // What others say meanwhile is not heard.
    let listeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    database.say(listeners).unwrap();
    one.until("it is told", || has_missed(&watching.seen()).then_some(()));
    let job = two.submit(&["--", "true"]);
    one.until("it goes on", || {
        watching.seen().iter().any(|change| is(change, &job, "succeeded")).then_some(())
    });
}
