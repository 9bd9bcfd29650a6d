//! What comes in and goes out by HTTP is JSON.
//!
//! **Invariant:** what changes something says that its body is JSON. Pages of others cannot say so
//! from a browser without being asked first, so none can use the door of its reader's machine.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use proto::Invalid;
use serde_json::{Map, Value};
use tonic::Status;

use super::super::answer;
use crate::limits::exceeded;

pub(super) type Answer = Result<Json<Value>, Failure>;

/// What went wrong.
pub(super) struct Failure(Status);

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl axum::response::IntoResponse for Failure {
    fn into_response(self) -> Response {
        answer::by_http(&self.0)
    }
}

/// Turns away what would change something and does not say that it is JSON.
pub(super) async fn wants_json(request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_json(request.headers()) {
        return next.run(request).await;
    }
    let problem = "what changes something needs the header `content-type: application/json`";
    answer::by_http(&Status::invalid_argument(problem))
}

/// A body that is too large is a limit like any other: the answer names it.
pub(super) async fn name_the_limit(
    State(bytes_max): State<usize>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    if response.status() != StatusCode::PAYLOAD_TOO_LARGE {
        return response;
    }
    let limit = ("message_bytes_max", bytes_max);
    let status = exceeded(limit, "the body has more bytes", "send less at a time");
    let mut response = answer::by_http(&status);
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// The fields of a body.
pub(super) fn object(body: &str) -> Result<Map<String, Value>, Status> {
    let wrong = |problem: String| answer::invalid(&Invalid::new("body", problem));
    match serde_json::from_str(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong("is not a JSON object".to_owned())),
        Err(error) => Err(wrong(format!("is not JSON: {error}"))),
    }
}

/// The pairs of a query, as they were before they were put into an address.
pub(super) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    let plain = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (plain(name), plain(value))
    };
    pairs.map(pair).collect()
}
