//! Jobs that wait, one or more for each reason, each on a scheduler of its own.

use model::Reason;
use serde_json::{Value, json};

use crate::site::Site;

/// One job that waits.
pub(crate) struct Row {
    /// What it is about.
    pub(crate) name: &'static str,
    /// Makes it wait; its number.
    pub(crate) stage: fn(&mut Site) -> String,
    pub(crate) reason: Reason,
    /// What the detail says.
    pub(crate) words: &'static [&'static str],
    /// What the first check counts.
    pub(crate) numbers: &'static [(&'static str, f64)],
    /// The names in the first check.
    pub(crate) jobs: &'static [u64],
    pub(crate) workers: &'static [&'static str],
    pub(crate) tenants: &'static [&'static str],
    /// Codes of the checks behind the first.
    pub(crate) others: &'static [&'static str],
}

/// A row without evidence.
pub(crate) const ROW: Row = Row {
    name: "",
    stage: |_| String::new(),
    reason: Reason::Outranked,
    words: &[],
    numbers: &[],
    jobs: &[],
    workers: &[],
    tenants: &[],
    others: &[],
};

/// A job that runs until the test is over, and is number 1 if it is the first.
pub(crate) fn busy(site: &Site, arguments: &[&str]) -> String {
    let id = site.submit(&[arguments, &["--", "sleep", "120"]].concat());
    site.wait(&id, "state", "running");
    id
}

