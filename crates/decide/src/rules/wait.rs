//! A job that has waited long should run, whatever else speaks against it.

use model::policy::Rule;
use model::{Fixed, Millis};

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

/// For each average wait that it waited.
const POINTS_PER_AVERAGE: i128 = 60;
/// More than all other bonuses together, so that age wins in the end.
const POINTS_MAX: Fixed = Fixed::whole(4_000);
/// The same without its decimals.
const AVERAGES_MAX: i128 = 4_000;
/// The average wait, while nobody has measured it.
const AVERAGE_UNKNOWN: Fixed = Fixed::whole(60);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Wait,
    rewards: "Jobs that have been ready for long: 60 for each time the average wait",
    range: "0 … 4000",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let waited = candidate.asker.now().since(candidate.job.standing.ready);
    let average = average(candidate.asker);
    let points = if average == Fixed::ZERO {
        if waited > Millis::ZERO { POINTS_MAX } else { Fixed::ZERO }
    } else {
        let all_at = i128::from(average.in_thousandths()) * AVERAGES_MAX;
        fraction(POINTS_MAX, POINTS_PER_AVERAGE * i128::from(waited.0), all_at)
    };
    Verdict::Points(points)
}

fn average(asker: &Asker<'_>) -> Fixed {
    asker.avg_1h().wait_s.unwrap_or(AVERAGE_UNKNOWN)
}

/// Milliseconds of waiting that earn all points, rounded down.
pub(crate) fn all_at(asker: &Asker<'_>) -> i128 {
    i128::from(average(asker).in_thousandths()) * AVERAGES_MAX / POINTS_PER_AVERAGE
}
