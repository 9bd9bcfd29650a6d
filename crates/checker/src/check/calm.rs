//! After the last fault, orphaned attempts are released, and jobs that can start do.

use super::waits::beside_a_free_slot;
use super::{Facts, Found, runs};
use crate::{Attempt, Calm, History};

/// The duration of the recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Attempts that were live after the last fault, without a worker that ran them.
    pub n_orphans: usize,
    /// The time until the last of these attempts was released.
    pub orphan_ms: i64,
    /// The longest wait of a job beside a free slot that fits.
    pub wait_ms: i64,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let Some(calm) = &facts.history.calm else { return };
    for orphan in orphans(facts, calm) {
        let (any_more, at_all) = ((calm.orphan_ms, "any more"), (calm.offer_ms, "at all"));
        let (max_ms, why) = if orphan.was_run { any_more } else { at_all };
        if orphan.length_ms > max_ms {
            let Attempt { job, number, worker, .. } = orphan.attempt;
            let ms = orphan.length_ms;
            let what = format!("attempt {number} of job {job} was under way for {ms} ms, ")
                + &format!("and {worker} did not run it {why}");
            found.add("slow-recovery", what);
        }
    }
    for (job, wait_ms) in beside_a_free_slot(facts, calm) {
        if wait_ms > calm.wait_ms {
            let what = format!("job {job} waited for {wait_ms} ms beside a slot that was free");
            found.add("slow-start", what);
        }
    }
}

/// The duration of the recovery. `None` if the scenario does not measure it.
pub fn recovery(history: &History) -> Option<Recovery> {
    let (facts, calm) = (Facts::of(history), history.calm.as_ref()?);
    let (orphans, waits) = (orphans(&facts, calm), beside_a_free_slot(&facts, calm));
    Some(Recovery {
        n_orphans: orphans.iter().filter(|orphan| orphan.is_left).count(),
        orphan_ms: orphans.iter().map(|orphan| orphan.length_ms).max().unwrap_or(0),
        wait_ms: waits.into_iter().map(|(_, ms)| ms).max().unwrap_or(0),
    })
}

/// A live attempt that no worker runs.
struct Orphan<'a> {
    attempt: &'a Attempt,
    /// The time since the last fault.
    length_ms: i64,
    was_run: bool,
    /// Whether no worker ran it when the store was read.
    is_left: bool,
}

fn orphans<'a>(facts: &Facts<'a>, calm: &Calm) -> Vec<Orphan<'a>> {
    let ran = runs::runs(&facts.history.marks);
    let orphan = |attempt: &'a Attempt| {
        let run = ran.get(&(attempt.job, attempt.number));
        let last_ms = run.map_or(attempt.claimed_ms, |run| run.last_ms);
        let since_ms = last_ms.max(calm.healed_ms);
        let length_ms = attempt.ended_ms.unwrap_or(calm.read_ms) - since_ms;
        let is_left = last_ms <= calm.healed_ms;
        Orphan { attempt, length_ms, was_run: run.is_some(), is_left }
    };
    let orphans = facts.history.attempts.iter().map(orphan);
    orphans.filter(|orphan| orphan.length_ms > 0).collect()
}
