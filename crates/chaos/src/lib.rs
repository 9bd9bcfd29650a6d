//! Chaos: several schedulers on one Postgres, with workers and clients, hurt in every way that a
//! seed draws; then a checker looks at what is left.
//!
//! ```text
//! clients ──► front ──► schedulers ──► ways ──► Postgres, with a journal of every change of a job
//! workers ──►  (ways that can be cut, slowed down and stopped)
//!    │                                             │
//!    └── what they were told, what they did        │ tables, journal
//!                       ▼                          ▼
//!               faults::check ◄──────────────── kept
//! ```
//!
//! **Invariant:** the checker shares no code with the scheduler and its store. It reads the tables,
//! what the database wrote down itself, and what clients and workers wrote down.

mod error;
mod weather;
mod journal;
mod kept;
mod load;
mod crew;
mod client;
mod hand;
mod stage;
mod harm;
mod report;
mod run;

pub use error::Error;
pub use hand::{Hand, work};
pub use report::{FORGOTTEN, Report};
pub use run::{Plan, run};
