//! When a job that waits will start, as far as the past can tell.

use decide::{Ahead, ShareStatus};
use model::{Millis, Name, Reason, Spec, Timestamp, Worker};

/// A guess, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) starts_in: Millis,
    /// It starts this soon at the earliest, as far as the past can tell.
    pub(crate) min: Millis,
    /// And this late at the latest; `None` if nothing is known of that.
    pub(crate) max: Option<Millis>,
    pub(crate) basis: String,
}

/// What is known of a job that waits.
pub(crate) struct Wait<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) reason: Reason,
    /// Jobs that may go before it; `None` if it stands in no line.
    pub(crate) ahead: Option<Ahead>,
    /// How its tenant stands to its share, if the policy knows shares.
    pub(crate) share: Option<ShareStatus>,
    pub(crate) backoff_until: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// What is known of those that run jobs.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Slots of the workers that could run it.
    pub(crate) slots: u64,
    /// How long attempts took lately.
    pub(crate) mean: Option<Millis>,
    /// What a tenth, and nine tenths, of the last ones did not exceed.
    pub(crate) spread: Option<(Millis, Millis)>,
}

/// `None` if it depends on what the past says nothing about: a setting, a budget, a new worker.
pub(crate) fn estimate(wait: &Wait<'_>, pace: &Pace) -> Option<Estimate> {
    match wait.reason {
        Reason::NotBefore => {
            let at = wait.spec.not_before.max(wait.backoff_until)?;
            let starts_in = Millis(at.since(wait.now).0.max(0));
            let basis = "if there is room then".to_owned();
            Some(Estimate { starts_in, min: starts_in, max: None, basis })
        }
        Reason::WorkersFull | Reason::Outranked | Reason::Preempting => in_line(wait, pace),
        Reason::OnHold
        | Reason::NoWorkerEver
        | Reason::NoResourceEver
        | Reason::PoolPaused
        | Reason::NotReady
        | Reason::Claiming
        | Reason::NoWorkerNow
        | Reason::WorkerUnhealthy
        | Reason::TenantPaused
        | Reason::TenantAtMax
        | Reason::Guarded
        | Reason::Reserved
        | Reason::TenantAtJobsMax
        | Reason::TypeAtMax
        | Reason::BudgetSpent
        | Reason::BudgetSpentGlobal
        | Reason::ResourceHeld
        | Reason::Vetoed
        | Reason::BelowZero => None,
    }
}

/// Each job before it takes its turn on one of the slots, and so does it.
fn in_line(wait: &Wait<'_>, pace: &Pace) -> Option<Estimate> {
    let mean = pace.mean?;
    let slots = i128::from(pace.slots);
    if slots == 0 {
        return None;
    }
    let n_before = wait.ahead.map_or(0, |ahead| ahead.n_jobs);
    let after = |n_jobs: usize, length: Millis| turns(n_jobs) * i128::from(length.0) / slots;
    // With a share, what goes before it depends on how its tenant stands to that.
    let share = wait.share.filter(|share| share.competes);
    let expected = match (wait.ahead, share) {
        (Some(ahead), Some(share)) => by_share(ahead, &share, mean, slots),
        (Some(_) | None, _) => after(n_before + 1, mean),
    };
    let latest = |(_, long): (Millis, Millis)| {
        // All that runs may have started just now.
        let later = expected * i128::from(long.0) / i128::from(mean.0.max(1));
        narrow(later.max(expected) + i128::from(long.0))
    };
    let earliest = |(short, _): (Millis, Millis)| {
        let n_own = wait.ahead.map_or(0, |ahead| ahead.n_own);
        narrow((turns(n_own) * i128::from(short.0) / slots).min(expected))
    };
    Some(Estimate {
        starts_in: narrow(expected),
        min: pace.spread.map_or(Millis::ZERO, earliest),
        max: pace.spread.map(latest),
        basis: basis(n_before, pace, mean, share.as_ref()),
    })
}

/// While the tenant is behind its share, what frees is its own; while it is ahead, some of its own
/// has to end first; then its jobs start at the pace of its share. All that could go before it is
/// the most that does: no slot is idle.
fn by_share(ahead: Ahead, share: &ShareStatus, mean: Millis, slots: i128) -> i128 {
    let (mean, turn) = (i128::from(mean.0), turns(ahead.n_own + 1));
    // In thousandths of slots.
    let due = i128::from(share.due.in_thousandths()).clamp(1, slots * 1_000);
    let used = i128::from(share.slots) * 1_000;
    let owed = ((due - used).max(0) + 999) / 1_000;
    let at_once = turn.min(owed) * mean / slots;
    let above = (used - due).max(0) * mean / used.max(1_000);
    let at_pace = (turn - owed).max(0) * mean * 1_000 / due;
    let of_all = turns(ahead.n_own + ahead.n_others + 1) * mean / slots;
    (at_once + above + at_pace).min(of_all)
}

fn basis(n_before: usize, pace: &Pace, mean: Millis, share: Option<&ShareStatus>) -> String {
    let jobs = if n_before == 1 { "1 job".to_owned() } else { format!("{n_before} jobs") };
    let slots = pace.slots;
    let slots = if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") };
    let share = share.map_or_else(String::new, |share| format!(", {} due", share.due));
    let length = match mean.0 {
        short @ ..1_000 => format!("{short} ms"),
        long => format!("{}.{} s", long / 1_000, long % 1_000 / 100),
    };
    format!("{jobs} before it, {slots} that fit{share}, {length} a job on average")
}

