//! Fault injection: real processes run under load and faults. A checker then examines the data.
//!
//! ```text
//! scenario ─► stage (scheduler, workers)  ◄── load (clients)
//!     │                │                        │
//!     │ inject, heal,  │ the store's file,      │ answers to clients,
//!     │ drain          │ records of processes   │ in their logs
//!     ▼                ▼                        ▼
//!   check ◄──────── history ◄───────────────────┘
//! ```
//!
//! **Invariant:** the checker shares no code with the scheduler and its store, and never asks the
//! scheduler. It reads the file, the clients' logs, and the records of the processes.

mod error;
mod clock;
mod chance;
mod history;
mod notebook;
mod kept;
mod check;
mod ports;
mod process;
mod stage;
mod disk;
mod rpc;
mod job;
mod load;
mod zombie;
mod scenario;

pub use chance::Chance;
pub use check::{Recovery, Scope, Violation, check, recovery};
pub use clock::{boot_ms, now_ms, passed_ms, until};
pub use error::Error;
pub use history::{
    Asked, Attempt, Calm, Fault, Harm, History, Job, Key, Limits, Mark, Note, Offer, Op, Outcome,
    Piece, Said, Step,
};
pub use kept::read_marks;
pub use notebook::{Answer, Notebook, read_said, settle};
pub use ports::free_ports;
pub use process::Process;
pub use scenario::{
    Report, full_disk, killed_schedulers, stale_results, torn_logs, unwell_workers, write_errors,
};
