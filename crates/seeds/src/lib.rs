//! Seeds: real schedulers on a real store, played in one thread in an order that a seed draws.
//!
//! ```text
//! play ──► site: schedulers (server::Steps)   workers (hands)   clients
//!   │              │ ask, one call at a time      │ do, by clocks   │ ask again under
//!   │ one step     ▼                              │ of their own    │ the same key
//!   │ by chance   wire ──► store::Memory          ▼                 ▼
//!   │                          │                notes ◄─────────────┘
//!   ▼ heal, drain              ▼ what is left     │
//! check ◄──────────────── history ◄───────────────┘
//! ```
//!
//! Real is what decides and what keeps: the owner of the world and its doors, `decide`, and the
//! store in memory with the transitions that all stores share. Played are the loop that waits, the
//! network, and the workers, which keep their leases by the rules of the worker's own code.
//!
//! **Invariant:** nothing here reads a clock or draws from anything but the seed: the same seed
//! gives the same history, line by line.
//!
//! **Invariant:** the checker sees what clients were told, what workers wrote down and what the
//! store has in the end, and nothing of how it came about.

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
