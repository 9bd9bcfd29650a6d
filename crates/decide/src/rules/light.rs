//! Substitute-only jobs leave workers of an architecture to real builds.

use model::policy::Rule;
use model::{Fixed, Trait, Traits};

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict};

const POINTS_BUILD: Fixed = Fixed::whole(50);
const POINTS_LIGHT_AT_HOME: Fixed = Fixed::whole(100);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Light,
    rewards: "Builds over light jobs, and light jobs on workers that report no architecture",
    range: "0, 50 or 100",
    judge: Judge::Pair { judge, most: |_| POINTS_LIGHT_AT_HOME },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    Verdict::Points(points(candidate.asker, candidate.job.traits))
}

/// Points for a job with these traits.
pub(crate) fn points(asker: &Asker<'_>, traits: Traits) -> Fixed {
    if traits.has(Trait::Evaluation) {
        Fixed::ZERO
    } else if !traits.has(Trait::Light) {
        POINTS_BUILD
    } else if asker.worker.has_no_arch {
        POINTS_LIGHT_AT_HOME
    } else {
        Fixed::ZERO
    }
}
