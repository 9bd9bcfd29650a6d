//! Once nothing is hurt any more, what nobody runs is let go, and what can start does.

use super::waits::beside_a_free_slot;
use super::{Facts, Found, runs};
use crate::{Attempt, Calm, History};

/// How soon all was well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Attempts that were under way when nothing was hurt any more, and that nobody ran.
    pub n_orphans: usize,
    /// How long it took until the last attempt was let go that nobody ran.
    pub orphan_ms: i64,
    /// How long a job waited at most beside a slot that was free for it.
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

/// How soon all was well; `None` if nobody asks.
pub fn recovery(history: &History) -> Option<Recovery> {
    let (facts, calm) = (Facts::of(history), history.calm.as_ref()?);
    let (orphans, waits) = (orphans(&facts, calm), beside_a_free_slot(&facts, calm));
    Some(Recovery {
        n_orphans: orphans.iter().filter(|orphan| orphan.is_left).count(),
        orphan_ms: orphans.iter().map(|orphan| orphan.length_ms).max().unwrap_or(0),
        wait_ms: waits.into_iter().map(|(_, ms)| ms).max().unwrap_or(0),
    })
}

/// An attempt that is under way, and that nobody runs.
struct Orphan<'a> {
    attempt: &'a Attempt,
    /// For so long, since nothing was hurt any more.
    length_ms: i64,
    was_run: bool,
    /// Whether nobody ran it when all was well again.
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
