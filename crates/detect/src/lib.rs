//! Work that workers find: which type is due, who is asked, what is taken of the answer, and when
//! a group's time is out. And jobs that recur: which moments are due.
//!
//! ```text
//! due ─► detecting ─► executing ─► finished
//!            │             │ time is out
//!            │ no worker   └► draining ─► stopping
//! ```
//!
//! **Invariant:** no clock, no I/O, no chance. Time and what is known of workers and jobs come in
//! as arguments; what is to be done comes out.

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
