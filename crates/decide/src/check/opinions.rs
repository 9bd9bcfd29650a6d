//! What rules say about a job, added up again in the plainest way: enough to tell whether a job
//! that is held for its points, or for a veto, deserves it.

use model::policy::Rule;
use model::{Fixed, History, Inputs, Job, TenantId, Trait, Traits, Worker};

use super::ledger::Ledger;
use super::limits;

/// After so many rounds nobody waits for inputs to be known.
const ROUNDS_MAX: u32 = 4;

const BYTES_PER_MIB: i128 = 1 << 20;

/// Rounding apart, a score cannot be below what is found here by more than this.
const SLACK: i128 = 1_000;

/// Whether a rule says "not now" about `job`, wherever it would go.
pub(super) fn is_vetoed(ledger: &Ledger<'_>, job: &Job) -> bool {
    let weight = ledger.policy_of(job).rules.get(&Rule::RescoreWait);
    weight.is_some_and(|weight| *weight != Fixed::ZERO)
        && !job.traits.has(Trait::Evaluation)
        && job.rescore_count < ROUNDS_MAX
        && job.inputs.values().all(|inputs| inputs.missing_bytes.is_none())
}

/// Whether the points of `job` on `worker` may be below zero.
pub(super) fn may_be_below_zero(ledger: &Ledger<'_>, job: &Job, worker: &Worker) -> bool {
    let case = Case { ledger, job, worker };
    let rules = ledger.policy_of(job).rules.iter();
    let score: i128 =
        rules.map(|(rule, weight)| case.points(*rule) * thousandths(*weight) / 1_000).sum();
    score < SLACK
}

/// A job on a worker. All points are in thousandths.
struct Case<'a> {
    ledger: &'a Ledger<'a>,
    job: &'a Job,
    worker: &'a Worker,
}

