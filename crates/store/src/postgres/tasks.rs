//! The tasks of a store. They run as long as the store, and end with it.
//!
//! **Invariant:** a task that panics breaks the store. Each later call fails with
//! [`Error::Broken`], as it does after a failure of the disk. So no scheduler works without the
//! task.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use crate::Error;

/// The tasks of a store. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    /// The panic that broke the store.
    broken: Arc<OnceLock<String>>,
}

impl Tasks {
    /// Runs a task until it ends.
    pub(super) fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let broken = Arc::clone(&self.broken);
        tokio::spawn(async move {
            // Only the handle of a task tells of a panic.
            let Err(error) = tokio::spawn(work).await else { return };
            if error.is_panic() {
                tracing::error!(task = name, %error, "task ended");
                // The first panic explains the next ones.
                let _ = broken.set(format!("the task `{name}` of the store panicked: {error}"));
            }
        });
    }

    /// Fails if the store is broken.
    pub(super) fn check(&self, doing: &'static str) -> Result<(), Error> {
        match self.broken.get() {
            Some(cause) => Err(Error::Broken { doing, cause: cause.clone() }),
            None => Ok(()),
        }
    }
}
