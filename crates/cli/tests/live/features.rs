//! What jobs can be: arrays, dependencies, retries, timeouts, dedupe, holds, deadlines.

use serde_json::{Value, json};

use crate::site::Site;

#[test]
fn an_array_is_one_submit_and_many_jobs() {
    let site = Site::dev();
    let script = format!("echo $MAITRE_ARRAY_INDEX >> {}", site.path("indexes"));
    let submitted = site
        .json(&["submit", "--array", "20", "--wait", "--group", "g", "--", "sh", "-c", &script]);
    assert_eq!(submitted.as_array().unwrap().len(), 20);
    let mut indexes: Vec<u32> =
        site.lines("indexes").iter().map(|line| line.parse().unwrap()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (0..20).collect::<Vec<u32>>());
    assert_eq!(
        site.json(&["jobs", "--group", "g", "-n", "50"])["jobs"].as_array().unwrap().len(),
        20
    );
}

#[test]
fn a_job_waits_for_others_and_falls_with_them_unless_it_may_not() {
    let site = Site::dev();
    let first = site.submit(&["--hold", "--attempts", "1", "--", "false"]);
    let second = site.submit(&["--after", &first, "--", "true"]);
    let third = site.submit(&["--after", &second, "--", "true"]);
    let last = site.submit(&["--after", &first, "--even-if-failed", "--", "true"]);
    assert_eq!(site.job(&second)["state"], "blocked");
    let why = site.json(&["why", &second]);
    assert_eq!(why["reason"], "not-ready");
    assert_eq!(
        why["detail"],
        format!("it waits for job {first} (queued: on-hold) to finish first")
    );
    assert_eq!(site.job(&first)["n_dependents"], 2);
    assert_eq!(site.json(&["why", &first])["reason"], "on-hold");
    site.said(&["release", &first]);
    site.wait(&first, "state", "failed");
    site.wait(&last, "state", "succeeded");
    for id in [second, third] {
        let job = site.wait(&id, "state", "cancelled");
        assert_eq!(job["cause"], "dependency");
    }
}

#[test]
fn a_job_that_waits_for_many_names_the_first_that_are_not_done() {
    let site = Site::dev();
    let done = site.submit(&["--wait", "--", "true"]);
    site.said(&["submit", "--hold", "--array", "8", "--", "true"]);
    let after = format!("{done},2,3,4,5,6,7,8,9");
    let last = site.submit(&["--after", &after, "--", "true"]);
    let told = site.said(&["why", &last]);
    assert!(
        told.contains("it waits for job 2 (queued: on-hold), job 3 (")
            && told.contains("and 3 more"),
        "{told}"
    );
}

#[test]
fn a_job_that_is_done_already_is_told_to_machines_as_one_that_ends() {
    let site = Site::dev();
    let id = site.submit(&["--wait", "--", "true"]);
    let seen = site.json(&["watch", &id]);
    let job = site.job(&id);
    assert_eq!((&seen["id"], &seen["state"]), (&job["id"], &json!("succeeded")));
    assert_eq!((&seen["worker"], &seen["at_ms"]), (&json!("w1"), &job["finished_ms"]));
}

#[test]
fn failures_are_tried_again_and_permanent_ones_are_not() {
    let site = Site::dev();
    let script = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3", site.path("tries"));
    let id = site.submit(&["--attempts", "5", "--wait", "--", "sh", "-c", &script]);
    let job = site.job(&id);
    assert_eq!((&job["state"], &job["failures"]), (&json!("succeeded"), &json!(2)));
    let id = site.submit(&["--", "no-such-program"]);
    let job = site.wait(&id, "state", "failed");
    assert_eq!((&job["cause"], &job["attempts"]), (&json!("permanent"), &json!(1)));
}

#[test]
fn a_job_that_runs_or_is_silent_for_too_long_is_ended() {
    let site = Site::dev();
    let long = site.submit(&[
        "--timeout",
        "300ms",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "sleep 60 & wait",
    ]);
    let silent =
        site.submit(&["--silence-timeout", "300ms", "--attempts", "1", "--", "sleep", "60"]);
    for id in [long, silent] {
        site.wait(&id, "state", "failed");
        assert_eq!(site.job(&id)["past_attempts"][0]["ending"], "timeout");
    }
}

#[test]
fn a_job_that_comes_too_late_is_not_started() {
    let site = Site::serve();
    let id = site.submit(&["--start-within", "100ms", "--", "true"]);
    let job = site.wait(&id, "state", "failed");
    assert_eq!((&job["cause"], &job["attempts"]), (&json!("too-late"), &json!(0)));
}

#[test]
fn the_same_submission_twice_is_one_job_and_another_under_its_key_is_a_conflict() {
    let site = Site::serve();
    let once =
        site.submit(&["--idempotency-key", "k", "--label", "a=1", "--label", "b=2", "--", "true"]);
    let twice =
        site.submit(&["--idempotency-key", "k", "--label", "b=2", "--label", "a=1", "--", "true"]);
    assert_eq!(once, twice);
    let told = site.refused(&["submit", "--idempotency-key", "k", "--", "false"]);
    assert!(told.contains("used before with another body"), "{told}");
}