/// A worker `w1` of one slot, in use by job 1.
pub(crate) fn full(site: &mut Site) {
    site.work("w1", &[]);
    busy(site, &["--tenant", "first"]);
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "an operator holds it, and no worker could run it either",
        stage: |site| site.submit(&["--hold", "--need", "gpu=a100", "--", "true"]),
        reason: Reason::OnHold,
        words: &["maitre release"],
        others: &["no-worker-ever"],
        ..ROW
    },
    Row {
        name: "no worker has the requirement",
        stage: |site| {
            site.work("w1", &["--has", "gpu=t4"]);
            site.submit(&["--need", "gpu=a100", "--", "true"])
        },
        reason: Reason::NoWorkerEver,
        words: &["none of 1 worker", "gpu=a100"],
        numbers: &[("workers_known", 1.0)],
        ..ROW
    },
    Row {
        name: "no worker has enough of a consumable resource, while all slots are in use",
        stage: |site| {
            site.work("w1", &["--amount", "gpu=1"]);
            busy(site, &[]);
            site.submit(&["--amount", "gpu=2", "--", "true"])
        },
        reason: Reason::NoWorkerEver,
        words: &["2 gpu"],
        ..ROW
    },
    Row {
        name: "the lock is of another tenant",
        stage: |site| {
            full(site);
            site.said(&["set", "resource", "repo", r#"{"tenant": "globex"}"#]);
            site.submit(&["--tenant", "acme", "--resource", "repo", "--", "true"])
        },
        reason: Reason::NoResourceEver,
        words: &["repo", "of tenant globex", "never"],
        tenants: &["acme"],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "there is no workspace at all",
        stage: |site| {
            site.work("w1", &[]);
            site.submit(&["--tenant", "acme", "--resource", "*", "--", "true"])
        },
        reason: Reason::NoResourceEver,
        words: &["tenant acme", "none will ever be free"],
        tenants: &["acme"],
        ..ROW
    },
    Row {
        name: "the tenant is paused, while all slots are in use",
        stage: |site| {
            full(site);
            site.said(&["set", "tenant", "acme", r#"{"active": false}"#]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::TenantPaused,
        words: &["acme"],
        tenants: &["acme"],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "the pool is paused",
        stage: |site| {
            site.work("w1", &["--pool", "gpu"]);
            site.said(&["set", "pool", "gpu", r#"{"paused": true}"#]);
            site.submit(&["--pool", "gpu", "--", "true"])
        },
        reason: Reason::PoolPaused,
        words: &["pool gpu is paused", "1 worker"],
        numbers: &[("workers", 1.0), ("paused", 1.0)],
        ..ROW
    },
    Row {
        name: "the pool is paused, and the job is put off",
        stage: |site| {
            site.work("w1", &["--pool", "gpu"]);
            site.said(&["set", "pool", "gpu", r#"{"paused": true}"#]);
            site.submit(&["--pool", "gpu", "--delay", "1h", "--", "true"])
        },
        reason: Reason::PoolPaused,
        words: &["pool gpu is paused"],
        numbers: &[("workers", 1.0), ("paused", 1.0)],
        others: &["not-before"],
        ..ROW
    },
    Row {
        name: "the budget is spent, while all slots are in use",
        stage: |site| {
            full(site);
            site.said(&["set", "tenant", "acme", r#"{"budget": 0}"#]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::BudgetSpent,
        words: &["tenant acme has 0 of its budget left", "costs 1"],
        numbers: &[("left", 0.0), ("cost", 1.0)],
        tenants: &["acme"],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "the budget of all tenants is spent by the job that runs",
        stage: |site| {
            site.said(&["set", "budget", r#"{"limit": 1}"#]);
            full(site);
            site.submit(&["--", "true"])
        },
        reason: Reason::BudgetSpentGlobal,
        words: &["0 of the budget of all tenants"],
        numbers: &[("left", 0.0), ("cost", 1.0)],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "it waits for a job of the same submission that runs, and for one that waits",
        stage: |site| {
            site.work("w1", &[]);
            let lines = [
                json!({"name": "one", "command": ["sleep", "120"]}),
                json!({"name": "two", "command": ["true"], "needs": {"gpu": ["a100"]}}),
                json!({"command": ["true"], "after": ["one", "two"]}),
            ];
            let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
            std::fs::write(site.path("jobs.jsonl"), lines.join("\n")).expect("it can be written");
            site.said(&["submit", "--file", &site.path("jobs.jsonl")]);
            site.wait("1", "state", "running");
            "3".to_owned()
        },
        reason: Reason::NotReady,
        words: &["job 1 (running on w1) and job 2 (queued: no-worker-ever)"],
        numbers: &[("blockers", 2.0)],
        jobs: &[1, 2],
        ..ROW
    },
    Row {
        name: "its submitter put it off, while all slots are in use",
        stage: |site| {
            full(site);
            site.submit(&["--delay", "1h", "--", "true"])
        },
        reason: Reason::NotBefore,
        words: &["its submitter asked to wait"],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "it backs off after a failure",
        stage: |site| {
            site.said(&["set", "type", "exec", r#"{"retry": {"backoff_ms": 600000}}"#]);
            site.work("w1", &[]);
            let id = site.submit(&["--", "sh", "-c", "exit 3"]);
            site.until("it failed once", || {
                let job = site.job(&id);
                (job["failures"] == 1 && job["state"] == "queued").then_some(())
            });
            id
        },
        reason: Reason::NotBefore,
        words: &["attempt 1 on w1 did not succeed (exit code 3)"],
        workers: &["w1"],
        ..ROW
    },
    Row {
        name: "the worker drains",
        stage: |site| {
            site.work("w1", &[]);
            site.until("it is there", || (site.json(&["workers"]) != json!([])).then_some(()));
            site.said(&["drain", "w1"]);
            site.submit(&["--", "true"])
        },
        reason: Reason::NoWorkerNow,
        words: &["1 worker", "draining (w1)"],
        numbers: &[("workers", 1.0), ("draining", 1.0)],
        workers: &["w1"],
        ..ROW
    },
    Row {
        name: "the tenant is at its quota, while all slots are in use",
        stage: |site| {
            site.said(&["quota", "acme", "default", "--max", "1"]);
            site.work("w1", &[]);
            busy(site, &["--tenant", "acme"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::TenantAtMax,
        words: &["acme uses 1 of 1 in pool default slots"],
        numbers: &[("slots", 1.0), ("max", 1.0), ("asked", 1.0)],
        tenants: &["acme"],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "the tenant runs as many jobs as it may",
        stage: |site| {
            site.said(&["set", "tenant", "acme", r#"{"jobs_max": 1}"#]);
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--tenant", "acme"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::TenantAtJobsMax,
        words: &["acme runs 1 job of at most 1"],
        numbers: &[("running", 1.0), ("max", 1.0)],
        tenants: &["acme"],
        ..ROW
    },
    Row {
        name: "the type runs as many jobs as it may",
        stage: |site| {
            site.said(&["set", "type", "exec", r#"{"jobs_max": 1}"#]);
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &[]);
            site.submit(&["--", "true"])
        },
        reason: Reason::TypeAtMax,
        words: &["1 job of type exec run of at most 1"],
        numbers: &[("running", 1.0), ("max", 1.0)],
        ..ROW
    },
    Row {
        name: "another job holds the lock",
        stage: |site| {
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--resource", "repo"]);
            site.submit(&["--resource", "repo", "--", "true"])
        },
        reason: Reason::ResourceHeld,
        words: &["repo is held by job 1"],
        jobs: &[1],
        ..ROW
    },
    Row {
        name: "victims were told to stop for it",
        stage: |site| {
            let policy = r#"{"preset": "cohort", "preemption": {"enabled": true, "delay_ms": 0}}"#;
            site.said(&["policy", policy]);
            site.said(&["quota", "acme", "default", "--min", "1"]);
            site.work("w1", &[]);
            let stubborn = "trap '' TERM; while :; do sleep 1; done";
            let victim = site.submit(&["--tenant", "globex", "--", "sh", "-c", stubborn]);
            site.wait(&victim, "state", "running");
            site.submit(&["--tenant", "acme", "--priority", "5", "--", "true"])
        },
        reason: Reason::Preempting,
        words: &["told to stop for it: job 1"],
        jobs: &[1],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "nothing that runs is less important",
        stage: |site| {
            let policy = r#"{"preset": "cohort", "preemption": {"enabled": true, "delay_ms": 0}}"#;
            site.said(&["policy", policy]);
            site.said(&["quota", "acme", "default", "--min", "1"]);
            site.work("w1", &[]);
            busy(site, &["--tenant", "globex", "--priority", "9"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::WorkersFull,
        words: &["0 of its minimum of 1 slots", "no job of another tenant there is less important"],
        jobs: &[1],
        workers: &["w1"],
        ..ROW
    },
    Row {
        name: "the scarce thing is a consumable resource",
        stage: |site| {
            site.work_named("g1", &["--exec", "--slots", "4", "--amount", "gpu=2"]);
            busy(site, &["--amount", "gpu=1"]);
            busy(site, &["--amount", "gpu=1"]);
            busy(site, &[]);
            site.submit(&["--amount", "gpu=1", "--", "true"])
        },
        reason: Reason::WorkersFull,
        words: &["waiting for gpu: 2 of 2 in use on g1 by jobs 1 and 2"],
        numbers: &[("in_use", 2.0), ("total", 2.0), ("asked", 1.0)],
        jobs: &[1, 2],
        workers: &["g1"],
        ..ROW
    },
    Row {
        name: "the scarce thing is a slot, and nobody else wants it",
        stage: |site| {
            full(site);
            site.submit(&["--", "true"])
        },
        reason: Reason::WorkersFull,
        words: &["waiting for a slot: 1 of 1 in use on w1 by job 1"],
        numbers: &[("in_use", 1.0), ("total", 1.0)],
        jobs: &[1],
        workers: &["w1"],
        ..ROW
    },
    Row {
        name: "another tenant waits for the same slots",
        stage: |site| {
            site.said(&["set", "tenant", "acme", r#"{"weight": 3}"#]);
            site.said(&["set", "tenant", "globex", r#"{"weight": 1}"#]);
            site.work_named("w1", &["--exec", "--slots", "4"]);
            for _ in 0..4 {
                busy(site, &["--tenant", "globex"]);
            }
            site.submit(&["--tenant", "globex", "--", "true"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::WorkersFull,
        words: &["4 of 4 in use on w1", "acme has 0 of 4 slots and is due 3", "globex"],
        jobs: &[1, 2, 3, 4],
        workers: &["w1"],
        others: &["outranked"],
        ..ROW
    },
    Row {
        name: "slots are kept for a wider job that came first",
        stage: |site| {
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--estimate", "30s"]);
            let wide = site.submit(&["--slots", "2", "--", "true"]);
            assert_eq!(wide, "2");
            site.submit(&["--estimate", "10m", "--", "sleep", "120"])
        },
        reason: Reason::Reserved,
        words: &["kept for wider job 2"],
        jobs: &[2],
        workers: &["w1"],
        ..ROW
    },
];
