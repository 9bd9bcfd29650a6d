//! While no slot is to spare, the tenant with most work in flight steps back. Off by default.

use model::Fixed;
use model::policy::Rule;

use crate::rule::{Candidate, Judge, Sheet, Verdict};

const POINTS_MIN: Fixed = Fixed::whole(500);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::OrgShare,
    rewards: "Penalty: the tenant's part of the running work while no other slot is free",
    range: "-500 … 0",
    judge: Judge::Pair { judge, most: |_| Fixed::ZERO },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    // The slot that asks is free itself; spare are the slots beyond it.
    let is_spare = candidate.asker.world.fleet.slots_free > 1;
    if is_spare {
        return Verdict::Points(Fixed::ZERO);
    }
    Verdict::Points(-candidate.asker.share(POINTS_MIN, candidate.job.tenant))
}
