//! Jobs that the network limits go to workers with a fast network.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

const POINTS_MAX: Fixed = Fixed::whole(80);
/// The speed that earns all points, while nobody has measured the average.
const REFERENCE_UNKNOWN: Fixed = Fixed::whole(100);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Network,
    rewards: "Network-bound jobs on fast networks. All points at the day's average speed",
    range: "0 … 80",
    judge: Judge::Pair { judge, most },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let counts = candidate.is(Trait::Network);
    Verdict::Points(if counts { most(candidate.asker) } else { Fixed::ZERO })
}

fn most(asker: &Asker<'_>) -> Fixed {
    let Some(speed) = asker.worker.worker.metrics.net_mbps else { return Fixed::ZERO };
    let reference = asker.avg_24h().network_mbps.unwrap_or(REFERENCE_UNKNOWN);
    if reference == Fixed::ZERO {
        return if speed > Fixed::ZERO { POINTS_MAX } else { Fixed::ZERO };
    }
    let (speed, reference) = (speed.in_thousandths(), reference.in_thousandths());
    fraction(POINTS_MAX, i128::from(speed), i128::from(reference))
}
