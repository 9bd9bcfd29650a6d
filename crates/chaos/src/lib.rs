//! Chaos: several schedulers on one Postgres, with workers, clients and random faults from a seed.
//! A checker then examines the data.
//!
//! ```text
//! clients ──► front ──► schedulers ──► links ──► Postgres, with a journal of every change of a job
//! workers ──►  (links that can be cut, slowed down and stopped)
//!    │                                             │
//!    └── answers to clients, records of runs       │ tables, journal
//!                       ▼                          ▼
//!              checker::check ◄──────────────── kept
//! ```
//!
//! **Invariant:** the checker shares no code with the scheduler and its store. It reads the tables,
//! the database's journal, and the logs of clients and workers.

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
