//! The worker: an SDK for programs that run jobs, and one handler that runs commands.
//!
//! **Invariant:** an attempt whose lease may have ended is killed, and never reported as a success.

mod lock;
mod error;
mod handler;
mod attempt;
mod detection;
mod known;
mod stop;
mod builder;
mod worker;
mod shared;
mod session;
mod life;
mod watch;
mod alarms;
mod roster;
mod completions;
mod outbox;
mod log;
mod lease;
mod backoff;
mod inventory;
mod metrics;
mod proc;
pub mod child;
mod command;

pub use attempt::{Attempt, Stream};
pub use builder::Builder;
pub use command::{ChildProgram, Command, CommandSettings, Commands};
pub use detect::{Descriptor, Field, Kind as FieldKind, VisibleIf};
pub use detection::{Detection, Detector, Looking, Proposal};
pub use error::Error;
pub use handler::{
    BlockingHandler, Done, Failure, FailureKind, Handler, Outcome, Running, blocking,
};
pub use inventory::{Directory, Inventory};
pub use known::{Configuration, Context};
pub use stop::StopReason;
pub use worker::{Control, Worker};
