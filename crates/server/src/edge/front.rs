//! What answers from the first moment on: whether there is life, and whether it is time to ask.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use store::Store;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::ServiceExt as _;

use super::answer::RETRY_AFTER;
use super::guard::turned_away;
use super::listen::Room;
use crate::health::Health;
use crate::limits::exceeded;
use crate::task::Tracker;

/// What is said until the store is there.
const NO_STORE: &str = "the store cannot be reached yet";

/// The outermost door. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Front {
    /// Everything else, once the world is built.
    pub(crate) inside: Arc<OnceLock<Router>>,
    /// Cancelled once there is something inside, or never will be.
    pub(crate) built: CancellationToken,
    pub(crate) health: Health,
    /// Where jobs are kept, once it is there.
    pub(crate) store: Arc<OnceLock<Arc<dyn Store>>>,
    pub(crate) stop: CancellationToken,
    /// The tasks of requests.
    pub(crate) requests: Tracker,
    /// The limit that whoever is one too many has met.
    pub(crate) connections_max: usize,
}

impl Front {
    /// All that is answered.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .fallback(pass)
            .with_state(self)
    }

    /// Why nobody should be sent here now.
    pub(super) fn not_ready(&self) -> Option<&'static str> {
        if self.stop.is_cancelled() {
            return Some("the scheduler is stopping");
        }
        let Some(store) = self.store.get() else { return Some(NO_STORE) };
        if self.inside.get().is_none() {
            return Some("the scheduler reads what it knows");
        }
        self.health.is_failing(store.now()).then_some("the store fails")
    }
}

async fn readyz(State(front): State<Front>) -> Response {
    match front.not_ready() {
        None => "ready\n".into_response(),
        Some(why) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            (status, [RETRY_AFTER], format!("{why}\n")).into_response()
        }
    }
}

/// Whoever comes before the world is built waits for it: a worker that were sent away would come
/// back late, and its lease runs. Nobody waits for a store: it may be away for hours.
async fn pass(State(front): State<Front>, request: Request) -> Response {
    if request.extensions().get() == Some(&Room::None) {
        let limit = ("connections_max", front.connections_max);
        let hint = "close some, or ask another scheduler";
        return turned_away(&request, &exceeded(limit, "there is one connection more", hint));
    }
    if front.store.get().is_none() {
        return turned_away(&request, &Status::unavailable(NO_STORE));
    }
    if front.inside.get().is_none() {
        front.built.cancelled().await;
    }
    if let Some(inside) = front.inside.get() {
        let response = inside.clone().oneshot(request).await;
        return response.unwrap_or_else(|never| match never {});
    }
    turned_away(&request, &Status::unavailable("the scheduler could not start"))
}
