//! Tasks have names and owners: this is the one place where they are made.

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Runs `future` beside everything else, under a name that its log lines carry.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(crate) fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::info_span!("task", name)))
}

/// Computes something that takes long, where it keeps nobody else waiting.
pub(crate) fn spawn_blocking<T, F>(work: F) -> JoinHandle<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    tokio::task::spawn_blocking(work)
}
