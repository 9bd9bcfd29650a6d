//! The tasks of a server. This file is the only place that spawns tasks, so each task has a name
//! and an owner.
//!
//! - [`Tasks`] owns the tasks that run as long as the server. If one of them ends before shutdown,
//!   the server stops.
//! - [`Tracker`] counts short tasks: requests, streams, deliveries. A panic in one of them ends
//!   that request alone.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinHandle, JoinSet};
use tracing::Instrument as _;

use crate::run::Error;

/// The tasks that run as long as the server, each with a name of its own. Dropping the set aborts
/// them.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    set: JoinSet<Result<(), Error>>,
    running: HashMap<Id, (&'static str, AbortHandle)>,
}

/// The output of a task.
pub(crate) trait Outcome {
    /// The error of the task, if it failed.
    fn outcome(self) -> Result<(), Error>;
}

impl Outcome for () {
    fn outcome(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<E> Outcome for Result<(), E>
where
    Error: From<E>,
{
    fn outcome(self) -> Result<(), Error> {
        Ok(self?)
    }
}

impl Tasks {
    /// Runs `future` until it ends or the set is dropped.
    #[expect(clippy::disallowed_methods, reason = "the place that spawns tasks")]
    pub(crate) fn spawn<F>(&mut self, name: &'static str, future: F)
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        debug_assert!(self.handle(name).is_none(), "two tasks are named `{name}`");
        let future = async move { future.await.outcome() };
        let handle = self.set.spawn(future.instrument(tracing::info_span!("task", name)));
        self.running.insert(handle.id(), (name, handle));
    }

    /// Waits until a task ends, although the server does not stop. Answers the error of the server.
    pub(crate) async fn failed(&mut self) -> Error {
        match self.next().await {
            Some((name, ended)) => {
                let error = ended.err().unwrap_or(Error::TaskEnded { name });
                log(name, &error);
                error
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until the task of this name ends, and aborts it after `grace`. Answers the first error
    /// of any task that failed meanwhile. During shutdown a task may end without an error.
    pub(crate) async fn stop(&mut self, name: &'static str, grace: Duration) -> Option<Error> {
        let mut first = None;
        let ended = async {
            while self.handle(name).is_some() {
                let Some((name, ended)) = self.next().await else { return };
                if let Err(error) = ended {
                    log(name, &error);
                    first.get_or_insert(error);
                }
            }
        };
        if tokio::time::timeout(grace, ended).await.is_err() {
            self.handle(name).inspect(|late| late.abort());
        }
        first
    }

    fn handle(&self, name: &str) -> Option<&AbortHandle> {
        let mut running = self.running.values();
        running.find(|(running, _)| *running == name).map(|(_, handle)| handle)
    }

    /// The next task that ends, and its result. `None`: no task runs.
    async fn next(&mut self) -> Option<(&'static str, Result<(), Error>)> {
        let (id, ended) = match self.set.join_next_with_id().await? {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(error) => (error.id(), Err(error)),
        };
        let (name, _) = self.running.remove(&id)?;
        let ended = ended.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(Error::TaskPanicked { name, message: message(&*panic) }),
            // Only this set aborts its tasks, after their grace.
            Err(_) => Ok(()),
        });
        Some((name, ended))
    }
}

fn log(name: &str, error: &Error) {
    tracing::error!(task = name, %error, "task ended");
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Counts the short tasks of a server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    n_running: watch::Sender<usize>,
}

/// A task that counts, until this is dropped.
struct Running(watch::Sender<usize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|n_running| *n_running -= 1);
    }
}

impl Tracker {
    /// Runs `future` beside everything else, under a name that its log lines carry.
    #[expect(clippy::disallowed_methods, reason = "the place that spawns tasks")]
    pub(crate) fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let running = self.count();
        let counted = async move {
            let _running = running;
            future.await
        };
        tokio::spawn(counted.instrument(tracing::info_span!("task", name)))
    }

    /// Runs a long computation on a thread where no other task waits for it.
    #[expect(clippy::disallowed_methods, reason = "the place that spawns tasks")]
    pub(crate) fn spawn_blocking<T, F>(&self, work: F) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let running = self.count();
        tokio::task::spawn_blocking(move || {
            let _running = running;
            work()
        })
    }

    fn count(&self) -> Running {
        self.n_running.send_modify(|n_running| *n_running += 1);
        Running(self.n_running.clone())
    }

    /// Waits until no task runs, for at most `grace`. Tasks that still run are cut off when the
    /// process ends.
    pub(crate) async fn stop(&self, grace: Duration) {
        let mut n_running = self.n_running.subscribe();
        let none = n_running.wait_for(|n_running| *n_running == 0);
        if tokio::time::timeout(grace, none).await.is_err() {
            tracing::warn!(tasks = *self.n_running.borrow(), "short tasks are cut off");
        }
    }
}

#[cfg(test)]
mod tests;
