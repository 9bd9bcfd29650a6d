//! Several schedulers on one Postgres that have their workers look for work together.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::janitor::{
    assert_done_once, folder, history, journal, n_compressed, start_one, until_resting,
};
use crate::shared::{Way, database, serve};
use crate::site::Site;

fn kind(site: &Site, kind: &str) -> Value {
    site.json(&["types", "show", kind])
}

fn whats(site: &Site, kind: &str) -> Vec<String> {
    let activity = site.json(&["activity", "--kind", kind]);
    let entries = activity["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_leader_that_is_killed_in_the_middle_of_a_group_is_followed_by_another() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    let (folder, lines) = (folder(&one, 12, 500_000), one.path("journal"));
    let set = ["types", "set", "compress", "admin.size_min=100000", "worker.pause=60ms"];
    one.said(&set);
    // Two of three workers come by a way that can be led elsewhere, as a balancer does.
    let way = Way::to(one.address());
    let place = (&*folder, &*lines);
    for name in ["janitor-1", "janitor-2"] {
        start_one(&mut one, name, place, &["--server", &way.address]);
    }
    one.until("it executes", || {
        (kind(&one, "compress")["running"]["phase"] == "executing").then_some(())
    });
    let run = kind(&one, "compress")["running"].clone();
    start_one(&mut two, "janitor-3", place, &[]);
    two.until("some are done", || (n_compressed(&folder) >= 2).then_some(()));
    assert_eq!(kind(&two, "compress")["running"]["leader"], run["leader"], "one leads");
    way.lead_to(two.address());
    one.kill_scheduler();
    assert!(n_compressed(&folder) < 12, "it was killed in the middle");
    let runs = history(&two, "compress", 1);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(
        (&runs[0]["run"], &runs[0]["status"], &runs[0]["succeeded"]),
        (&run["run"], &json!("succeeded"), &json!(12)),
    );
    assert_eq!(n_compressed(&folder), 12);
    let journal = journal(&one);
    assert_eq!(journal["looks compress"], 1, "nobody looked again: {journal:?}");
    assert_done_once(&two, &journal, 12);
    let went_on = format!("goes on with run {}", run["run"].as_str().unwrap());
    assert!(whats(&two, "lane").iter().any(|what| what.ends_with(&went_on)));
    // And whoever leads now has the next type looked for.
    history(&two, "duplicates", 1);
}

#[test]
fn a_leader_that_is_killed_in_the_middle_of_a_detection_is_followed_and_nothing_is_found_twice() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    let (folder, lines) = (folder(&one, 130, 2_000), one.path("journal"));
    one.said(&["types", "set", "compress", "admin.size_min=1000", "worker.look_pause=40s"]);
    let (way, place) = (Way::to(one.address()), (&*folder, &*lines));
    start_one(&mut one, "janitor-1", place, &["--only", "compress", "--server", &way.address]);
    let run = until_resting(&one);
    start_one(&mut two, "janitor-2", place, &["--only", "compress"]);
    let set = two.json(&["types", "set", "compress", "worker.look_pause=0s"]);
    assert_eq!(set["schedulers_current"], 2, "{set}");
    assert_eq!(kind(&two, "compress")["running"]["phase"], "detecting", "it is still held open");
    way.lead_to(two.address());
    one.kill_scheduler();
    // The detection that was cut off is on record, with what it had found, and there is one more.
    let runs = history(&two, "compress", 2);
    let (again, cut_off) = (&runs[0], &runs[1]);
    assert_eq!((&cut_off["run"], &cut_off["status"]), (&run["run"], &json!("failed")), "{runs:?}");
    let why = cut_off["error"].as_str().unwrap();
    assert_eq!(why, "the scheduler that led the lane went away");
    assert_eq!((&cut_off["taken"], &cut_off["succeeded"]), (&json!(100), &json!(100)), "{runs:?}");
    assert_eq!((&again["status"], &again["proposed"]), (&json!("succeeded"), &json!(30)));
    assert_eq!((&again["taken"], &again["succeeded"]), (&json!(30), &json!(30)), "{runs:?}");
    assert_eq!(n_compressed(&folder), 130);
    let journal = journal(&one);
    assert_eq!(journal["looks compress"], 2, "once cut off, once to the end: {journal:?}");
    assert_done_once(&two, &journal, 130);
    let jobs = two.json(&["jobs", "--type", "compress", "-n", "500"]);
    let jobs = jobs["jobs"].as_array().unwrap();
    let keys: BTreeSet<&str> = jobs.iter().map(|job| job["dedupe_key"].as_str().unwrap()).collect();
    assert_eq!((jobs.len(), keys.len()), (130, 130), "each was proposed and taken once");
    let went_on = format!("goes on with run {}", run["run"].as_str().unwrap());
    assert_eq!(whats(&two, "lane").iter().filter(|what| what.ends_with(&went_on)).count(), 1);
    // It was due once; it is not again before its interval is over.
    assert!(kind(&two, "compress")["running"].is_null());
    assert_eq!(history(&two, "compress", 2).len(), 2);
}

