//! The HTTP door.

use axum::Router;

use super::Door;

/// What is asked by HTTP. Who may ask it is in the table of `guard.rs`.
pub(crate) fn router(door: Door) -> Router {
    Router::new().with_state(door)
}