impl Case<'_> {
    fn points(&self, rule: Rule) -> i128 {
        match rule {
            Rule::MissingPaths => self.missing_paths(),
            Rule::MissingBytes => self.missing_bytes(),
            Rule::Dependents => self.dependents(),
            Rule::Wait => self.wait(),
            Rule::Light => self.light(),
            Rule::ReserveFetch => -self.reserve_fetch(),
            Rule::ResourceFit => self.cpu() - self.memory(),
            Rule::Saturation => -self.saturation(),
            Rule::PreferLocal => self.prefer_local(),
            Rule::OrgShare => -self.org_share(),
            Rule::Network => self.network(),
            Rule::Disk => self.disk(),
            Rule::RescoreWait
            | Rule::Rank
            | Rule::Free
            | Rule::Hint
            | Rule::Priority
            | Rule::Age
            | Rule::Rarity
            | Rule::OnDemand
            | Rule::Length
            | Rule::Specialist
            | Rule::Headroom
            | Rule::Load => 0,
        }
    }

    fn is(&self, fact: Trait) -> bool {
        self.job.traits.has(fact)
    }

    fn inputs(&self) -> Inputs {
        self.job.inputs.get(&self.worker.id).copied().unwrap_or_default()
    }

    fn history(&self) -> Option<&History> {
        self.job.history.as_ref().filter(|history| history.samples > 0)
    }

    fn hour(&self, average: impl Fn(&model::Averages) -> Option<Fixed>, unknown: i64) -> i128 {
        average(&self.ledger.before.cluster.avg_1h).map_or(i128::from(unknown) * 1_000, thousandths)
    }

    fn day(&self, average: impl Fn(&model::Averages) -> Option<Fixed>, unknown: i64) -> i128 {
        let of_day = average(&self.ledger.before.cluster.avg_24h);
        of_day.map_or(i128::from(unknown) * 1_000, thousandths)
    }

    fn missing_paths(&self) -> i128 {
        let none_at = 2 * self.hour(|avg| avg.missing_paths, 20);
        let missing = self.inputs().missing_paths.map(|paths| 1_000 * i128::from(paths));
        missing.map_or(0, |missing| less_of(200, missing, none_at))
    }

    fn missing_bytes(&self) -> i128 {
        let none_at = 2 * BYTES_PER_MIB * self.hour(|avg| avg.missing_mib, 1_024);
        let missing = self.inputs().missing_bytes.map(|bytes| 1_000 * i128::from(bytes));
        missing.map_or(0, |missing| less_of(500, missing, none_at))
    }

    fn dependents(&self) -> i128 {
        let all_at = 2 * self.hour(|avg| avg.dependencies, 10);
        let dependents = self.job.dependents.filter(|_| !self.is(Trait::Evaluation));
        dependents.map_or(0, |dependents| more_of(50, 1_000 * i128::from(dependents), all_at))
    }

    fn wait(&self) -> i128 {
        let waited = i128::from(self.ledger.before.now.since(self.job.ready).0);
        more_of(4_000, 60 * waited, 4_000 * self.hour(|avg| avg.wait_s, 60))
    }

    fn light(&self) -> i128 {
        let has_no_arch = !self.worker.has.keys().any(|key| key.to_string() == "arch");
        match (self.is(Trait::Evaluation), self.is(Trait::Light), has_no_arch) {
            (false, false, _) => 50_000,
            (false, true, true) => 100_000,
            (false, true, false) | (true, ..) => 0,
        }
    }

    fn reserve_fetch(&self) -> i128 {
        if !self.is(Trait::Cached) || !self.worker.has("feature", "fetch") {
            return 0;
        }
        let serving = self.ledger.before.workers.iter().filter(|worker| worker.is_serving());
        let slots: i128 = serving.map(|worker| i128::from(worker.slots)).sum();
        if slots == 0 { 300_000 } else { more_of(300, slots - self.slots_free(), slots) }
    }

    fn slots_free(&self) -> i128 {
        let workers = self.ledger.before.workers.iter().filter(|worker| worker.is_serving());
        workers.map(|worker| i128::from(limits::slots_free(self.ledger, worker))).sum()
    }

    fn memory(&self) -> i128 {
        let peak = self.history().and_then(|history| history.ram_peak_mb);
        let (Some(peak), Some(free)) = (peak, self.worker.metrics.ram_free_mb) else { return 0 };
        if free == 0 || peak <= free {
            return 0;
        }
        let rate = |rate: Option<Fixed>| 1_000 + rate.map_or(0, thousandths);
        let own = rate(self.history().and_then(|history| history.oom_rate));
        let fleet = rate(self.ledger.before.cluster.avg_1h.oom_rate);
        more_of(800, i128::from(peak - free), 2 * i128::from(free)) * own / 1_000 * fleet / 1_000
    }

    fn cpu(&self) -> i128 {
        let used = self.history().and_then(|history| history.cpu_ms);
        let heavy_above = self.hour(|avg| avg.cpu_ms, 60_000);
        let is_heavy = used.is_some_and(|used| 1_000 * i128::from(used) > heavy_above);
        let score = self.worker.metrics.cpu_score.map_or(0, thousandths);
        if is_heavy { more_of(100, score, 2_000_000) } else { 0 }
    }

    fn saturation(&self) -> i128 {
        if self.is(Trait::Light) || self.is(Trait::Evaluation) {
            return 0;
        }
        let metrics = &self.worker.metrics;
        let is_hot = metrics.cpu_pct.is_some_and(|cpu| cpu >= Fixed::whole(90));
        let memory = metrics.ram_free_mb.zip(metrics.ram_total_mb);
        let is_tight = memory.is_some_and(|(free, total)| u128::from(free) * 10 <= total.into());
        let peak = self.history().and_then(|history| history.ram_peak_mb);
        let need = peak.zip(metrics.ram_free_mb);
        let is_small =
            need.is_some_and(|(peak, free)| u128::from(peak) * 11 > 10 * u128::from(free));
        1_000_000 * (i128::from(is_hot || is_tight) + i128::from(is_small))
    }

    fn prefer_local(&self) -> i128 {
        let missing = self.inputs().missing_paths.filter(|_| self.is(Trait::PreferLocal));
        let none_at = 2 * self.hour(|avg| avg.missing_paths, 0);
        missing.map_or(0, |missing| match i128::from(missing) {
            paths if none_at > 0 => less_of(150, 1_000 * paths, none_at),
            paths => (150_000 - 20_000 * paths).max(0),
        })
    }

    fn org_share(&self) -> i128 {
        if self.slots_free() > 1 {
            return 0;
        }
        let average = self.hour(|avg| avg.duration_s, 60);
        let length = |estimate: Option<model::Millis>, traits: Traits| {
            let length = estimate.map_or(average, |estimate| i128::from(estimate.0));
            match (traits.has(Trait::Evaluation), traits.has(Trait::PreferLocal)) {
                (true, _) => 0,
                (false, true) => length,
                (false, false) => 2 * length,
            }
        };
        let running = self.ledger.before.attempts.iter();
        let running = running.map(|run| (&run.tenant, length(run.estimate, run.traits)));
        let placed = self.ledger.placements.iter().map(|placed| placed.job);
        let placed = placed.map(|job| (&job.tenant, length(job.estimate, job.traits)));
        let all: Vec<(&TenantId, i128)> = running.chain(placed).collect();
        let own = all.iter().filter(|(tenant, _)| **tenant == self.job.tenant);
        let (own, all) = (own.map(|it| it.1).sum(), all.iter().map(|it| it.1).sum::<i128>());
        if all == 0 { 0 } else { more_of(500, own, all) }
    }

    fn network(&self) -> i128 {
        let speed = self.worker.metrics.net_mbps.filter(|_| self.is(Trait::Network));
        let reference = self.day(|avg| avg.network_mbps, 100);
        speed.map_or(0, |speed| more_of(80, thousandths(speed), reference))
    }

    fn disk(&self) -> i128 {
        let used = self.history().and_then(|history| history.disk_bytes);
        let heavy_from = self.day(|avg| avg.disk_bytes, 100 << 20);
        let is_heavy = used.is_some_and(|used| 1_000 * i128::from(used) >= heavy_from);
        let speed = self.worker.metrics.disk_mbps.map_or(0, thousandths);
        if is_heavy { more_of(60, speed, 500_000) } else { 0 }
    }
}

fn thousandths(number: Fixed) -> i128 {
    number.in_thousandths().into()
}

/// Points that rise with `part` until `whole`, where they are `most`. Where `whole` is nothing, any
/// part is enough.
fn more_of(most: i128, part: i128, whole: i128) -> i128 {
    match (whole > 0, part > 0) {
        (true, _) => 1_000 * most * part.clamp(0, whole) / whole,
        (false, true) => 1_000 * most,
        (false, false) => 0,
    }
}

/// Points that fall with `part` from `most` to nothing at `whole`. No part earns them all.
fn less_of(most: i128, part: i128, whole: i128) -> i128 {
    match (part > 0, whole > 0) {
        (false, _) => 1_000 * most,
        (true, true) => 1_000 * most * (whole - part).clamp(0, whole) / whole,
        (true, false) => 0,
    }
}
