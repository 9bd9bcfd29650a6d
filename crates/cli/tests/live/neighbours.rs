//! Jobs that wait for two reasons that are next to each other in rank. `why` gives the reason that
//! lasts longer, and the other reason stands beside it.
//!
//! These neighbours never hold at once. A job that waits for other jobs has no moment yet, so
//! `not-before` does not stand beside `not-ready`. Workers that are all away are `no-worker-now` or
//! `worker-unhealthy`. A worker that keeps its room has room, so `guarded` and `reserved` do not
//! stand beside `workers-full`, and one of the two is enough. A rule judges a job on a worker that
//! does not keep its room, so `vetoed` and `below-zero` stand beside neither. A job that is being
//! claimed waits for nothing else, so `claiming` stands alone.

use model::Reason;
use serde_json::json;

use crate::puppet::hello;
use crate::rows::{ROW, Row, busy, full};
use crate::site::Site;
use crate::staged::{hot_site, is_in, puppet, puppet_as, rare_site, submit_lines, unwell};

/// The scheduler makes room for a job on `w1`. Job 1 gets the order to stop and goes on.
fn preempting(site: &mut Site) -> String {
    let policy = r#"{"preset": "cohort", "preemption": {"enabled": true, "delay_ms": 0}}"#;
    site.said(&["policy", policy]);
    site.said(&["quota", "acme", "default", "--min", "1"]);
    puppet_as(site, hello("w1"), proto::v1::Heartbeat::default(), "serving");
    busy(site, &["--tenant", "globex"]);
    let job = site.submit(&["--tenant", "acme", "--priority", "5", "--", "true"]);
    site.until("room is made for it", || {
        (site.json(&["why", &job])["reason"] == "preempting").then_some(())
    });
    job
}