fn turns(n_jobs: usize) -> i128 {
    i128::try_from(n_jobs).unwrap_or(i128::MAX)
}

fn narrow(ms: i128) -> Millis {
    Millis(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Slots of the workers that take work and could run such a job, in its pool if it has one.
pub(crate) fn slots_that_fit<'a>(
    workers: impl Iterator<Item = &'a Worker>,
    spec: &Spec,
    pool: Option<&Name>,
) -> u64 {
    let fitting = workers.filter(|worker| worker.is_serving() && fits(worker, spec, pool));
    fitting.map(|worker| u64::from(worker.slots)).sum()
}

pub(crate) fn fits(worker: &Worker, spec: &Spec, pool: Option<&Name>) -> bool {
    let has = |key: &Name, values: &[Name]| {
        worker.has.get(key).is_some_and(|own| values.iter().any(|value| own.contains(value)))
    };
    pool.is_none_or(|pool| worker.pool == *pool)
        && (worker.types.is_empty() || worker.types.contains(&spec.kind))
        && worker.slots >= spec.slots
        && spec.needs.iter().all(|(key, values)| has(key, values))
        && spec
            .amounts
            .iter()
            .all(|(name, amount)| worker.amounts.get(name).is_some_and(|own| own >= amount))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Fixed, TenantId, WorkerId};

    fn spec() -> Spec {
        Spec::new(TenantId::new("a"), Name::new("pdf"))
    }

    fn ahead(n_own: usize, n_others: usize) -> Ahead {
        Ahead { n_jobs: n_own + n_others, n_own, n_others }
    }

    fn wait(spec: &Spec, reason: Reason) -> Wait<'_> {
        let now = Timestamp(1_000);
        Wait { spec, reason, ahead: Some(ahead(5, 0)), share: None, backoff_until: None, now }
    }

    fn pace(slots: u64, mean: Option<Millis>) -> Pace {
        Pace { slots, mean, spread: None }
    }

    #[test]
    fn a_job_starts_when_those_before_it_had_their_turns() {
        let pace = pace(4, Some(Millis(10_000)));
        let estimate = estimate(&wait(&spec(), Reason::WorkersFull), &pace).unwrap();
        assert_eq!((estimate.starts_in, estimate.max), (Millis(15_000), None));
        assert_eq!(estimate.basis, "5 jobs before it, 4 slots that fit, 10.0 s a job on average");
    }

    #[test]
    fn lengths_that_are_far_apart_make_a_wide_range() {
        let spread = Some((Millis(4_000), Millis(20_000)));
        let pace = Pace { spread, ..pace(4, Some(Millis(10_000))) };
        let estimate = estimate(&wait(&spec(), Reason::WorkersFull), &pace).unwrap();
        assert_eq!((estimate.min, estimate.max), (Millis(5_000), Some(Millis(50_000))));
        assert!(estimate.min <= estimate.starts_in);
    }

    #[test]
    fn a_tenant_that_is_behind_its_share_starts_at_once() {
        let pace = pace(8, Some(Millis(8_000)));
        let share = |slots| ShareStatus {
            slots,
            slots_shared: 8,
            due: Fixed::whole(6),
            behind: Millis::ZERO,
            competes: true,
        };
        let starts_in = |slots, ahead| {
            let spec = spec();
            let wait = Wait {
                share: Some(share(slots)),
                ahead: Some(ahead),
                ..wait(&spec, Reason::WorkersFull)
            };
            estimate(&wait, &pace).unwrap().starts_in
        };
        assert_eq!(
            starts_in(0, ahead(0, 400)),
            Millis(1_000),
            "the first slot that frees is its own"
        );
        assert_eq!(starts_in(0, ahead(5, 400)), Millis(6_000));
        assert_eq!(starts_in(6, ahead(5, 400)), Millis(8_000), "then at the pace of its share");
        assert_eq!(starts_in(8, ahead(0, 400)), Millis(3_333), "what it has too much ends first");
        assert_eq!(starts_in(6, ahead(5, 1)), Millis(7_000), "no more goes before it than waits");
    }

    #[test]
    fn nothing_is_said_of_what_the_past_does_not_know() {
        assert_eq!(estimate(&wait(&spec(), Reason::WorkersFull), &pace(4, None)), None);
        let none = pace(0, Some(Millis(1)));
        assert_eq!(estimate(&wait(&spec(), Reason::Outranked), &none), None);
        let pace = pace(4, Some(Millis(1)));
        assert_eq!(estimate(&wait(&spec(), Reason::TenantPaused), &pace), None);
        let later = Spec { not_before: Some(Timestamp(3_000)), ..spec() };
        let estimate = estimate(&wait(&later, Reason::NotBefore), &pace).unwrap();
        assert_eq!((estimate.starts_in, estimate.min), (Millis(2_000), Millis(2_000)));
    }

    #[test]
    fn only_workers_that_could_run_it_count() {
        let worker = Worker { slots: 2, ..Worker::new(WorkerId::new("w")) };
        let other = Worker { types: vec![Name::new("train")], ..worker.clone() };
        let full = Worker { draining: true, ..worker.clone() };
        let workers = [worker, other, full];
        assert_eq!(slots_that_fit(workers.iter(), &spec(), None), 2);
        let wide = Spec { slots: 3, ..spec() };
        assert_eq!(slots_that_fit(workers.iter(), &wide, None), 0);
        assert_eq!(slots_that_fit(workers.iter(), &spec(), Some(&Name::new("gpu"))), 0);
    }
}
