//! A worker that has most of a job's input paths should run it.

use model::Fixed;
use model::policy::Rule;

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(200);
/// What a job lacks on average, while nobody has measured it.
const AVERAGE_UNKNOWN: Fixed = Fixed::whole(20);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::MissingPaths,
    rewards: "Workers that hold the job's input paths. No points at twice the average missing",
    range: "0 … 200",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let points = match (candidate.inputs().missing_paths, thousandths(candidate.asker)) {
        (None, _) => Fixed::ZERO,
        (Some(missing), 0) if missing > 0 => Fixed::ZERO,
        (Some(_), 0) => POINTS_MAX,
        (Some(missing), none_at) => {
            fraction(POINTS_MAX, none_at - 1_000 * i128::from(missing), none_at)
        }
    };
    Verdict::Points(points)
}

/// Missing paths that earn nothing, in thousandths.
fn thousandths(asker: &Asker<'_>) -> i128 {
    let average = asker.avg_1h().missing_paths.unwrap_or(AVERAGE_UNKNOWN);
    2 * i128::from(average.in_thousandths())
}

/// Missing paths that earn nothing, rounded up.
pub(crate) fn none_at(asker: &Asker<'_>) -> i128 {
    thousandths(asker) / 1_000 + 1
}
