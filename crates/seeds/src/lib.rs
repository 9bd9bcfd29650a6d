//! Seeds: real schedulers on a real store, simulated in one thread in an order that a seed draws.
//!
//! ```text
//! play ──► site: schedulers (server::Steps)   workers (hands)   clients
//!   │              │ calls, one at a time         │ run, by clocks  │ repeat requests
//!   │ one step     ▼                              │ of their own    │ with their key
//!   │ by chance   wire ──► store::Memory          ▼                 ▼
//!   │                          │                notes ◄─────────────┘
//!   ▼ heal, drain              ▼ records          │
//! check ◄──────────────── history ◄───────────────┘
//! ```
//!
//! Real parts are the scheduler loop with its services, `decide`, and the store in memory with the
//! transitions of all stores. Simulated parts are the waiting loop, the network, and the workers,
//! which keep their leases by the rules of the real worker.
//!
//! **Invariant:** this crate reads no clock, and all random choices come from the seed: the same
//! seed gives the same history, line by line.
//!
//! **Invariant:** the checker sees the answers to clients, the records of workers and the final
//! records of the store, and no internal state.

mod broken;
mod trace;
mod wire;
mod line;
mod share;
mod notes;
mod hands;
mod client;
mod site;
mod play;
mod history;
mod check;

pub use broken::Broken;
pub use play::{Counts, Played, Reader, play};
