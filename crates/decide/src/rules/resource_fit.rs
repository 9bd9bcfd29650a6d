//! A job goes where its predicted memory fits, and heavy computing to fast cores.

use model::policy::Rule;
use model::{Fixed, History, Metrics};

use crate::rule::{Asker, Candidate, Judge, Sheet, Verdict, fraction};

/// For overshooting free memory once; twice is the most that counts.
const POINTS_OVERSHOOT: Fixed = Fixed::whole(400);
const OVERSHOOT_MAX: i128 = 2;
/// For a core score of 1000; twice is the most that counts.
const POINTS_CPU: Fixed = Fixed::whole(50);
const CPU_SCORE_MAX: i64 = 2_000;
/// CPU time above which a job is heavy, while nobody has measured the average.
const CPU_MS_UNKNOWN: Fixed = Fixed::whole(60_000);

pub(super) const SHEET: Sheet = Sheet {
    rule: Rule::ResourceFit,
    rewards: "Fast cores for heavy jobs. Penalty for less free memory than predicted",
    range: "-3200 … 100",
    judge: Judge::Pair { judge, most },
};

fn judge(candidate: &Candidate<'_>) -> Verdict {
    let history = candidate.job.extra().history.as_deref().filter(|history| history.samples > 0);
    let Some(history) = history else { return Verdict::Points(Fixed::ZERO) };
    let metrics = &candidate.asker.worker.worker.metrics;
    Verdict::Points(
        cpu_points(candidate.asker, history, metrics)
            - ram_points(candidate.asker, history, metrics),
    )
}

fn most(asker: &Asker<'_>) -> Fixed {
    core_points(&asker.worker.worker.metrics)
}

fn ram_points(asker: &Asker<'_>, history: &History, metrics: &Metrics) -> Fixed {
    let (Some(peak), Some(free)) = (history.ram_peak_mb, metrics.ram_free_mb) else {
        return Fixed::ZERO;
    };
    if free == 0 || peak <= free {
        return Fixed::ZERO;
    }
    let (over, free) = (i128::from(peak - free), i128::from(free));
    let most = POINTS_OVERSHOOT.times(Fixed::whole(2));
    let overshoot = fraction(most, over, free * OVERSHOOT_MAX);
    let grow = |rate: Option<Fixed>| Fixed::ONE + rate.unwrap_or(Fixed::ZERO);
    overshoot.times(grow(history.oom_rate)).times(grow(asker.avg_1h().oom_rate))
}

fn cpu_points(asker: &Asker<'_>, history: &History, metrics: &Metrics) -> Fixed {
    let heavy_above = asker.avg_1h().cpu_ms.unwrap_or(CPU_MS_UNKNOWN);
    let is_heavy = history.cpu_ms.is_some_and(|cpu_ms| {
        i128::from(cpu_ms) * 1_000 > i128::from(heavy_above.in_thousandths())
    });
    if is_heavy { core_points(metrics) } else { Fixed::ZERO }
}

fn core_points(metrics: &Metrics) -> Fixed {
    let score = metrics.cpu_score.unwrap_or(Fixed::ZERO).min(Fixed::whole(CPU_SCORE_MAX));
    POINTS_CPU.times(score).scale(1, 1_000)
}
