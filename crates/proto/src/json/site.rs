//! Jobs, workers and load as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::v1;

/// A job as JSON.
pub fn job(job: &v1::Job) -> Value {
    let spec = job.spec.clone().unwrap_or_default();
    let counts = job.counts.unwrap_or_default();
    let progress = job.progress.as_ref();
    let mut value = json!({
        "id": job.id,
        "tenant": spec.tenant,
        "type": spec.r#type,
        "state": state_name(job.state()),
        "priority": job.priority,
        "on_demand": spec.on_demand,
        "slots": spec.slots,
        "attempts": counts.attempts,
        "failures": counts.failures,
        "losses": counts.losses,
        "evictions": counts.evictions,
        "created_ms": job.created_ms,
        "ready_ms": job.ready_ms,
        "claimed_ms": job.claimed_ms,
        "started_ms": job.started_ms,
        "finished_ms": job.finished_ms,
        "backoff_until_ms": job.backoff_until_ms,
        "worker": some(&job.worker),
        "cause": some(&job.cause),
        "error": some(&job.error),
        "exit_code": job.exit_code,
        "progress": progress.map(|progress| progress.fraction),
        "note": progress.and_then(|progress| some(&progress.note)),
        "stage": progress.and_then(|progress| some(&progress.stage)),
        "on_hold": job.on_hold,
        "cancelling": job.cancelling,
        "n_blockers": job.n_blockers,
        "n_dependents": job.n_dependents,
        "dedupe_key": some(&spec.dedupe_key),
        "group": some(&spec.group),
        "parent": (spec.parent != 0).then_some(spec.parent),
        "array_index": spec.array_index,
        "labels": spec.labels,
        "cost": job.cost.or(spec.cost),
    });
    if let (Some(result), Some(fields)) = (&job.result, value.as_object_mut()) {
        fields.insert("result".to_owned(), json!(String::from_utf8_lossy(result)));
    }
    value
}

/// An ended attempt as JSON.
pub fn attempt(attempt: &v1::Attempt) -> Value {
    let measured = attempt.measured.unwrap_or_default();
    json!({
        "number": attempt.number,
        "worker": attempt.worker,
        "claimed_ms": attempt.claimed_ms,
        "started_ms": attempt.started_ms,
        "ended_ms": attempt.ended_ms,
        "ending": ending_name(attempt.ending()),
        "error": some(&attempt.error),
        "exit_code": attempt.exit_code,
        "ram_peak_mb": measured.ram_peak_mb,
        "cpu_ms": measured.cpu_ms,
        "disk_bytes": measured.disk_bytes,
        "out_of_memory": measured.out_of_memory,
        "why": attempt.why,
    })
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A worker.
pub fn worker(worker: &v1::WorkerStatus) -> Value {
    json!({
        "worker": worker.name,
        "pool": worker.pool,
        "state": worker_state(worker),
        "slots": worker.slots,
        "slots_used": worker.slots_used,
        "types": worker.types,
        "amounts": worker.amounts,
        "rank": worker.rank,
        "hints": worker.hints,
        "software": worker.software,
        "generation": worker.generation,
        "heard_ms": worker.heard_ms,
        "jobs": worker.jobs,
        "cpu_pct": worker.cpu_pct,
        "ram_free_mb": worker.ram_free_mb,
        "ram_total_mb": worker.ram_total_mb,
        "foreign_slots": worker.foreign_slots,
        "slots_held": worker.slots_held,
        "detections_used": worker.detections_used,
        "detections_total": worker.detections_total,
    })
}

/// The state of a worker in one word.
pub fn worker_state(worker: &v1::WorkerStatus) -> &'static str {
    match (worker.connected, worker.healthy, worker.draining) {
        (false, _, _) => "gone",
        (true, _, true) => "draining",
        (true, false, false) => "unhealthy",
        (true, true, false) => "serving",
    }
}

/// Load and the longest waits.
pub fn load(load: &v1::LoadResponse) -> Value {
    let waits = load.waits.unwrap_or_default();
    let minute = |one: &v1::Minute| {
        let reasons: BTreeMap<&String, &u64> = one.reasons.iter().collect();
        let (at_ms, ended, queued) = (one.at_ms, one.ended, one.queued);
        json!({ "at_ms": at_ms, "ended": ended, "queued": queued, "reasons": reasons })
    };
    let pool = |one: &v1::PoolLoad| {
        json!({
            "pool": one.pool,
            "workers": one.workers,
            "slots": one.slots,
            "slots_used": one.slots_used,
        })
    };
    json!({
        "now_ms": load.now_ms,
        "queued": load.queued,
        "running": load.running,
        "minutes": load.minutes.iter().map(minute).collect::<Vec<Value>>(),
        "waits": {
            "n": waits.n,
            "p50_ms": waits.p50_ms,
            "p90_ms": waits.p90_ms,
            "p99_ms": waits.p99_ms,
        },
        "pools": load.pools.iter().map(pool).collect::<Vec<Value>>(),
        "slowest":
            load.slowest.iter().map(|one| slow(one, load.now_ms)).collect::<Vec<Value>>(),
    })
}

fn slow(one: &v1::Waiting, now_ms: i64) -> Value {
    json!({
        "id": one.id,
        "tenant": one.tenant,
        "type": one.r#type,
        "waits_ms": (now_ms - one.ready_ms).max(0),
        "reason": one.reason,
        "detail": one.detail,
        "alike": one.alike,
    })
}

/// An explanation of a job's wait or placement.
pub fn why(why: &v1::ExplainResponse) -> Value {
    json!({
        "id": why.id,
        "state": state_name(why.state()),
        "reason": why.reason,
        "detail": why.detail,
        "ahead": why.ahead,
        "why_there": why.why_there,
        "starts_in_ms": why.starts_in_ms,
        "estimate_basis": why.estimate_basis,
        "starts_in_min_ms": why.starts_in_min_ms,
        "starts_in_max_ms": why.starts_in_max_ms,
        "checks": why.checks.iter().map(check).collect::<Vec<Value>>(),
        "nearest": why.nearest.iter().map(near).collect::<Vec<Value>>(),
    })
}

/// One of the hold reasons that apply to a waiting job.
pub fn check(check: &v1::Check) -> Value {
    let numbers: BTreeMap<&String, f64> =
        check.numbers.iter().map(|(name, number)| (name, *number)).collect();
    json!({
        "code": check.code,
        "detail": check.detail,
        "numbers": numbers,
        "jobs": check.jobs,
        "workers": check.workers,
        "tenants": check.tenants,
    })
}

/// A worker, and the requirements of a job that it lacks.
pub fn near(near: &v1::NearWorker) -> Value {
    json!({ "worker": near.worker, "lacks": near.lacks })
}

/// The permanent name of a state.
pub fn state_name(state: v1::State) -> &'static str {
    state.known().map_or("unknown", model::State::name)
}

/// The permanent name of an ending.
pub fn ending_name(ending: v1::Ending) -> &'static str {
    ending.known().map_or("unknown", model::Ending::name)
}
