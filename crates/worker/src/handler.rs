//! What a program gives to a worker: how to do jobs of one type.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use model::Measured;

use crate::Attempt;

/// How an attempt came out.
pub type Outcome = Result<Done, Failure>;

/// An attempt that is on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Does jobs of one type. A function from an [`Attempt`] to a future is one.
///
/// It should end soon after [`Attempt::stopped`]; if it does not, it is dropped when the grace is
/// over. A panic is a failure that may pass, and does not harm the worker.
pub trait Handler: Send + Sync + 'static {
    /// Does the job, once.
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

/// Does jobs of one type on a thread that may block. A function from an [`Attempt`] to an
/// [`Outcome`] is one.
///
/// Nothing can end a thread from outside: it has to look at [`Attempt::is_stopped`] now and then.
/// Its slots stay taken until it returns.
pub trait BlockingHandler: Send + Sync + 'static {
    /// Does the job, once.
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

/// Makes a [`Handler`] of one that blocks.
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

/// What a task that did not return says about it.
pub(crate) fn ended(error: tokio::task::JoinError) -> String {
    error.try_into_panic().map_or_else(|_| DROPPED.to_owned(), |panic| panicked(&*panic))
}

pub(crate) const DROPPED: &str = "the handler was dropped before it ended";

pub(crate) fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("without a word"))
}

/// The job is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// What it returned; `None` means nothing.
    pub result: Option<Vec<u8>>,
    /// What it cost; `None` means what was expected.
    pub cost: Option<f64>,
    /// What it used.
    pub measured: Measured,
    /// If it was a command.
    pub exit_code: Option<i32>,
}

impl Done {
    /// Done, without a result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Done, and this came out of it.
    pub fn with_result(result: impl Into<Vec<u8>>) -> Self {
        Self { result: Some(result.into()), ..Self::default() }
    }
}

/// The job is not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Whether it is worth another try.
    pub kind: FailureKind,
    /// What went wrong, for people.
    pub text: String,
    /// If it was a command.
    pub exit_code: Option<i32>,
    /// What it used.
    pub measured: Measured,
    /// What it cost all the same; `None` means what was expected.
    pub cost: Option<f64>,
}

/// Whether a failure is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It may pass.
    Transient,
    /// It will not pass.
    Permanent,
    /// It took longer than it may.
    Timeout,
}

impl Failure {
    /// Something that may pass: the job is tried again.
    pub fn transient(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Transient, text.into())
    }

    /// Something that will not pass: the job has failed.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Permanent, text.into())
    }

    /// It took longer than it may: the job is tried again.
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
