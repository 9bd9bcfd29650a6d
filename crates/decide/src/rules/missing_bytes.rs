//! A worker that has most of a job's input bytes should run it.

use model::Fixed;
use model::policy::Rule;

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(500);
/// MiB that a job lacks on average, while nobody has measured it.
const AVERAGE_MIB_UNKNOWN: Fixed = Fixed::whole(1_024);
const BYTES_PER_MIB: i128 = 1 << 20;

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::MissingBytes,
    rewards: "Workers that hold the job's input bytes. No points at twice the average missing",
    range: "0 … 500",
    judge: Judge::Pair { judge, most: |_| POINTS_MAX },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    Verdict::Points(points(candidate.asker, candidate.inputs().missing_bytes))
}

/// Points for a job of which the asking worker lacks so many bytes.
pub(crate) fn points(asker: &Asker<'_>, missing: Option<u64>) -> Fixed {
    let Some(missing) = missing else { return Fixed::ZERO };
    if missing == 0 {
        return POINTS_MAX;
    }
    let none_at = thousandths(asker);
    fraction(POINTS_MAX, none_at - 1_000 * i128::from(missing), none_at)
}

/// Missing bytes that earn nothing, in thousandths.
fn thousandths(asker: &Asker<'_>) -> i128 {
    let average = asker.avg_1h().missing_mib.unwrap_or(AVERAGE_MIB_UNKNOWN);
    2 * i128::from(average.in_thousandths()) * BYTES_PER_MIB
}

/// Missing bytes that earn nothing, rounded up.
pub(crate) fn none_at(asker: &Asker<'_>) -> i128 {
    thousandths(asker) / 1_000 + 1
}
