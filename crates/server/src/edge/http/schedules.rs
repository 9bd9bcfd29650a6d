//! Jobs that recur, by HTTP.

use std::collections::BTreeMap;

use ::detect::length;
use axum::extract::{Extension, Path, State};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use proto::{Invalid, json, v1};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::guard::Caller;
use super::super::{Door, answer};
use super::body::Answer;

/// The type of jobs that are commands.
const COMMANDS: &str = "exec";

pub(super) fn router() -> Router<Door> {
    Router::new()
        .route("/v1/schedules", get(list))
        .route("/v1/schedules/{name}", put(set).delete(remove))
        .route("/v1/schedules/{name}/pause", post(pause))
        .route("/v1/schedules/{name}/resume", post(resume))
        .route("/v1/schedules/{name}/run", post(run))
}

/// What somebody says about a schedule: when, and what to submit. The words are those of
/// `maitre schedule add` and of a file of jobs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    cron: String,
    every: Option<String>,
    time_zone: String,
    catch_up: String,
    catch_up_max: u32,
    paused: bool,
    tenant: String,
    r#type: String,
    command: Vec<String>,
    /// Text as it is; anything else as JSON.
    payload: Option<Value>,
    pool: String,
    needs: BTreeMap<String, String>,
    slots: u32,
    amounts: BTreeMap<String, u64>,
    priority: i32,
    resource: String,
    labels: BTreeMap<String, String>,
    dedupe_key: String,
    delay: Option<String>,
    start_within: Option<String>,
    timeout: Option<String>,
    attempts: Option<u32>,
}

impl Wanted {
    fn schedule(self, name: String) -> Result<v1::Schedule, Invalid> {
        let every_ms = ms("every", self.every.as_deref())?.map(i64::unsigned_abs);
        let job = v1::Spec {
            not_before_ms: ms("delay", self.delay.as_deref())?,
            start_before_ms: ms("start_within", self.start_within.as_deref())?,
            run_timeout_ms: ms("timeout", self.timeout.as_deref())?.map(i64::unsigned_abs),
            payload: payload(&self.r#type, &self.command, self.payload)?,
            r#type: if self.command.is_empty() { self.r#type } else { COMMANDS.to_owned() },
            tenant: self.tenant,
            pool: self.pool,
            needs: self.needs.into_iter().map(|(key, one)| (key, one_of(one))).collect(),
            slots: self.slots,
            amounts: self.amounts.into_iter().collect(),
            priority: self.priority,
            resource: self.resource,
            labels: self.labels.into_iter().collect(),
            dedupe_key: self.dedupe_key,
            retry: self
                .attempts
                .map(|attempts_max| v1::Retry { attempts_max, ..Default::default() }),
            ..v1::Spec::default()
        };
        Ok(v1::Schedule {
            name,
            cron: self.cron,
            every_ms,
            time_zone: self.time_zone,
            catch_up: self.catch_up,
            catch_up_max: self.catch_up_max,
            paused: self.paused,
            job: Some(job),
        })
    }
}

fn ms(field: &str, text: Option<&str>) -> Result<Option<i64>, Invalid> {
    let read = text.map(length).transpose();
    Ok(read.map_err(|problem| Invalid::new(field, problem))?.map(|length| length.0))
}

fn one_of(value: String) -> v1::Values {
    v1::Values { values: vec![value] }
}

fn payload(kind: &str, command: &[String], payload: Option<Value>) -> Result<Vec<u8>, Invalid> {
    match (command, payload) {
        ([], None) => Ok(Vec::new()),
        ([], Some(Value::String(text))) => Ok(text.into_bytes()),
        ([], Some(value)) => Ok(value.to_string().into_bytes()),
        (_, Some(_)) => Err(Invalid::new("payload", "and `command`: one of them is enough")),
        (command, None) if kind.is_empty() || kind == COMMANDS => {
            Ok(json!({ "argv": command }).to_string().into_bytes())
        }
        (_, None) => {
            let problem = format!("goes with type `{COMMANDS}`, and `type` is `{kind}`");
            Err(Invalid::new("command", problem))
        }
    }
}

async fn list(State(door): State<Door>) -> Answer {
    let v1::ListSchedulesResponse { schedules, now_ms } = door.all_schedules().await?;
    let schedules: Vec<Value> = schedules.iter().map(json::schedule).collect();
    Ok(Json(json!({ "schedules": schedules, "now_ms": now_ms })))
}

async fn set(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    body: String,
) -> Answer {
    let invalid = |invalid: Invalid| answer::invalid(&invalid);
    let wanted: Wanted = serde_json::from_str(&body)
        .map_err(|error| invalid(Invalid::new("body", format!("cannot be read: {error}"))))?;
    let schedule = wanted.schedule(name).map_err(invalid)?;
    Ok(Json(json::schedule(&door.set_schedule(&caller, &schedule).await?)))
}

async fn remove(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let was_there = door.drop_schedule(&caller, &name).await?;
    Ok(Json(json!({ "schedule": name, "was_there": was_there })))
}

async fn pause(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    rest(&door, &caller, v1::PauseScheduleRequest { name, paused: true }).await
}

async fn resume(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    rest(&door, &caller, v1::PauseScheduleRequest { name, paused: false }).await
}

async fn rest(door: &Door, caller: &Caller, request: v1::PauseScheduleRequest) -> Answer {
    Ok(Json(json::schedule(&door.rest_schedule(caller, request).await?)))
}

async fn run(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let job = door.run_schedule_now(&caller, &name).await?;
    Ok(Json(json!({ "schedule": name, "job": job })))
}
