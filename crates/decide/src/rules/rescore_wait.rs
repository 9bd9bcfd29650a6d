//! A job whose inputs nobody has reported yet waits a few rounds for the report.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Candidate, Judge, Sheet, Verdict};

/// After so many rounds it waits no longer.
pub(crate) const ROUNDS_MAX: u32 = 4;

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::RescoreWait,
    rewards: "Veto: holds a job up to 4 cycles until its inputs are known, except evaluations",
    range: "veto",
    judge: Judge::Pair { judge, most: |_| Fixed::ZERO },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let waits = !candidate.is(Trait::Evaluation)
        && candidate.job.extra().rescore_count < ROUNDS_MAX
        && candidate.job.n_sizes == 0;
    if waits { Verdict::Veto } else { Verdict::Points(Fixed::ZERO) }
}
