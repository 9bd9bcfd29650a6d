//! Who is let in: every path of every door, and what it takes to use it.
//!
//! **Invariant:** what is not in the table is for admins alone.

use std::sync::Arc;

use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response as HttpResponse;
use model::{Record, TenantId};
use store::Store;
use tonic::{Request, Status};

use super::answer;
use super::origin::{check_name, check_page};
use crate::tokens::{Bearer, Denied, Grant, Scope, Tokens};

/// What it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: who knocks is answered.
    Nothing,
    /// Some token, of whatever scope.
    Any,
    /// This scope; whoever has it for one tenant sees and changes only what is that tenant's.
    Own(Scope),
    /// This scope, for all tenants.
    All(Scope),
}

/// Every path.
pub(crate) const PATHS: &[(&str, Need)] = &[
    ("/maitre.v1.Jobs/Submit", Need::Own(Scope::Submit)),
    ("/maitre.v1.Jobs/DryRun", Need::Own(Scope::Submit)),
    ("/maitre.v1.Jobs/Limits", Need::Own(Scope::Submit)),
    ("/maitre.v1.Jobs/Get", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/List", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/Watch", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/Wait", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/Explain", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/Logs", Need::Own(Scope::Read)),
    ("/maitre.v1.Jobs/Cancel", Need::Own(Scope::Cancel)),
    ("/maitre.v1.Jobs/Retry", Need::Own(Scope::Cancel)),
    ("/maitre.v1.Jobs/Amend", Need::Own(Scope::Cancel)),
    ("/maitre.v1.Worker/Session", Need::All(Scope::Work)),
    ("/maitre.v1.Admin/Set", Need::All(Scope::Admin)),
    ("/maitre.v1.Admin/Unset", Need::All(Scope::Admin)),
    ("/maitre.v1.Admin/DrainWorker", Need::All(Scope::Admin)),
    ("/maitre.v1.Admin/Snapshot", Need::All(Scope::Admin)),
    ("/maitre.v1.Admin/Settings", Need::All(Scope::Read)),
    ("/maitre.v1.Admin/Tenants", Need::Own(Scope::Read)),
    ("/maitre.v1.Admin/Workers", Need::All(Scope::Read)),
    ("/maitre.v1.Admin/Types", Need::All(Scope::Read)),
    ("/maitre.v1.Admin/Load", Need::All(Scope::Read)),
    ("/maitre.v1.Admin/Demand", Need::All(Scope::Read)),
    ("/maitre.v1.Admin/Status", Need::Any),
    ("/maitre.v1.Admin/NewToken", Need::Own(Scope::TenantAdmin)),
    ("/maitre.v1.Admin/RevokeToken", Need::Own(Scope::TenantAdmin)),
    ("/maitre.v1.Admin/Tokens", Need::Own(Scope::TenantAdmin)),
    ("/maitre.v1.Admin/WebhookKey", Need::Own(Scope::TenantAdmin)),
    ("/maitre.v1.Detection/Type", Need::All(Scope::Read)),
    ("/maitre.v1.Detection/SetType", Need::All(Scope::Admin)),
    ("/maitre.v1.Detection/Describe", Need::All(Scope::Admin)),
    ("/maitre.v1.Detection/Detect", Need::All(Scope::Admin)),
    ("/maitre.v1.Detection/CancelRun", Need::All(Scope::Admin)),
    ("/maitre.v1.Detection/Runs", Need::All(Scope::Read)),
    ("/maitre.v1.Detection/Activity", Need::All(Scope::Read)),
    ("/maitre.v1.Detection/GetContext", Need::All(Scope::Read)),
    ("/maitre.v1.Detection/PutContext", Need::All(Scope::Admin)),
    ("/maitre.v1.Schedules/PutSchedule", Need::All(Scope::Admin)),
    ("/maitre.v1.Schedules/RemoveSchedule", Need::All(Scope::Admin)),
    ("/maitre.v1.Schedules/PauseSchedule", Need::All(Scope::Admin)),
    ("/maitre.v1.Schedules/RunSchedule", Need::All(Scope::Admin)),
    ("/maitre.v1.Schedules/ListSchedules", Need::All(Scope::Read)),
    ("/grpc.health.v1.Health/Check", Need::Nothing),
    ("/grpc.health.v1.Health/Watch", Need::Nothing),
    ("/grpc.health.v1.Health/List", Need::Nothing),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Need::Nothing),
    ("/healthz", Need::Nothing),
    ("/readyz", Need::Nothing),
    ("/metrics", Need::All(Scope::Read)),
    ("/", Need::Nothing),
    ("/board/{file}", Need::Nothing),
    ("/v1/me", Need::Any),
    ("/v1/overview", Need::All(Scope::Read)),
    ("/v1/series", Need::Own(Scope::Read)),
    ("/v1/jobs", Need::Own(Scope::Read)),
    ("/v1/jobs/{id}", Need::Own(Scope::Read)),
    ("/v1/demand", Need::All(Scope::Read)),
    ("/v1/types", Need::All(Scope::Read)),
    ("/v1/types/{type}", Need::All(Scope::Read)),
    ("/v1/types/{type}/runs", Need::All(Scope::Read)),
    ("/v1/schedules", Need::All(Scope::Read)),
    ("/v1/activity", Need::All(Scope::Read)),
    ("/v1/context", Need::All(Scope::Read)),
    ("/v1/what-if", Need::All(Scope::Read)),
    ("/v1/what-if/{number}/{file}", Need::All(Scope::Read)),
];

