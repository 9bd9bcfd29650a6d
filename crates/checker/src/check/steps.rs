//! Each job makes only allowed transitions, and each claim has a unique token.

use std::collections::BTreeMap;

use super::{Facts, Found};
use crate::Step;

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let mut last: BTreeMap<u64, &Step> = BTreeMap::new();
    for step in &facts.history.steps {
        let before = last.insert(step.job, step);
        one(before, step, found);
    }
}

fn one(before: Option<&Step>, step: &Step, found: &mut Found) {
    let job = step.job;
    let was = before.map_or(Some("new"), |before| before.state.as_deref()).unwrap_or("gone");
    let is = step.state.as_deref().unwrap_or("gone");
    if !may_follow(was, is) {
        found.add("wrong-step", format!("job {job} was {was}, and then {is}"));
        return;
    }
    let (fence, attempt) = before.map_or((0, 0), |before| (before.fence, before.attempt));
    let n_new = u32::from(is == "claimed");
    if step.attempt != attempt + n_new {
        let (one, other) = (attempt, step.attempt);
        found.add("token-order", format!("job {job} is {is} as attempt {other} after {one}"));
    }
    // A deleted row has its last state.
    if is != "gone" && step.fence <= fence {
        let (one, other) = (fence, step.fence);
        found.add("fence-order", format!("job {job} is {is} with fence {other} after {one}"));
    }
    let ready_ms = before.and_then(|before| before.ready_ms);
    if ready_ms.is_some() && step.ready_ms != ready_ms {
        let (one, other) = (ready_ms, step.ready_ms);
        found.add("age-reset", format!("job {job} was ready at {one:?}, and then at {other:?}"));
    }
    let worker = before.and_then(|before| before.worker.as_deref());
    if is == "running" && step.worker.as_deref() != worker {
        let (one, other) = (worker, step.worker.as_deref());
        found
            .add("wrong-owner", format!("job {job} was claimed for {one:?} and runs on {other:?}"));
    }
}

/// A deleted job is final, and stays so.
fn may_follow(was: &str, is: &str) -> bool {
    match was {
        "new" => matches!(is, "blocked" | "queued"),
        "blocked" => matches!(is, "queued" | "gone"),
        "queued" => matches!(is, "claimed" | "gone"),
        "claimed" => matches!(is, "running" | "queued" | "gone"),
        "running" => matches!(is, "queued" | "gone"),
        _ => false,
    }
}
