//! Work that workers find, by HTTP: what holds, what ran, what happened; and what changes it.

use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use axum::routing::{get, post};
use axum::{Json, Router};
use proto::{Invalid, json, v1};
use serde_json::{Value, json};
use tonic::Status;

use super::super::guard::Caller;
use super::super::{Door, answer};
use super::body::{Answer, object, pairs};

pub(super) fn router() -> Router<Door> {
    Router::new()
        .route("/v1/types", get(list))
        .route("/v1/types/{type}", get(show).patch(change))
        .route("/v1/types/{type}/runs", get(runs))
        .route("/v1/types/{type}/detect", post(detect))
        .route("/v1/types/{type}/cancel", post(cancel))
        .route("/v1/types/{type}/describe", post(describe))
        .route("/v1/activity", get(activity))
        .route("/v1/context", get(context).put(publish))
}

async fn list(State(door): State<Door>) -> Answer {
    let types = door.types_now().await?;
    Ok(Json(json!({ "types": types.iter().map(json::type_load).collect::<Vec<Value>>() })))
}

async fn show(State(door): State<Door>, Path(kind): Path<String>) -> Answer {
    Ok(Json(json::kind(&door.type_now(&kind).await?)))
}

/// `{"interval": "17m", "admin.threshold": 0.5, "jobs_max": null}`: `null` unsets.
async fn change(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
    body: String,
) -> Answer {
    let value = |(name, value): (String, Value)| match value {
        Value::Null => Ok((name, String::new())),
        Value::String(text) => Ok((name, text)),
        Value::Bool(_) | Value::Number(_) => Ok((name, value.to_string())),
        Value::Array(_) | Value::Object(_) => {
            let problem = "is neither a number, a text, true, false nor null";
            Err(answer::invalid(&Invalid::new(&name, problem)))
        }
    };
    let values: Vec<(String, String)> =
        object(&body)?.into_iter().map(value).collect::<Result<_, Status>>()?;
    Ok(Json(json::kind(&door.change_type(&caller, &kind, &values).await?)))
}

async fn runs(State(door): State<Door>, Path(kind): Path<String>) -> Answer {
    let runs = door.runs_of(&kind).await?.runs;
    Ok(Json(json!({ "runs": runs.iter().map(json::run).collect::<Vec<Value>>() })))
}

async fn detect(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
) -> Answer {
    let v1::DetectResponse { is_running } = door.detect_now(&caller, &kind).await?;
    Ok(Json(json!({ "type": kind, "is_running": is_running })))
}

async fn cancel(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
) -> Answer {
    let v1::CancelRunResponse { run } = door.call_off_run(&caller, &kind).await?;
    Ok(Json(json!({ "type": kind, "run": run })))
}

async fn describe(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(kind): Path<String>,
) -> Answer {
    let v1::DescribeTypeResponse { worker } = door.describe_type(&caller, &kind).await?;
    Ok(Json(json!({ "type": kind, "worker": worker })))
}

/// `?kind=detection&before=17&page_size=50`.
async fn activity(State(door): State<Door>, uri: Uri) -> Answer {
    let mut request = v1::ActivityRequest::default();
    for (name, value) in pairs(&uri) {
        let wrong = |problem: String| answer::invalid(&Invalid::new(&name, problem));
        let no_number = |_| wrong(format!("is `{value}`, which is no whole number"));
        match name.as_str() {
            "kind" => request.kind = value,
            "before" => request.before = value.parse().map_err(no_number)?,
            "page_size" => request.page_size = value.parse().map_err(no_number)?,
            _ => return Err(wrong("is none of kind, before, page_size".to_owned()).into()),
        }
    }
    let mut value = json::activity(&door.activities(&request).await?);
    value["now_ms"] = json!(door.store.now().0);
    Ok(Json(value))
}

async fn context(State(door): State<Door>) -> Answer {
    Ok(Json(json::context(&door.context_now().await?)))
}

/// `{"context": {...}, "publisher": "scout-1"}`: what is left out stays as it is.
async fn publish(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    body: String,
) -> Answer {
    let mut fields = object(&body)?;
    let wrong = |name: &str, problem: &str| answer::invalid(&Invalid::new(name, problem));
    let json = fields.remove("context").map(|context| context.to_string());
    let publisher = match fields.remove("publisher") {
        None => None,
        Some(Value::Null) => Some(String::new()),
        Some(Value::String(name)) => Some(name),
        Some(_) => return Err(wrong("publisher", "is neither a name nor null").into()),
    };
    if let Some(name) = fields.keys().next() {
        return Err(wrong(name, "is none of context, publisher").into());
    }
    let request = v1::PutContextRequest { json, publisher };
    Ok(Json(json::context(&door.publish(&caller, request).await?)))
}
