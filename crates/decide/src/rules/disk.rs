//! Jobs that read and write much go to workers with a fast disk.

use model::Fixed;
use model::policy::Rule;

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(60);
/// MB/s that earn all points.
const REFERENCE: i128 = 500;
/// Bytes above which a job counts, while nobody has measured the average: 100 MiB.
const DISK_BYTES_UNKNOWN: Fixed = Fixed::whole(100 << 20);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Disk,
    rewards: "Disk-heavy jobs on fast disks. All points at 500 MB/s",
    range: "0 … 60",
    judge: Judge::Pair { judge, most },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let history = candidate.job.extra().history.as_deref().filter(|history| history.samples > 0);
    let heavy_from = candidate.asker.avg_24h().disk_bytes.unwrap_or(DISK_BYTES_UNKNOWN);
    let is_heavy = history
        .and_then(|history| history.disk_bytes)
        .is_some_and(|bytes| i128::from(bytes) * 1_000 >= i128::from(heavy_from.in_thousandths()));
    Verdict::Points(if is_heavy { most(candidate.asker) } else { Fixed::ZERO })
}

fn most(asker: &Asker<'_>) -> Fixed {
    let speed = asker.worker.worker.metrics.disk_mbps.unwrap_or(Fixed::ZERO);
    fraction(POINTS_MAX, i128::from(speed.in_thousandths()), REFERENCE * 1_000)
}
