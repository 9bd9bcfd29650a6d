//! What there is and what it is doing, by HTTP: nothing here changes anything.

use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use proto::v1::admin_server::Admin as _;
use proto::v1::jobs_server::Jobs as _;
use proto::{Invalid, json, v1};
use serde_json::{Value, json};
use tonic::Request;

use super::super::guard::Caller;
use super::super::{Door, answer};
use super::body::{Answer, pairs};
use crate::tokens::Scope;

pub(super) fn router() -> Router<Door> {
    Router::new()
        .route("/v1/me", get(me))
        .route("/v1/overview", get(overview))
        .route("/v1/jobs", get(jobs))
        .route("/v1/jobs/{id}", get(job))
}

/// Who asks, and how far they may go.
async fn me(State(door): State<Door>, Extension(caller): Extension<Caller>) -> Answer {
    let is_for_all = caller.tenant().is_none();
    let may = |scope| is_for_all && caller.grant().allows(scope);
    Ok(Json(json!({
        "who": caller.who(),
        "tenant": caller.tenant().map(ToString::to_string),
        "may_look": may(Scope::Read),
        "may_change": may(Scope::Admin),
        "needs_token": door.tokens.is_on(),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

/// How much there is of what, who works, and what waits longest, with why.
async fn overview(State(door): State<Door>, Extension(caller): Extension<Caller>) -> Answer {
    let load = door.load_now().await?;
    let status = door.status(by(&caller, v1::StatusRequest {})).await?.into_inner();
    let workers = door.workers(by(&caller, v1::WorkersRequest {})).await?.into_inner().workers;
    let mut value = json::load(&load);
    value["policy"] = json!(status.policy);
    value["version"] = json!(status.version);
    value["workers"] = workers.iter().map(json::worker).collect();
    Ok(Json(value))
}

/// `?type=vacuum&state=running,claimed&tenant=acme&before=17&page_size=50`.
async fn jobs(State(door): State<Door>, Extension(caller): Extension<Caller>, uri: Uri) -> Answer {
    let mut request = v1::ListRequest::default();
    let mut filter = v1::JobFilter::default();
    for (name, value) in pairs(&uri) {
        let wrong = |problem: String| answer::invalid(&Invalid::new(&name, problem));
        let no_number = |_| wrong(format!("is `{value}`, which is no whole number"));
        match name.as_str() {
            "type" => filter.r#type = value,
            "tenant" => filter.tenant = value,
            "group" => filter.group = value,
            "worker" => filter.worker = value,
            "state" => {
                for word in value.split(',') {
                    let state = model::State::named(word)
                        .ok_or_else(|| wrong(format!("has `{word}`, which is no state")))?;
                    filter.states.push(v1::State::from(state).into());
                }
            }
            "before" => request.before = value.parse().map_err(no_number)?,
            "page_size" => request.page_size = value.parse().map_err(no_number)?,
            _ => {
                let known = "is none of type, tenant, group, worker, state, before, page_size";
                return Err(wrong(known.to_owned()).into());
            }
        }
    }
    request.filter = Some(filter);
    let page = door.list(by(&caller, request)).await?.into_inner();
    let jobs: Vec<Value> = page.jobs.iter().map(json::job).collect();
    let now_ms = door.store.now().0;
    Ok(Json(json!({ "jobs": jobs, "next_before": page.next_before, "now_ms": now_ms })))
}

/// One job, its attempts, and why it is where it is.
async fn job(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
) -> Answer {
    let found = door.get(by(&caller, v1::GetRequest { id })).await?.into_inner();
    let why = door.explain(by(&caller, v1::ExplainRequest { id })).await?.into_inner();
    let mut value = json::job(&found.job.unwrap_or_default());
    value["past_attempts"] = found.attempts.iter().map(json::attempt).collect();
    value["why"] = json::why(&why);
    value["now_ms"] = json!(door.store.now().0);
    Ok(Json(value))
}

/// The same request, at the other door.
fn by<T>(caller: &Caller, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(caller.clone());
    request
}
