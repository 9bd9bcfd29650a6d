//! Live proof of fair shares: a table of scenarios, each with real schedulers, workers and jobs.
//!
//! ```text
//! table ──► play ──► stage (maitre serve, maitre work --exec, the command line)
//!             │                          │
//!             │                          ▼ jobs append their start and end
//!             ▼                        notes
//!          verdict ◄── share ◄───────────┘
//! ```
//!
//! **Invariant:** a share is computed from the notes of the jobs alone. The scheduler is asked
//! only for evidence, after the notes have shown that a tenant is behind.

mod error;
mod scenario;
mod table;
mod notes;
mod share;
mod stage;
mod play;
mod verdict;
mod run;

pub use error::Error;
pub use run::{Extent, Plan, run};
pub use table::{QUICK, table};