#[test]
fn jobs_with_one_dedupe_key_are_one_job_with_the_highest_priority() {
    let site = Site::serve();
    let once = site.submit(&["--dedupe", "k", "--", "true"]);
    let twice = site.submit(&["--dedupe", "k", "--priority", "7", "--", "true"]);
    assert_eq!(once, twice);
    assert_eq!(site.job(&once)["priority"], 7);
    site.said(&["set", "type", "exec", r#"{"dedupe": "drop"}"#]);
    site.submit(&["--dedupe", "k", "--priority", "9", "--", "true"]);
    assert_eq!(site.job(&once)["priority"], 7);
}

#[test]
fn what_nobody_asks_about_is_forgotten_and_whoever_waits_still_hears_of_it() {
    let site = Site::dev();
    site.said(&["set", "type", "exec", r#"{"forget": true}"#]);
    let gone = site.submit(&["--", "true"]);
    let told = site.until("it is gone", || {
        let answer = site.maitre(&["job", &gone]);
        (!answer.status.success()).then(|| String::from_utf8_lossy(&answer.stderr).into_owned())
    });
    assert!(told.contains(&format!("there is no job {gone}")), "{told}");
    let printed = site.submit(&["--", "echo", "hello"]);
    site.wait(&printed, "state", "succeeded");
    assert_eq!(site.said(&["logs", &printed]), "hello\n");
    site.said(&["run", "--", "true"]);
    site.said(&["submit", "--wait", "--", "true"]);
}

#[test]
fn jobs_are_cancelled_in_every_state_and_taken_up_again() {
    let site = Site::dev();
    let running = site.submit(&["--", "sh", "-c", "trap '' TERM; sleep 60"]);
    site.wait(&running, "state", "running");
    let held = site.submit(&["--hold", "--", "true"]);
    let blocked = site.submit(&["--after", &held, "--", "true"]);
    for id in [&blocked, &held, &running] {
        site.said(&["cancel", id]);
        site.wait(id, "state", "cancelled");
    }
    let again = site.maitre(&["cancel", &held]);
    assert_eq!(again.status.code(), Some(1));
    site.said(&["retry", &held]);
    site.wait(&held, "state", "succeeded");
}

#[test]
fn the_priority_of_a_waiting_job_can_change() {
    let site = Site::dev();
    let order = |site: &Site, name: &str| {
        let script = format!("echo {name} >> {}", site.path("order"));
        site.submit(&["--slots", "2", "--", "sh", "-c", &script])
    };
    let blocker = site.submit(&["--slots", "2", "--", "sleep", "60"]);
    site.wait(&blocker, "state", "running");
    let first = order(&site, "first");
    let second = order(&site, "second");
    site.said(&["priority", "16", &second]);
    site.said(&["cancel", &blocker]);
    site.wait(&first, "state", "succeeded");
    assert_eq!(site.lines("order"), ["second", "first"]);
}

#[test]
fn jobs_that_share_a_resource_run_one_at_a_time() {
    let site = Site::dev();
    let script = format!("mkdir {0} && sleep 0.05 && rmdir {0}", site.path("door"));
    let arguments = ["submit", "--array", "6", "--resource", "door", "--attempts", "1", "--wait"];
    let jobs = site.json(&[&arguments[..], &["--", "sh", "-c", &script]].concat());
    assert!(jobs.as_array().unwrap().iter().all(|job| job["state"] == "succeeded"));
}

#[test]
fn what_happened_can_be_replayed_while_the_scheduler_runs() {
    let site = Site::dev();
    site.json(&["submit", "--array", "6", "--wait", "--", "sleep", "0.05"]);
    site.submit(&["--wait", "--priority", "3", "--on-demand", "--", "true"]);
    let url = format!("sqlite://{}", site.data().join("maitre.db").display());
    let from = |more: &[&str]| site.json(&[&["simulate", "--from", &url], more].concat());
    let told = from(&["--compare", "fifo,balanced"]);
    assert_eq!(told["workload"]["n_jobs"], 7);
    // One worker ran them, with both of its slots.
    assert_eq!(told["fleet"], json!({ "n_workers": 1, "slots": 2 }));
    let parts = told["runs"][1]["parts"].as_array().unwrap();
    let people = parts.iter().find(|part| part["name"] == "on-demand").unwrap();
    assert_eq!(people["n_jobs"], 1);
    assert_eq!(from(&["--since", "1h", "--fleet", "1"])["workload"]["n_jobs"], 7);
    let newest = from(&["--newest", "2", "--pictures"]);
    assert_eq!(newest["workload"]["n_jobs"], 2, "the newest alone");
    assert_eq!(newest["report"]["notes"][1], "Only the newest 2 jobs of that time were read.");
    // Tenants weigh what is set for them, unless somebody says otherwise.
    site.json(&["submit", "--tenant", "acme", "--wait", "--", "true"]);
    site.said(&["set", "tenant", "acme", r#"{"weight": 2.5}"#]);
    let weights = |more: &[&str]| {
        let tenants = from(more)["workload"]["tenants"].take();
        let weight = |tenant: &Value| tenant["weight"].as_u64().unwrap();
        tenants.as_array().unwrap().iter().map(weight).collect::<Vec<_>>()
    };
    assert_eq!(weights(&[]), [2_500, 1_000]);
    assert_eq!(weights(&["--weights", "1,7"]), [1, 7]);
    let said = site.refused(&["simulate", "--from", &url, "--until", "1h"]);
    assert!(said.contains("no job that was submitted then"), "{said}");
    let said = site.refused(&["simulate", "--from", "mysql://db/maitre"]);
    assert!(said.contains("which is no store"), "{said}");
}
