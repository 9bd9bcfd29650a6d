//! Workers that can fetch are kept free of cached evaluations while the fleet is busy.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MIN: Fixed = Fixed::whole(300);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::ReserveFetch,
    rewards: "Penalty: keeps cached evaluations off workers that fetch. Less with free slots",
    range: "-300 … 0",
    judge: Judge::Pair { judge, most: |_| Fixed::ZERO },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let asker = candidate.asker;
    if !(candidate.is(Trait::Cached) && asker.worker.can_fetch) {
        return Verdict::Points(Fixed::ZERO);
    }
    let (free, slots) = (asker.world.fleet.slots_free, asker.world.fleet.slots);
    let busy = if slots == 0 {
        POINTS_MIN
    } else {
        fraction(POINTS_MIN, i128::from(slots) - i128::from(free), i128::from(slots))
    };
    Verdict::Points(-busy)
}
