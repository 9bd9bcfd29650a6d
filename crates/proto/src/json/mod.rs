//! Answers as JSON: the same for `--json` and for HTTP.

mod site;

use serde_json::{Map, Value, json};

use crate::v1;

pub use site::{
    attempt, check, ending_name, job, load, near, state_name, why, worker, worker_state,
};

/// The settings of a type.
pub fn kind(kind: &v1::TypeResponse) -> Value {
    let policy: Map<String, Value> = kind
        .policy
        .iter()
        .map(|one| {
            let (value, origin, help) = (&one.value, &one.origin, &one.help);
            (one.name.clone(), json!({ "value": value, "origin": origin, "help": help }))
        })
        .collect();
    json!({
        "type": kind.r#type,
        "display_name": kind.display_name,
        "description": kind.description,
        "policy": policy,
        "admin": config(&kind.admin),
        "worker": config(&kind.worker),
        "detectors": kind.detectors,
        "elsewhere": kind.elsewhere,
        "next_due_ms": kind.next_due_ms,
        "last_success_ms": kind.last_success_ms,
        "running": kind.running.as_ref().map(running),
        "prediction": kind.prediction.as_ref().map(prediction),
        "descriptor": serde_json::from_str::<Value>(&kind.descriptor_json).ok(),
        "now_ms": kind.now_ms,
        "schedulers": kind.schedulers,
        "schedulers_current": kind.schedulers_current,
    })
}

fn prediction(known: &v1::TypePrediction) -> Value {
    let skill = f64::from(known.skill_thousandths) / 1_000.0;
    json!({ "typical_ms": known.typical_ms, "skill": skill, "judged": known.judged })
}

fn config(values: &[v1::ConfigValue]) -> Value {
    let value = |one: &v1::ConfigValue| {
        let value: Value = serde_json::from_str(&one.value).unwrap_or_default();
        (one.name.clone(), value)
    };
    Value::Object(values.iter().map(value).collect())
}

fn running(run: &v1::RunningRun) -> Value {
    json!({
        "run": run.run, "phase": run.phase, "started_ms": run.started_ms,
        "until_ms": run.until_ms, "worker": run.worker, "proposed": run.proposed,
        "taken": run.taken, "leader": run.leader,
    })
}

/// The number of jobs of a type, its workers, and its run times.
pub fn type_load(kind: &v1::TypeStatus) -> Value {
    let document: Option<Value> = serde_json::from_str(&kind.json).ok();
    json!({
        "type": kind.name,
        "blocked": kind.blocked,
        "queued": kind.queued,
        "running": kind.running,
        "workers": kind.workers,
        "samples": kind.samples,
        "duration_ms": kind.duration_ms,
        "ram_peak_mb": kind.ram_peak_mb,
        "document": document,
    })
}

/// An ended run.
pub fn run(run: &v1::RunRecord) -> Value {
    json!({
        "run": run.run,
        "type": run.r#type,
        "status": run.status,
        "started_ms": run.started_ms,
        "ended_ms": run.ended_ms,
        "asked": run.asked,
        "worker": run.worker,
        "error": run.error,
        "proposed": run.proposed,
        "taken": run.taken,
        "refused": run.refused,
        "succeeded": run.succeeded,
        "failed": run.failed,
        "cancelled": run.cancelled,
    })
}

/// A page of activity.
pub fn activity(page: &v1::ActivityResponse) -> Value {
    let entry = |one: &v1::ActivityEntry| {
        json!({
            "number": one.number,
            "at_ms": one.at_ms,
            "kind": one.kind,
            "who": one.who,
            "about": one.about,
            "what": one.what,
            "why": one.why,
        })
    };
    let entries: Vec<Value> = page.entries.iter().map(entry).collect();
    json!({ "entries": entries, "next_before": page.next_before })
}

/// The context of all workers.
pub fn context(context: &v1::ContextResponse) -> Value {
    let published: Option<Value> = serde_json::from_str(&context.json).ok();
    json!({
        "version": context.version,
        "publisher": context.publisher,
        "context": published,
    })
}

/// A recurring job.
pub fn schedule(status: &v1::ScheduleStatus) -> Value {
    let schedule = status.schedule.clone().unwrap_or_default();
    let job = schedule.job.unwrap_or_default();
    json!({
        "schedule": schedule.name,
        "cron": (!schedule.cron.is_empty()).then_some(schedule.cron),
        "every_ms": schedule.every_ms,
        "time_zone": schedule.time_zone,
        "catch_up": schedule.catch_up,
        "catch_up_max": schedule.catch_up_max,
        "paused": schedule.paused,
        "next_ms": status.next_ms,
        "last_ms": status.last_ms,
        "last_job": (status.last_job != 0).then_some(status.last_job),
        "type": job.r#type,
        "tenant": job.tenant,
        "payload": String::from_utf8_lossy(&job.payload),
    })
}
