//! Builds stay off workers that are overloaded, or too small for them.

use model::policy::Rule;
use model::{Fixed, Trait};

use crate::rule::{Candidate, Judge, Sheet, Verdict};

const POINTS_BUSY: Fixed = Fixed::whole(-1_000);
const POINTS_SMALL: Fixed = Fixed::whole(-1_000);
const CPU_PCT_BUSY: Fixed = Fixed::whole(90);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::Saturation,
    rewards: "Penalty: CPU ≥ 90 %, free memory ≤ 10 %, or likely too little memory",
    range: "-2000 … 0",
    judge: Judge::Pair { judge, most: |_| Fixed::ZERO },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    if candidate.is(Trait::Light) || candidate.is(Trait::Evaluation) {
        return Verdict::Points(Fixed::ZERO);
    }
    let metrics = &candidate.asker.worker.worker.metrics;
    let is_hot = metrics.cpu_pct.is_some_and(|cpu_pct| cpu_pct >= CPU_PCT_BUSY);
    let is_tight = match (metrics.ram_free_mb, metrics.ram_total_mb) {
        (Some(free), Some(total)) => i128::from(free) * 10 <= i128::from(total),
        (Some(_) | None, None) | (None, Some(_)) => false,
    };
    let history = candidate.job.extra().history.as_deref().filter(|history| history.samples > 0);
    let peak = history.and_then(|history| history.ram_peak_mb);
    let is_small = match (peak, metrics.ram_free_mb) {
        (Some(peak), Some(free)) => i128::from(peak) * 11 > i128::from(free) * 10,
        (Some(_) | None, None) | (None, Some(_)) => false,
    };
    let busy = if is_hot || is_tight { POINTS_BUSY } else { Fixed::ZERO };
    let small = if is_small { POINTS_SMALL } else { Fixed::ZERO };
    Verdict::Points(busy + small)
}
