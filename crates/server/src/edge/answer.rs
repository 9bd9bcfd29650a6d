//! Refusals and failures, as statuses that say what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use proto::Invalid;
use serde_json::json;
use store::{Error, Refusal};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::limits::exceeded;

/// In seconds, for those who are sent away for now. Lost connections are made again sooner.
pub(crate) const RETRY_AFTER: (&str, &str) = ("retry-after", "1");

pub(crate) fn invalid(invalid: &Invalid) -> Status {
    Status::invalid_argument(invalid.to_string())
}

pub(crate) fn failed(error: &Error) -> Status {
    match error {
        Error::Unavailable { .. } => later(format!("{error}; nothing was changed")),
        Error::Unknown { .. } => later(format!("{error}; ask again with the same idempotency key")),
        Error::Full { .. } => {
            Status::resource_exhausted(format!("{error}; nothing was changed; make room"))
        }
        Error::Broken { .. } | Error::Unusable(_) => Status::internal(error.to_string()),
    }
}

/// Not now; how soon it is worth asking again is said beside it.
pub(crate) fn later(message: String) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(RETRY_AFTER.0, MetadataValue::from_static(RETRY_AFTER.1));
    Status::with_metadata(Code::Unavailable, message, metadata)
}

pub(crate) fn refused(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::KeyConflict { .. } => Status::already_exists(refusal.to_string()),
        Refusal::NoSuchJob { index, job } => Status::not_found(format!(
            "`jobs[{index}].after` has {job}, which is no job of this tenant"
        )),
        Refusal::TenantFull { tenant, jobs, max } => exceeded(
            ("tenant_jobs_max", max),
            format!("tenant `{tenant}` has {jobs} unfinished jobs and would have more"),
            "wait until some are done",
        ),
        Refusal::StoreFull { jobs, max } => exceeded(
            ("jobs_max", max),
            format!("there are {jobs} unfinished jobs and would be more"),
            "wait until some are done",
        ),
    }
}

pub(crate) fn no_such_job(id: u64) -> Status {
    Status::not_found(format!("there is no job {id}"))
}

/// What went wrong, in the words of HTTP.
pub(crate) fn by_http(status: &Status) -> Response {
    let code = match status.code() {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound | Code::Unimplemented => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = (code, Json(json!({ "error": status.message() }))).into_response();
    super::board::add_headers(response.headers_mut());
    if code == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}
