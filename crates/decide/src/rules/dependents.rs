//! A job that many others wait for should run before one that nobody waits for.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(50);
/// Jobs that wait for a job on average, while nobody has counted them.
const AVERAGE_UNKNOWN: Fixed = Fixed::whole(10);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Dependents,
    rewards: "Jobs with dependents, except evaluations. All points at twice the average",
    range: "0 … 50",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let points = match candidate.job.extra().dependents {
        Some(dependents) if !candidate.is(Trait::Evaluation) => {
            match thousandths(candidate.asker) {
                0 if dependents > 0 => POINTS_MAX,
                all_at => fraction(POINTS_MAX, 1_000 * i128::from(dependents), all_at),
            }
        }
        Some(_) | None => Fixed::ZERO,
    };
    Verdict::Points(points)
}

/// Dependents that earn all points, in thousandths.
fn thousandths(asker: &Asker<'_>) -> i128 {
    let average = asker.avg_1h().dependencies.unwrap_or(AVERAGE_UNKNOWN);
    2 * i128::from(average.in_thousandths())
}

/// Dependents that earn all points, rounded down.
pub(crate) fn all_at(asker: &Asker<'_>) -> i128 {
    thousandths(asker) / 1_000
}