/// What a request needs. Whatever is not a look at HTTP's paths, and is no method of a service,
/// changes something.
fn need(method: &Method, path: &str) -> Need {
    let known = PATHS.iter().find(|(known, _)| is_like(known, path));
    let is_service = path.starts_with("/maitre.") || path.starts_with("/grpc.");
    match known {
        Some((_, need)) if is_service || *method == Method::GET => *need,
        Some((_, Need::Nothing)) => Need::Nothing,
        Some(_) | None => Need::All(Scope::Admin),
    }
}

/// Whether a path is like a pattern, in which a part in braces is any.
fn is_like(pattern: &str, path: &str) -> bool {
    let (mut parts, mut own) = (pattern.split('/'), path.split('/'));
    loop {
        match (parts.next(), own.next()) {
            (None, None) => return true,
            (Some(part), Some(own)) if part == own || part.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// What is needed to know who knocks.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) tokens: Tokens,
    pub(crate) store: Arc<dyn Store>,
}

/// Lets a request through with what its bearer may do, or turns it away.
pub(crate) async fn guard(
    State(guard): State<Guard>,
    mut request: HttpRequest,
    next: Next,
) -> HttpResponse {
    match guard.admit(request.method(), request.uri(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(status) => turned_away(&request, &status),
    }
}

impl Guard {
    fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Status> {
        check_page(method, uri, headers)?;
        let need = need(method, uri.path());
        if need == Need::Nothing {
            return Ok(Caller::nobody());
        }
        if !self.tokens.is_on() {
            check_name(uri, headers)?;
        }
        let bearer = self.tokens.bearer(bearer(headers), self.store.now());
        let bearer = bearer.map_err(|denied| {
            Status::unauthenticated(match denied {
                Denied::Missing => {
                    "a token is needed; hint: set MAITRE_TOKEN or use --token-file; \
                     `maitre token new` makes one"
                }
                Denied::Unknown => {
                    "the token is not known, was revoked or has expired; hint: `maitre token \
                     new` makes another"
                }
            })
        })?;
        let (scope, is_for_all) = match need {
            Need::Nothing | Need::Any => return Ok(Caller(bearer)),
            Need::Own(scope) => (scope, false),
            Need::All(scope) => (scope, true),
        };
        if !bearer.grant.allows(scope) {
            return Err(Status::permission_denied(format!(
                "the token does not have the scope `{}`, which this needs",
                scope.name()
            )));
        }
        match &bearer.grant.tenant {
            Some(tenant) if is_for_all => Err(Status::permission_denied(format!(
                "the token is for tenant `{tenant}` alone, and this is about all of them"
            ))),
            Some(_) | None => Ok(Caller(bearer)),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A refusal, in the words of whoever asked.
pub(crate) fn turned_away(request: &HttpRequest, status: &Status) -> HttpResponse {
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        return status.clone().into_http();
    }
    answer::by_http(status)
}

/// Whoever was let in, and what they may do.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Bearer);

impl Caller {
    /// Whoever sent this request.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let caller = request.extensions().get::<Self>().cloned();
        caller.ok_or_else(|| Status::internal("nobody looked at who asks"))
    }

    /// Somebody of whom nothing is known, and who may do nothing.
    fn nobody() -> Self {
        let grant = Arc::new(Grant { tenant: None, scopes: Vec::new() });
        Self(Bearer { grant, who: Arc::from("") })
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.0.grant
    }

    /// What they are called where it is written down who did something.
    pub(crate) fn who(&self) -> &str {
        &self.0.who
    }

    /// The one tenant whose jobs these are about; `None` means everybody's.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.grant().tenant.as_ref()
    }

    /// Whether this job exists, as far as the caller is concerned.
    pub(crate) fn sees(&self, record: &Record) -> bool {
        self.grant().reaches(&record.spec.tenant)
    }

    /// The tenant that a request names, or the caller's own if it names none.
    pub(crate) fn own(&self, field: &str, named: &mut String) -> Result<(), Status> {
        let Some(own) = self.tenant() else { return Ok(()) };
        if named.is_empty() {
            *named = own.to_string();
        }
        if TenantId::new(named) == *own {
            return Ok(());
        }
        Err(Status::permission_denied(format!(
            "`{field}` is `{named}`, and the token is for tenant `{own}` alone"
        )))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_method_of_every_service_is_in_the_table() {
        let descriptors = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap();
        let mut n_methods = 0;
        for file in &descriptors.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let n_times = PATHS.iter().filter(|(known, _)| *known == path).count();
                    assert_eq!(n_times, 1, "{path}");
                    n_methods += 1;
                }
            }
        }
        let ours = PATHS.iter().filter(|(path, _)| path.starts_with("/maitre.")).count();
        assert_eq!(ours, n_methods, "the table has methods that there are not");
        assert_eq!(need(&Method::POST, "/maitre.v1.Jobs/New"), Need::All(Scope::Admin));
    }

    #[test]
    fn by_http_whoever_may_read_changes_nothing() {
        let read = Need::All(Scope::Read);
        assert_eq!(need(&Method::GET, "/v1/types/vacuum"), read);
        assert_eq!(need(&Method::GET, "/v1/types/vacuum/runs"), read);
        for (method, path) in [
            (Method::PATCH, "/v1/types/vacuum"),
            (Method::POST, "/v1/types/vacuum/detect"),
            (Method::PUT, "/v1/context"),
            (Method::POST, "/v1/what-if"),
            (Method::DELETE, "/v1/what-if"),
            (Method::GET, "/v1/types/vacuum/runs/more"),
            (Method::GET, "/v1"),
        ] {
            assert_eq!(need(&method, path), Need::All(Scope::Admin), "{method} {path}");
        }
        assert_eq!(need(&Method::POST, "/maitre.v1.Jobs/Get"), Need::Own(Scope::Read));
        assert_eq!(need(&Method::HEAD, "/healthz"), Need::Nothing);
    }
}
