//! Each preset and each rule does what its text says, one claim a test.
//!
//! **Invariant:** written from the texts of the presets, not from the code that decides.

mod world;
mod specs;

mod rules_paths_bytes;
mod rules_waiting;
mod rules_resources;
mod rules_share;

mod priority_age;
mod sampling;
mod needs;
mod cohort;
mod preemption;
mod simple;
mod fair_share;
mod budgets;
mod workspaces;
mod status;
mod wanted;
mod aging;
mod detected;
mod balanced;
mod shortest;
mod guard;
mod reserve;

mod pools;
mod pull;
mod backoff;
mod holds;
mod holds_order;
mod checklist;
mod room;
mod sets;
mod order;
