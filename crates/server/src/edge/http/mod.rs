//! The HTTP door.

mod metrics;
mod body;
mod site;
mod detection;
mod schedules;
mod what_if;
mod series;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::{Door, answer};
use crate::status::Question;

/// What is asked by HTTP. Who may ask it is in the table of `guard.rs`.
pub(crate) fn router(door: Door) -> Router {
    let own = Router::new().route("/metrics", get(metrics)).route("/v1/demand", get(demand));
    let own = own.merge(site::router()).merge(detection::router()).merge(schedules::router());
    let own = own.merge(what_if::router()).merge(series::router());
    let bytes_max = door.config.limits.message_bytes_max;
    own.layer(DefaultBodyLimit::max(bytes_max))
        .layer(from_fn_with_state(bytes_max, body::name_the_limit))
        .layer(from_fn(body::wants_json))
        .with_state(door)
}

async fn metrics(State(door): State<Door>) -> Response {
    let measures = match door.ask(Question::Measures).await {
        Ok(measures) => measures,
        Err(status) => return answer::by_http(&status),
    };
    let text = metrics::page(*measures, &door);
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn demand(State(door): State<Door>) -> Response {
    match door.ask(Question::Demand).await {
        Ok(wanted) => {
            let wanted: Vec<Value> = wanted.iter().map(as_json).collect();
            Json(json!({ "wanted": wanted })).into_response()
        }
        Err(status) => answer::by_http(&status),
    }
}

fn as_json(wanted: &decide::Wanted) -> Value {
    let texts =
        |names: &Vec<model::Name>| json!(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let needs: Map<String, Value> =
        wanted.needs.iter().map(|(key, names)| (key.to_string(), texts(names))).collect();
    let amounts: Map<String, Value> =
        wanted.amounts.iter().map(|(key, n)| (key.to_string(), json!(n))).collect();
    json!({
        "type": wanted.kind.as_ref().map(ToString::to_string),
        "pool": wanted.pool.as_ref().map(ToString::to_string),
        "needs": needs,
        "slots": wanted.slots,
        "amounts": amounts,
        "jobs": wanted.n_jobs,
        "slots_wanted": wanted.slots_wanted,
        "slots_fitting": wanted.slots_fitting,
    })
}
