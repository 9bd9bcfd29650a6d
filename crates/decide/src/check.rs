//! What holds for every decision, whatever the policy: a second opinion, not a second decision.
//!
//! [`check`] sees a snapshot and what was decided about it, adds everything up again in the
//! plainest way, and says what is wrong. Tests, the simulator and debug builds of the server
//! call it after every decision.
//!
//! **Invariant:** nothing here is shared with the code that decides. If both made the same
//! mistake for the same reason, this would be worth nothing.
//!
//! A pool may have a policy of its own, which decides on the jobs of the pool. The policy of the
//! site decides on all other jobs. Each job is judged by the policy that decides on it.
//!
//! What is deliberately absent: whose turn it was, which job was best, which worker was best.
//! Those are opinions of the policy; here is only what no policy may do.

mod violation;
mod flaw;
mod ledger;
mod fit;
mod delay;
mod limits;
mod resources;
mod answers;
mod placements;
mod preemption;
mod holds;
mod kept;
mod opinions;

use model::{Decision, Snapshot};

pub use answers::Fault;
pub use delay::Delay;
pub use fit::Misfit;
pub use flaw::Flaw;
pub use limits::Limit;
pub use resources::Denial;
pub use violation::Violation;

use ledger::Ledger;

/// Everything that is wrong with `decision` about `before`; nothing means that it is sound.
pub fn check(before: &Snapshot, decision: &Decision) -> Vec<Violation> {
    let ledger = Ledger::new(before, decision);

    let mut violations = answers::check(&ledger);
    violations.extend(placements::check(&ledger));
    violations.extend(preemption::check(&ledger));
    violations.extend(holds::check(&ledger));
    violations
}
