//! Detection: which type is due, which worker is asked, which proposals are accepted, and when a
//! run times out. Also recurring jobs: which times are due.
//!
//! ```text
//! due ─► detecting ─► executing ─► finished
//!            │             │ time is out
//!            │ no worker   └► draining ─► stopping
//! ```
//!
//! **Invariant:** no clock, no I/O, no randomness. The time and the state of workers and jobs are
//! arguments, and actions are return values.

mod problem;
mod length;
mod field;
mod descriptor;
mod policy;
mod lane;
mod turn;
mod sieve;
mod run;
mod recur;

pub use descriptor::Descriptor;
pub use field::{Field, Kind, VisibleIf};
pub use lane::{Detector, Group, Lane, Phase, Step, Sweep, Turn, Type, View};
pub use length::{length, shown as shown_length};
pub use policy::{Origin, POLICY_FIELDS, Policy, PolicyField, Shown};
pub use problem::Problem;
pub use recur::{CatchUp, Due, every, missed};
pub use run::{Ends, Run, Status};
pub use sieve::{Proposal, Refused, Sieve};