pub(crate) const NEIGHBOURS: &[Row] = &[
    Row {
        name: "an operator holds it, and it waits for a job that runs",
        stage: |site| {
            site.work("w1", &[]);
            let first = busy(site, &[]);
            site.submit(&["--hold", "--after", &first, "--", "true"])
        },
        reason: Reason::OnHold,
        words: &["maitre release"],
        others: &["not-ready"],
        ..ROW
    },
    Row {
        name: "no worker has the requirement, and the lock is of another tenant",
        stage: |site| {
            site.work("w1", &[]);
            site.said(&["set", "resource", "repo", r#"{"tenant": "globex"}"#]);
            site.submit(&[
                "--tenant",
                "acme",
                "--need",
                "gpu=a",
                "--resource",
                "repo",
                "--",
                "true",
            ])
        },
        reason: Reason::NoWorkerEver,
        words: &["gpu=a"],
        numbers: &[("workers_known", 1.0)],
        others: &["no-resource-ever"],
        ..ROW
    },
    Row {
        name: "no worker has the requirement, and its submitter put it off",
        stage: |site| {
            site.work("w1", &[]);
            site.submit(&["--need", "gpu=a", "--delay", "1h", "--", "true"])
        },
        reason: Reason::NoWorkerEver,
        words: &["gpu=a"],
        numbers: &[("workers_known", 1.0)],
        others: &["not-before"],
        ..ROW
    },
    Row {
        name: "the lock is of another tenant, and its own tenant is paused",
        stage: |site| {
            site.work("w1", &[]);
            site.said(&["set", "resource", "repo", r#"{"tenant": "globex"}"#]);
            site.said(&["set", "tenant", "acme", r#"{"active": false}"#]);
            site.submit(&["--tenant", "acme", "--resource", "repo", "--", "true"])
        },
        reason: Reason::NoResourceEver,
        words: &["repo", "of tenant globex"],
        tenants: &["acme"],
        others: &["tenant-paused"],
        ..ROW
    },
    Row {
        name: "its tenant and its pool are paused",
        stage: |site| {
            site.work("w1", &["--pool", "gpu"]);
            site.said(&["set", "pool", "gpu", r#"{"paused": true}"#]);
            site.said(&["set", "tenant", "acme", r#"{"active": false}"#]);
            site.submit(&["--tenant", "acme", "--pool", "gpu", "--", "true"])
        },
        reason: Reason::TenantPaused,
        words: &["tenant acme is paused"],
        tenants: &["acme"],
        others: &["pool-paused"],
        ..ROW
    },
    Row {
        name: "its pool is paused, and the budget of its tenant is spent",
        stage: |site| {
            site.work("w1", &["--pool", "gpu"]);
            site.said(&["set", "pool", "gpu", r#"{"paused": true}"#]);
            site.said(&["set", "tenant", "acme", r#"{"budget": 0}"#]);
            site.submit(&["--tenant", "acme", "--pool", "gpu", "--", "true"])
        },
        reason: Reason::PoolPaused,
        words: &["pool gpu is paused"],
        numbers: &[("workers", 1.0), ("paused", 1.0)],
        others: &["budget-spent"],
        ..ROW
    },
    Row {
        name: "both budgets are spent",
        stage: |site| {
            site.work("w1", &[]);
            site.said(&["set", "tenant", "acme", r#"{"budget": 0}"#]);
            site.said(&["set", "budget", r#"{"limit": 0}"#]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::BudgetSpent,
        words: &["tenant acme has 0 of its budget left"],
        numbers: &[("left", 0.0), ("cost", 1.0)],
        tenants: &["acme"],
        others: &["budget-spent-global"],
        ..ROW
    },
    Row {
        name: "the budget of all tenants is spent by the job that it waits for",
        stage: |site| {
            site.said(&["set", "budget", r#"{"limit": 1}"#]);
            full(site);
            site.submit(&["--tenant", "first", "--after", "1", "--", "true"])
        },
        reason: Reason::BudgetSpentGlobal,
        words: &["0 of the budget of all tenants"],
        numbers: &[("left", 0.0), ("cost", 1.0)],
        others: &["not-ready"],
        ..ROW
    },
    Row {
        name: "its submitter put it off, and the worker drains",
        stage: |site| {
            site.work("w1", &[]);
            is_in(site, "w1", "serving");
            site.said(&["drain", "w1"]);
            site.submit(&["--delay", "1h", "--", "true"])
        },
        reason: Reason::NotBefore,
        words: &["its submitter asked to wait"],
        others: &["no-worker-now"],
        ..ROW
    },
    Row {
        name: "its submitter put it off, and the worker is not well",
        stage: |site| {
            puppet(site, "w1", unwell(), "unhealthy");
            site.submit(&["--delay", "1h", "--", "true"])
        },
        reason: Reason::NotBefore,
        words: &["its submitter asked to wait"],
        others: &["worker-unhealthy"],
        ..ROW
    },
    Row {
        name: "room is made for it on a worker that drains",
        stage: |site| {
            let job = preempting(site);
            site.said(&["drain", "w1"]);
            job
        },
        reason: Reason::NoWorkerNow,
        words: &["1 worker", "draining (w1)"],
        numbers: &[("workers", 1.0), ("draining", 1.0)],
        workers: &["w1"],
        others: &["preempting"],
        ..ROW
    },
    Row {
        name: "room is made for it on a worker that is not well",
        stage: |site| {
            let job = preempting(site);
            site.puppet().report(|beat| beat.unhealthy = true);
            job
        },
        reason: Reason::WorkerUnhealthy,
        words: &["1 worker", "not healthy (w1)"],
        numbers: &[("workers", 1.0), ("draining", 0.0)],
        workers: &["w1"],
        others: &["preempting"],
        ..ROW
    },
    Row {
        name: "room is made for it, and then its tenant may use none",
        stage: |site| {
            let job = preempting(site);
            site.said(&["quota", "acme", "default", "--min", "0", "--max", "0"]);
            job
        },
        reason: Reason::Preempting,
        words: &["told to stop for it: job 1"],
        jobs: &[1],
        others: &["tenant-at-max", "workers-full"],
        ..ROW
    },
    Row {
        name: "its tenant is at its quota, and runs as many jobs as it may",
        stage: |site| {
            site.said(&["set", "tenant", "acme", r#"{"jobs_max": 1}"#]);
            site.said(&["quota", "acme", "default", "--max", "1"]);
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--tenant", "acme"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::TenantAtMax,
        words: &["acme uses 1 of 1 in pool default slots"],
        numbers: &[("slots", 1.0), ("max", 1.0), ("asked", 1.0)],
        tenants: &["acme"],
        others: &["tenant-at-jobs-max"],
        ..ROW
    },
    Row {
        name: "its tenant and its type run as many jobs as they may",
        stage: |site| {
            site.said(&["set", "type", "exec", r#"{"jobs_max": 1}"#]);
            site.said(&["set", "tenant", "acme", r#"{"jobs_max": 1}"#]);
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--tenant", "acme"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::TenantAtJobsMax,
        words: &["acme runs 1 job of at most 1"],
        numbers: &[("running", 1.0), ("max", 1.0)],
        tenants: &["acme"],
        others: &["type-at-max"],
        ..ROW
    },
    Row {
        name: "its type runs as many jobs as it may, and one of them holds the lock",
        stage: |site| {
            site.said(&["set", "type", "exec", r#"{"jobs_max": 1}"#]);
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--resource", "repo"]);
            site.submit(&["--resource", "repo", "--", "true"])
        },
        reason: Reason::TypeAtMax,
        words: &["1 job of type exec run of at most 1"],
        numbers: &[("running", 1.0), ("max", 1.0)],
        others: &["resource-held"],
        ..ROW
    },
    Row {
        name: "the job that has the only slot holds the lock",
        stage: |site| {
            site.work("w1", &[]);
            busy(site, &["--resource", "repo"]);
            site.submit(&["--resource", "repo", "--", "true"])
        },
        reason: Reason::ResourceHeld,
        words: &["repo is held by job 1"],
        jobs: &[1],
        others: &["workers-full"],
        ..ROW
    },
    Row {
        name: "the free slot is kept for rarer work, and another tenant wants it",
        stage: |site| {
            rare_site(site);
            site.submit(&["--tenant", "globex", "--", "true"]);
            site.submit(&["--tenant", "acme", "--", "true"])
        },
        reason: Reason::Guarded,
        words: &["1 worker with room", "rarer work"],
        numbers: &[("workers", 1.0)],
        workers: &["special"],
        others: &["outranked"],
        ..ROW
    },
    Row {
        name: "slots are kept for a wider job of another tenant",
        stage: |site| {
            site.work_named("w1", &["--exec", "--slots", "2"]);
            busy(site, &["--estimate", "30s"]);
            site.submit(&["--tenant", "globex", "--slots", "2", "--", "true"]);
            site.submit(&["--tenant", "acme", "--estimate", "10m", "--", "sleep", "120"])
        },
        reason: Reason::Reserved,
        words: &["kept for wider job 2"],
        jobs: &[2],
        workers: &["w1"],
        others: &["outranked"],
        ..ROW
    },
    Row {
        name: "the worker computes as much as it can, and jobs of another tenant stand first",
        stage: |site| {
            hot_site(site);
            let of = |tenant: &str| json!({"command": ["true"], "tenant": tenant});
            submit_lines(site, &[of("globex"), of("acme")])
        },
        reason: Reason::BelowZero,
        words: &["below zero", "1 worker with room"],
        numbers: &[("workers", 1.0)],
        workers: &["w1"],
        others: &["outranked"],
        ..ROW
    },
];
