//! Decides which waiting job goes to which worker, and why the others wait.
//!
//! ```text
//! limits ─► whose turn ─► which job ─► which worker ─► action (+ why)
//! limits    turn          order        seat            round, explain
//! ```
//!
//! A [`World`] takes in events ([`World::apply`]) and the time, and returns actions
//! ([`World::decide`], [`World::fetch`]). [`decide`] does all of it once, for a snapshot.
//!
//! **Invariant:** no clock, no I/O, no chance but a seed that is passed in. The same world gives
//! the same actions on every machine, in whatever order it was built.
//!
//! **Invariant:** the cost of a decision does not depend on how many jobs wait, only on how many
//! kinds of jobs wait and how many workers could take them.

mod table;
mod bits;
mod index;

mod world;
mod apply;
mod snapshot;
mod audience;
mod catalogue;
mod fleet;
mod seated;
mod inputs;
mod register;
mod slots;
mod queue;
mod lanes;
mod timers;
mod resources;
mod waiting;
mod crowd;
mod tenants;
mod account;
mod policies;
mod dues;
mod max_min;

mod round;
mod pull;
mod limits;
mod turn;
mod rank;
mod fairest;
mod order;
mod seat;
mod sample;
mod chance;
mod guard;
mod reserve;
mod preempt;
mod promise;
mod rule;
pub mod rules;
mod bounds;
mod search;

mod explain;
mod detail;
mod status;
mod wanted;
mod longest;
mod rivals;
mod lengths;
pub mod check;

pub use dues::ShareStatus;
pub use explain::{Explanation, Nearest, Waiters, decide};
pub use lengths::{Lengths, Like, Prediction, Said, Skill};
pub use longest::LongWait;
pub use rivals::Ahead;
pub use rule::Sheet;
pub use status::TenantStatus;
pub use wanted::Wanted;
pub use world::World;
