//! The body: a scheduler that talks to workers, clients and a store.
//!
//! ```text
//! submit ──► queue ──► round ──► dispatch ──► complete
//!              ▲      (decide,      │ lease out: expire
//!              │       claim)       │
//!              └────────────────────┘
//! ```
//!
//! One task owns the world ([`scheduler`]): there is no lock around a decision. Everybody else
//! sends it messages; what it wants from the store it asks for without waiting, and the answers
//! come back to it like messages.
//!
//! **Invariant:** whoever was told that something happened can rely on it: the store has it.
//!
//! **Invariant:** an event makes a round run sooner, never differently. After a restart the world
//! is built from the store, and goes on as if nothing had been.

mod config;
mod limits;
mod secret;
mod tokens;
mod settings;
mod set;
mod revise;
mod submit;
mod early;
mod whereabouts;
mod queue;
mod quota;
mod round;
mod preempt;
mod dispatch;
mod complete;
mod output;
mod reread;
mod expire;
mod cancel;
mod detect;
mod recur;
mod stale;
mod fleet;
mod share;
mod history;
mod command;
mod averages;
mod series;
mod estimate;
mod explain;
mod away;
mod foresee;
mod load;
mod status;
mod message;
mod scheduler;
mod inbox;
mod recover;
mod timers;
mod watch;
mod counters;
mod meters;
mod webhook;
mod what_if;
mod health;
mod task;
mod edge;
mod patience;
mod run;
mod steps;

pub use config::{Config, ConfigError, Webhooks};
pub use limits::Limits;
pub use run::{Doors, Error, Server, open, start};
pub use secret::Secret;
pub use steps::{Steps, Words};
pub use tokens::{Grant, Scope, Token, scopes};
pub use what_if::{Replayer, WhatIf};
