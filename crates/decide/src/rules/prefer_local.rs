//! A job that asks to be local runs where its inputs are.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(150);
/// Lost for each missing path when jobs lack nothing on average, or nobody has measured it.
const POINTS_PER_PATH: Fixed = Fixed::whole(20);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::PreferLocal,
    rewards: "Prefer-local jobs on workers with their inputs. Less for each missing path",
    range: "0 … 150",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    if !candidate.is(Trait::PreferLocal) {
        return Verdict::Points(Fixed::ZERO);
    }
    let Some(missing) = candidate.inputs().missing_paths else {
        return Verdict::Points(Fixed::ZERO);
    };
    let average = candidate.asker.avg_1h().missing_paths.unwrap_or(Fixed::ZERO);
    let none_at = 2 * i128::from(average.in_thousandths());
    let points = if none_at > 0 {
        fraction(POINTS_MAX, none_at - 1_000 * i128::from(missing), none_at)
    } else {
        (POINTS_MAX - POINTS_PER_PATH.scale(i64::from(missing), 1)).max(Fixed::ZERO)
    };
    Verdict::Points(points)
}
