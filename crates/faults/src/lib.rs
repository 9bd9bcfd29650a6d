//! Fault injection: real processes run under load and faults. Then the [`checker`] examines the
//! history of the run.
//!
//! ```text
//! scenario ─► stage (scheduler, workers)  ◄── load (clients)
//!     │                │                        │
//!     │ inject, heal,  │ the store's file,      │ answers to clients,
//!     │ drain          │ records of processes   │ in their logs
//!     ▼                ▼                        ▼
//!  checker ◄─────── history ◄───────────────────┘
//! ```
//!
//! **Invariant:** a history comes from the store's file, the clients' logs and the records of the
//! processes. No scheduler is asked.

mod error;
mod clock;
mod chance;
mod notebook;
mod kept;
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
pub use clock::{boot_ms, now_ms, passed_ms, until};
pub use error::Error;
pub use kept::read_marks;
pub use notebook::{Answer, Notebook, read_said, settle};
pub use ports::free_ports;
pub use process::Process;
pub use scenario::{
    Report, full_disk, killed_schedulers, stale_results, torn_logs, unwell_workers, write_errors,
};
