//! Handlers: the code that runs jobs of one type.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use model::Measured;

use crate::Attempt;

/// The outcome of an attempt.
pub type Outcome = Result<Done, Failure>;

/// A running attempt.
pub type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Runs jobs of one type. A function from an [`Attempt`] to a future is a handler.
///
/// It should end soon after [`Attempt::stopped`]. Otherwise the worker drops it at the end of the
/// grace period. A panic is a transient failure, and does not affect the worker.
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt.
    fn run(&self, attempt: Attempt) -> Running<'_>;
}

impl<F, R> Handler for F
where
    F: Fn(Attempt) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    fn run(&self, attempt: Attempt) -> Running<'_> {
        Box::pin(self(attempt))
    }
}

/// Runs jobs of one type on a thread that may block. A function from an [`Attempt`] to an
/// [`Outcome`] is a blocking handler.
///
/// A worker cannot end a thread, so the handler must poll [`Attempt::is_stopped`]. Its slots are in
/// use until it returns.
pub trait BlockingHandler: Send + Sync + 'static {
    /// Runs one attempt.
    fn run(&self, attempt: Attempt) -> Outcome;
}

impl<F> BlockingHandler for F
where
    F: Fn(Attempt) -> Outcome + Send + Sync + 'static,
{
    fn run(&self, attempt: Attempt) -> Outcome {
        self(attempt)
    }
}

/// Makes a [`Handler`] of a blocking handler.
pub fn blocking(handler: impl BlockingHandler) -> impl Handler {
    Blocking(Arc::new(handler))
}

struct Blocking<H>(Arc<H>);

impl<H: BlockingHandler> Handler for Blocking<H> {
    fn run(&self, attempt: Attempt) -> Running<'_> {
        let handler = Arc::clone(&self.0);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || handler.run(attempt)).await {
                Ok(outcome) => outcome,
                Err(error) => Err(Failure::transient(ended(error))),
            }
        })
    }
}

/// The error text for a task that did not return.
pub(crate) fn ended(error: tokio::task::JoinError) -> String {
    error.try_into_panic().map_or_else(|_| DROPPED.to_owned(), |panic| panicked(&*panic))
}

pub(crate) const DROPPED: &str = "the handler was dropped before it ended";

pub(crate) fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("without a word"))
}

/// The job succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// The result. `None` means none.
    pub result: Option<Vec<u8>>,
    /// The cost. `None` means the expected cost.
    pub cost: Option<f64>,
    /// The measured usage.
    pub measured: Measured,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
}

impl Done {
    /// A success without a result.
    pub fn new() -> Self {
        Self::default()
    }

    /// A success with this result.
    pub fn with_result(result: impl Into<Vec<u8>>) -> Self {
        Self { result: Some(result.into()), ..Self::default() }
    }
}

/// The job failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Whether a retry may help.
    pub kind: FailureKind,
    /// The error message, for users.
    pub text: String,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
    /// The measured usage.
    pub measured: Measured,
    /// The cost. `None` means the expected cost.
    pub cost: Option<f64>,
}

/// Whether a retry may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A retry may succeed.
    Transient,
    /// A retry cannot succeed.
    Permanent,
    /// The attempt timed out. A retry may succeed.
    Timeout,
}

impl Failure {
    /// A transient failure: the job is retried.
    pub fn transient(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Transient, text.into())
    }

    /// A permanent failure: the job fails.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Permanent, text.into())
    }

    /// A timeout: the job is retried.
    pub fn timeout(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Timeout, text.into())
    }

    fn new(kind: FailureKind, text: String) -> Self {
        Self { kind, text, exit_code: None, measured: Measured::default(), cost: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
