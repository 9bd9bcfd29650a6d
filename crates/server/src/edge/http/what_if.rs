//! What if: replays of what happened lately, by HTTP.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use proto::Invalid;
use serde::Deserialize;
use serde_json::json;
use tonic::Status;

use super::super::guard::Caller;
use super::super::{Door, answer};
use super::body::Answer;
use crate::what_if::{NOBODY, Question};

/// So many policies are replayed at a time.
const POLICIES_MAX: usize = 3;
/// A policy has so many bytes at most.
const POLICY_BYTES_MAX: usize = 4_096;
/// Workers and slots each, at most.
const SIZE_MAX: u32 = 10_000;
/// What policies may believe about lengths. The first is what the scheduler itself does.
const ESTIMATES: [&str; 4] = ["history", "perfect", "user", "none"];
/// A day.
const HOURS: u32 = 24;

pub(super) fn router() -> Router<Door> {
    Router::new()
        .route("/v1/what-if", get(look).post(ask).delete(stop))
        .route("/v1/what-if/{number}/{file}", get(file))
}

/// What may be asked, what runs, and what came of the last one.
async fn look(State(door): State<Door>) -> Answer {
    let config = &door.config.what_if;
    let mut value = door.replays.look();
    value["hours"] = json!(HOURS.min(config.hours_max));
    value["hours_max"] = json!(config.hours_max);
    value["jobs_max"] = json!(config.jobs_max);
    value["timeout_ms"] = json!(config.timeout.0);
    value["estimates"] = json!(ESTIMATES);
    value["policies_max"] = json!(POLICIES_MAX);
    value["policies"] = json!(config.replayer.as_ref().map(|replayer| &replayer.policies));
    value["why_not"] = json!(config.replayer.is_none().then_some(NOBODY));
    value["now_ms"] = json!(door.store.now().0);
    Ok(Json(value))
}

/// `{"policies": ["balanced", "fifo"], "hours": 24, "fleet": "10x8", "estimates": "history"}`; all
/// but policies may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    hours: Option<u32>,
    policies: Vec<String>,
    fleet: Option<String>,
    estimates: Option<String>,
}

impl Wanted {
    /// Policies that have names are among `known`.
    fn question(self, who: &str, hours_max: u32, known: &[String]) -> Result<Question, Invalid> {
        let hours = self.hours.unwrap_or(HOURS.min(hours_max));
        if hours == 0 || hours > hours_max {
            let problem = format!("is {hours}, of 1 to {hours_max}");
            return Err(Invalid::new("hours", problem));
        }
        let n_policies = self.policies.len();
        if n_policies == 0 || n_policies > POLICIES_MAX {
            let problem = format!("has {n_policies} entries, of 1 to {POLICIES_MAX}");
            return Err(Invalid::new("policies", problem));
        }
        for (ix, policy) in self.policies.iter().enumerate() {
            let n_bytes = policy.len();
            if n_bytes == 0 || n_bytes > POLICY_BYTES_MAX {
                let problem = format!("has {n_bytes} bytes, of 1 to {POLICY_BYTES_MAX}");
                return Err(Invalid::new(&format!("policies[{ix}]"), problem));
            }
            if !policy.contains('{') && !is_among(policy, known) {
                let problem = format!("is `{policy}`, of {}, or JSON", known.join(", "));
                return Err(Invalid::new(&format!("policies[{ix}]"), problem));
            }
        }
        if let Some(fleet) = self.fleet.as_deref().filter(|fleet| !is_size(fleet)) {
            let problem = format!("is `{fleet}`; it is workers x slots, such as `10x8` or `64`");
            return Err(Invalid::new("fleet", problem));
        }
        let estimates = self.estimates.unwrap_or_else(|| ESTIMATES[0].to_owned());
        if !ESTIMATES.contains(&estimates.as_str()) {
            let problem = format!("is `{estimates}`, of {}", ESTIMATES.join(", "));
            return Err(Invalid::new("estimates", problem));
        }
        let Self { policies, fleet, .. } = self;
        Ok(Question { who: who.to_owned(), hours, policies, fleet, estimates })
    }
}

/// Whether a policy has one of these names, whatever it believes about lengths: `balanced:user`.
fn is_among(policy: &str, known: &[String]) -> bool {
    let name = |text: &str| text.trim().split(':').next().map(str::to_owned);
    known.iter().any(|known| name(known) == name(policy))
}

/// Whether a text is a size. What is none could be the path of a file, which is not ours to read.
fn is_size(text: &str) -> bool {
    let is_number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && text.parse().is_ok_and(|number: u32| (1..=SIZE_MAX).contains(&number))
    };
    text.split_once('x')
        .map_or_else(|| is_number(text), |(workers, slots)| is_number(workers) && is_number(slots))
}

async fn ask(
    State(door): State<Door>,
    Extension(caller): Extension<Caller>,
    body: String,
) -> Answer {
    let invalid = |invalid: Invalid| answer::invalid(&invalid);
    let wanted: Wanted = serde_json::from_str(&body)
        .map_err(|error| invalid(Invalid::new("body", format!("cannot be read: {error}"))))?;
    let config = &door.config.what_if;
    let replayer = config.replayer.as_ref();
    let replayer = replayer.ok_or_else(|| Status::failed_precondition(NOBODY))?;
    let question = wanted.question(caller.who(), config.hours_max, &replayer.policies);
    let question = question.map_err(invalid)?;
    let begun = door.replays.begin(config, Arc::clone(&door.store), question);
    let (number, replay) = begun.map_err(Status::failed_precondition)?;
    let stop = door.stop.clone();
    door.requests.spawn("what if", async move { stop.run_until_cancelled(replay).await });
    Ok(Json(json!({ "number": number })))
}

async fn stop(State(door): State<Door>) -> Answer {
    Ok(Json(json!({ "was_running": door.replays.stop() })))
}

/// A picture, the page for people to keep, or every figure of the last report.
async fn file(State(door): State<Door>, Path((number, name)): Path<(u64, String)>) -> Response {
    let Some(text) = door.replays.file(number, &name) else {
        let problem = format!("report {number} has no `{name}`, or is not the last one");
        return answer::by_http(&Status::not_found(problem));
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "svg")) => "image/svg+xml",
        Some((_, "json")) => "application/json",
        _ => "text/html; charset=utf-8",
    };
    // Nothing of it is a page of ours: whoever opens it by itself gets a file.
    let how = [(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, "attachment")];
    (how, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_never_a_path() {
        for size in ["1", "64", "10x8", "10000x10000"] {
            assert!(is_size(size), "{size}");
        }
        for other in ["", "x", "0", "8x", "x8", "1x2x3", "10001", "+1", "/etc/passwd", "fleet.csv"]
        {
            assert!(!is_size(other), "{other}");
        }
    }
}
