//! A dependent starts after its dependencies, and a cancelled job does not start.

use super::{Facts, Found};
use crate::{Asked, Op, Outcome, Said};

/// Clients and the store read the same clock, to the millisecond, at different times.
const CLOCKS_MS: i64 = 20;

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    for said in facts.history.said.iter().filter(|said| said.outcome == Outcome::Ok) {
        match said.op {
            Op::Submit => submitted(facts, said, found),
            Op::Cancel => cancelled(facts, said, found),
            Op::Conflict => {}
        }
    }
}

fn submitted(facts: &Facts<'_>, said: &Said, found: &mut Found) {
    for (index, asked) in said.asked.iter().enumerate() {
        let Some(waiter) = said.ids.get(index) else { continue };
        let places = asked.after_indexes.iter().filter_map(|place| said.ids.get(*place));
        for blocker in asked.after.iter().chain(places) {
            waited(facts, (*waiter, *blocker), asked, found);
        }
    }
}

fn waited(facts: &Facts<'_>, (waiter, blocker): (u64, u64), asked: &Asked, found: &mut Found) {
    let (Some(waits), Some(before)) = (facts.jobs.get(&waiter), facts.jobs.get(&blocker)) else {
        return;
    };
    let first = facts.attempts_of(waiter).first();
    let ended_ms = before.finished_ms.unwrap_or(i64::MAX);
    if first.is_some_and(|first| first.claimed_ms < ended_ms) {
        found.add("too-soon", format!("job {waiter} began before job {blocker} was final"));
    }
    let is_over = before.is_final() && before.state != "succeeded" && !asked.run_if_failed;
    if is_over && (first.is_some() || waits.state != "cancelled") {
        let (one, other) = (&before.state, &waits.state);
        let what = format!("job {waiter} is {other}, and job {blocker} before it {one}");
        found.add("ran-without", what);
    }
}

fn cancelled(facts: &Facts<'_>, said: &Said, found: &mut Found) {
    for id in &said.ids {
        let Some(job) = facts.jobs.get(id) else { continue };
        if said.changed && job.state != "cancelled" {
            found.add("not-cancelled", format!("job {id} was called off, and is {}", job.state));
        }
        if !said.changed && !said.note.is_empty() && job.state != said.note {
            let (told, is) = (&said.note, &job.state);
            found.add("not-final-after-all", format!("job {id} was said {told}, and is {is}"));
        }
        let is_later = |at_ms: i64| at_ms > said.at_ms + CLOCKS_MS;
        let again = facts.attempts_of(*id).iter().find(|one| is_later(one.claimed_ms));
        if let Some(again) = again {
            let number = again.number;
            let what = format!("attempt {number} of job {id} began after it was called off");
            found.add("run-after-cancel", what);
        }
    }
}
