//! Reasons that take a worker or a policy of their own to stage.

use model::Reason;
use proto::v1;
use serde_json::{Value, json};

use crate::puppet::{Puppet, hello};
use crate::rows::{ROW, Row, busy};
use crate::site::Site;

/// Jobs in line that a decision looks past.
const READ_AT_ONCE: u64 = 64;

/// Connects a worker of the test's own, and waits until the scheduler has it in this state.
pub(crate) fn puppet(site: &mut Site, name: &str, beat: v1::Heartbeat, state: &str) {
    puppet_as(site, hello(name), beat, state);
}

/// The same for a worker that says more in its hello.
pub(crate) fn puppet_as(site: &mut Site, hello: v1::Hello, beat: v1::Heartbeat, state: &str) {
    let name = hello.worker.clone();
    let puppet = Puppet::connect(site, hello, beat);
    site.keep(puppet);
    is_in(site, &name, state);
}

/// Waits until the scheduler has a worker in this state.
pub(crate) fn is_in(site: &Site, worker: &str, state: &str) {
    site.until(&format!("{worker} is {state}"), || {
        let workers = site.json(&["workers"]);
        let mut workers = workers.as_array()?.iter();
        workers.any(|one| one["worker"] == worker && one["state"] == state).then_some(())
    });
}

/// A heartbeat of a worker that is not well enough to take work.
pub(crate) fn unwell() -> v1::Heartbeat {
    v1::Heartbeat { unhealthy: true, ..v1::Heartbeat::default() }
}

/// A heartbeat of a worker that computes as much as it can.
pub(crate) fn hot() -> v1::Heartbeat {
    let metrics = v1::Metrics { cpu_pct: Some(99.0), ..v1::Metrics::default() };
    v1::Heartbeat { metrics: Some(metrics), ..v1::Heartbeat::default() }
}

/// A worker that computes as much as it can, under a policy that minds. It serves as soon as its
/// metrics are known.
pub(crate) fn hot_site(site: &mut Site) {
    site.said(&["policy", r#"{"preset": "resource-aware"}"#]);
    puppet(site, "w1", hot(), "serving");
    site.until("its metrics are known", || {
        (site.json(&["workers"])[0]["cpu_pct"] == 99.0).then_some(())
    });
}

/// Jobs of the type `rare` came lately, and no other worker than `special` runs that type. Its
/// slot is free, and all slots of `plain` are in use.
pub(crate) fn rare_site(site: &mut Site) {
    let settings = "[worker.commands.rare]\nargv = [\"true\"]\n";
    std::fs::write(site.path("special.toml"), settings).expect("it can be written");
    site.work_named("special", &["--exec", "--slots", "1", "--config", "special.toml"]);
    // The usual length of jobs is that of jobs that ran lately.
    let ran = site.submit(&["--", "sleep", "0.5"]);
    site.wait(&ran, "state", "succeeded");
    site.work_named("plain", &["--exec", "--slots", "99"]);
    busy(site, &["--slots", "99"]);
    site.said(&["drain", "special"]);
    site.said(&["submit", "--array", "200", "--type", "rare", "--tenant", "rarely"]);
    site.said(&["cancel", "--yes", "--tenant", "rarely"]);
    site.said(&["drain", "special", "--undo"]);
    is_in(site, "special", "serving");
}

/// Submits jobs line by line. Gives the number of the last.
pub(crate) fn submit_lines(site: &Site, lines: &[Value]) -> String {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(site.path("jobs.jsonl"), text.join("\n")).expect("it can be written");
    let submitted = site.said(&["submit", "--json", "--file", &site.path("jobs.jsonl")]);
    let last = submitted.lines().last().expect("a line for each job");
    let last: Value = serde_json::from_str(last).expect("it speaks JSON");
    last["id"].to_string()
}

/// More jobs than a decision reads ask for more of a consumable resource than is free. One
/// that came last asks for less.
pub(crate) fn crowd(site: &mut Site) -> String {
    site.said(&["policy", r#"{"preset": "priority-age"}"#]);
    site.work_named("w1", &["--exec", "--slots", "9", "--amount", "ram=1000"]);
    busy(site, &["--amount", "ram=700"]);
    let asks = |ram: u64| json!({"command": ["true"], "amounts": {"ram": ram}});
    let too_large = (0..=READ_AT_ONCE).map(|n| asks(500 - n));
    let lines: Vec<Value> = too_large.chain([asks(300)]).collect();
    submit_lines(site, &lines)
}

pub(crate) const STAGED: &[Row] = &[
    Row {
        name: "the worker is not well",
        stage: |site| {
            puppet(site, "w1", unwell(), "unhealthy");
            site.submit(&["--", "true"])
        },
        reason: Reason::WorkerUnhealthy,
        words: &["1 worker could run it", "not healthy (w1)"],
        numbers: &[("workers", 1.0), ("draining", 0.0)],
        workers: &["w1"],
        ..ROW
    },
    Row {
        name: "the free slot is kept for rarer work",
        stage: |site| {
            rare_site(site);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::Guarded,
        words: &["1 worker with room", "rarer work"],
        numbers: &[("workers", 1.0)],
        workers: &["special"],
        ..ROW
    },
    Row {
        name: "the worker with room computes as much as it can",
        stage: |site| {
            hot_site(site);
            site.submit(&["--", "true"])
        },
        reason: Reason::BelowZero,
        words: &["below zero", "1 worker with room"],
        numbers: &[("workers", 1.0)],
        workers: &["w1"],
        ..ROW
    },
];
