//! A worker that has most of a job's input paths should run it.

use model::Fixed;
use model::policy::Rule;

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(200);
/// What a job lacks on average, while nobody has measured it.
const AVERAGE_UNKNOWN: Fixed = Fixed::whole(20);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::MissingPaths,
    rewards: "A worker that has the job's input paths; none at twice the average missing",
    range: "0 … 200",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    Verdict::Points(points(candidate.asker, candidate.inputs().missing_paths))
}

/// Points for a job of which the asking worker lacks so many paths.
pub(crate) fn points(asker: &Asker<'_>, missing: Option<u32>) -> Fixed {
    let Some(missing) = missing else { return Fixed::ZERO };
    let average = asker.avg_1h().missing_paths.unwrap_or(AVERAGE_UNKNOWN);
    let none_at = 2 * i128::from(average.in_thousandths());
    if none_at == 0 {
        return if missing == 0 { POINTS_MAX } else { Fixed::ZERO };
    }
    fraction(POINTS_MAX, none_at - 1_000 * i128::from(missing), none_at)
}