#[test]
fn any_scheduler_can_be_asked_whoever_leads() {
    let database = database();
    let (mut one, two) = (serve(&database), serve(&database));
    let (folder, lines) = (folder(&one, 3, 300_000), one.path("journal"));
    start_one(&mut one, "janitor-1", (&folder, &lines), &[]);
    for name in ["compress", "duplicates"] {
        let runs = history(&one, name, 1);
        assert_eq!(runs[0]["proposed"], 0, "no file is large enough: {runs:?}");
    }
    // What one was told the other knows, and what is set at one holds at the other.
    two.until("it knows who looks", || (kind(&two, "compress")["elsewhere"] == true).then_some(()));
    assert_eq!(kind(&two, "compress")["display_name"], "Compress");
    let set = two.json(&["types", "set", "compress", "admin.size_min=100000", "worker.pause=60ms"]);
    assert_eq!((&set["schedulers"], &set["schedulers_current"]), (&json!(2), &json!(2)));
    assert_eq!(kind(&one, "compress")["admin"]["size_min"], 100_000);
    let shown = two.said(&["types", "show", "compress"]);
    assert!(shown.contains("looked for by workers of another scheduler"), "{shown}");
    assert!(shown.contains("2 of 2 schedulers go by what is set"), "{shown}");
    // A run that is asked for at one is made by the other, under what was set.
    assert!(two.said(&["detect", "compress"]).contains("is asked for"));
    two.until("it executes", || {
        (kind(&two, "compress")["running"]["phase"] == "executing").then_some(())
    });
    assert!(two.said(&["detect", "compress", "--cancel"]).contains("is called off"));
    let run = history(&two, "compress", 2).remove(0);
    assert_eq!((&run["asked"], &run["error"]), (&json!(true), &json!("somebody called it off")));
    let run = two.json(&["detect", "compress", "--wait"]);
    assert_eq!((&run["status"], &run["worker"]), (&json!("succeeded"), &json!("janitor-1")));
    assert_eq!(n_compressed(&folder), 3);
    assert!(two.said(&["types", "describe", "compress"]).contains("another scheduler asks"));
    two.until("it described it again", || {
        let described = whats(&two, "descriptor").into_iter();
        (described.filter(|what| what == "described `compress`").count() >= 2).then_some(())
    });
    let activity = two.json(&["activity", "--kind", "setting"]);
    assert_eq!(activity["entries"][0]["who"], "local", "{activity}");
}

#[test]
fn types_of_one_lane_take_turns_wherever_their_workers_are() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    let (folder, lines) = (folder(&one, 2, 1_000), one.path("journal"));
    let place = (&*folder, &*lines);
    for name in ["compress", "duplicates"] {
        one.said(&["types", "set", name, "interval=1s"]);
    }
    start_one(&mut one, "janitor-1", place, &["--only", "compress"]);
    start_one(&mut two, "janitor-2", place, &["--only", "duplicates"]);
    for name in ["compress", "duplicates"] {
        let runs = history(&one, name, 3);
        assert!(runs.iter().all(|run| run["status"] == "succeeded"), "{runs:?}");
    }
    // A schedule that is set at one is kept by both.
    two.said(&["schedule", "add", "tick", "--every", "1s", "--", "true"]);
    one.until("it recurs", || {
        let jobs = one.json(&["jobs", "--label", "schedule=tick"]);
        (jobs["jobs"].as_array().unwrap().len() >= 2).then_some(())
    });
    one.kill_scheduler();
    let before = two.json(&["schedule", "list"])[0]["last_ms"].as_i64();
    two.until("it still recurs", || {
        (two.json(&["schedule", "list"])[0]["last_ms"].as_i64() > before).then_some(())
    });
    let jobs = two.json(&["jobs", "--label", "schedule=tick", "-n", "500"]);
    let mut keys: Vec<&str> = Vec::new();
    for job in jobs["jobs"].as_array().unwrap() {
        keys.push(job["dedupe_key"].as_str().unwrap());
    }
    let n_jobs = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), n_jobs, "a moment came twice");
}

#[test]
fn what_a_descriptor_allows_at_once_holds_across_schedulers() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    let (folder, lines) = (folder(&one, 12, 400_000), one.path("journal"));
    one.said(&["types", "set", "compress", "admin.size_min=100000", "worker.pause=60ms"]);
    let place = (&*folder, &*lines);
    for n in 1..=3 {
        start_one(&mut one, &format!("janitor-{n}"), place, &["--only", "compress"]);
        start_one(&mut two, &format!("scout-{n}"), place, &["--only", "compress"]);
    }
    let run = history(&one, "compress", 1).remove(0);
    assert_eq!(run["succeeded"], 12, "{run}");
    let jobs = one.json(&["jobs", "--type", "compress", "-n", "99"]);
    let mut moments = Vec::new();
    for job in jobs["jobs"].as_array().unwrap() {
        let attempts = one.job(&job["id"].to_string())["past_attempts"].clone();
        for attempt in attempts.as_array().unwrap() {
            let at = |field: &str| attempt[field].as_i64().unwrap();
            // Moments are by the clocks of two schedulers, which differ a little.
            moments.extend([(at("claimed_ms") + 50, 1), (at("ended_ms") - 50, -1)]);
        }
    }
    moments.sort_unstable();
    let at_once = moments.iter().scan(0, |n, (_, change)| {
        *n += change;
        Some(*n)
    });
    assert!(at_once.max() <= Some(3), "the descriptor says `jobs_max` 3: {moments:?}");
}
