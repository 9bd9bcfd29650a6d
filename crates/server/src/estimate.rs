//! When a job that waits will start, as far as the past can tell.

use model::{Millis, Name, Reason, Spec, Timestamp, Worker};

/// A guess, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) starts_in: Millis,
    pub(crate) basis: String,
}

/// What is known of a job that waits.
pub(crate) struct Wait<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) reason: Reason,
    pub(crate) ahead: u64,
    pub(crate) backoff_until: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// What is known of those that run jobs.
pub(crate) struct Pace {
    /// Slots of the workers that could run it.
    pub(crate) slots: u64,
    /// How long attempts took lately.
    pub(crate) mean: Option<Millis>,
}

/// `None` if it depends on what the past says nothing about: a setting, a budget, a new worker.
pub(crate) fn estimate(wait: &Wait<'_>, pace: &Pace) -> Option<Estimate> {
    match wait.reason {
        Reason::NotBefore => {
            let at = wait.spec.not_before.max(wait.backoff_until)?;
            let starts_in = Millis(at.since(wait.now).0.max(0));
            Some(Estimate { starts_in, basis: "if there is room then".to_owned() })
        }
        Reason::WorkersFull | Reason::Outranked | Reason::Preempting => in_line(wait.ahead, pace),
        Reason::NotReady
        | Reason::NoWorkerEver
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
fn in_line(ahead: u64, pace: &Pace) -> Option<Estimate> {
    let mean = pace.mean?;
    let slots = i64::try_from(pace.slots).ok().filter(|slots| *slots > 0)?;
    let turns = i64::try_from(ahead).ok()?.saturating_add(1);
    let starts_in = Millis(mean.0.saturating_mul(turns) / slots);
    let jobs = if ahead == 1 { "1 job".to_owned() } else { format!("{ahead} jobs") };
    let slots = if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") };
    let length = match mean.0 {
        short @ ..1_000 => format!("{short} ms"),
        long => format!("{}.{} s", long / 1_000, long % 1_000 / 100),
    };
    let basis = format!("{jobs} before it, {slots} that fit, {length} a job on average");
    Some(Estimate { starts_in, basis })
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

fn fits(worker: &Worker, spec: &Spec, pool: Option<&Name>) -> bool {
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
    use model::{TenantId, WorkerId};

    fn spec() -> Spec {
        Spec::new(TenantId::new("a"), Name::new("pdf"))
    }

    fn wait(spec: &Spec, reason: Reason) -> Wait<'_> {
        Wait { spec, reason, ahead: 5, backoff_until: None, now: Timestamp(1_000) }
    }

    #[test]
    fn a_job_starts_when_those_before_it_had_their_turns() {
        let pace = Pace { slots: 4, mean: Some(Millis(10_000)) };
        let estimate = estimate(&wait(&spec(), Reason::WorkersFull), &pace).unwrap();
        assert_eq!(estimate.starts_in, Millis(15_000));
        assert_eq!(estimate.basis, "5 jobs before it, 4 slots that fit, 10.0 s a job on average");
    }

    #[test]
    fn nothing_is_said_of_what_the_past_does_not_know() {
        let pace = Pace { slots: 4, mean: None };
        assert_eq!(estimate(&wait(&spec(), Reason::WorkersFull), &pace), None);
        let pace = Pace { slots: 0, mean: Some(Millis(1)) };
        assert_eq!(estimate(&wait(&spec(), Reason::Outranked), &pace), None);
        let pace = Pace { slots: 4, mean: Some(Millis(1)) };
        assert_eq!(estimate(&wait(&spec(), Reason::TenantPaused), &pace), None);
        let later = Spec { not_before: Some(Timestamp(3_000)), ..spec() };
        let estimate = estimate(&wait(&later, Reason::NotBefore), &pace).unwrap();
        assert_eq!(estimate.starts_in, Millis(2_000));
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
