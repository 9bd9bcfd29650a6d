//! Replays a workload against a policy, and says what would have happened.
//!
//! ```text
//! rows ─► workload ─► engine ◄─► scheduler ─► starts ─► measures
//! read    workload    engine     preset       engine    measure, share, bound
//!                                baseline/
//! ```
//!
//! **Invariant:** deterministic. Time is whole milliseconds, and nothing but the workload, the
//! fleet, the policy and a seed has a say in what comes out.
//!
//! **Invariant:** the presets are those of `decide`: [`preset`] feeds events to a world and does
//! what it decides. Only the baselines, which are no presets, are written here.

mod error;
pub mod workload;
pub mod sharers;
pub mod fleet;
pub mod seating;
pub mod read;
pub mod catalog;
mod swf;
mod rows;
mod gather;
mod terms;
pub mod generate;
mod chance;
pub mod conditions;
pub mod engine;
pub mod estimate;
pub mod hindsight;
pub mod preset;
pub mod many;
mod usage;
pub mod baseline;
pub mod measure;
mod due;
pub mod share;
pub mod verdict;
pub mod promise;
pub mod bound;
mod relax;
pub mod report;
mod number;

pub use baseline::Baseline;
pub use bound::Bounds;
pub use conditions::{Conditions, Failures, Transfer};
pub use engine::{Loss, Replay, Scheduler, Seat, Start, replay};
pub use error::Error;
pub use estimate::Estimates;
pub use fleet::Fleet;
pub use many::Many;
pub use measure::Measures;
pub use preset::Preset;
pub use promise::Promise;
pub use verdict::Verdict;
pub use workload::{Job, Row, Workload};
