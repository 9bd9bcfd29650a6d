//! Only what nobody can ask for is forgotten. That it ran to its end, and that what it cost is in
//! the ledger, is held against it as against all others.

use std::collections::BTreeSet;

use super::{Facts, Found};
use crate::Job;

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let with_key: BTreeSet<u64> =
        facts.history.keys.iter().flat_map(|key| key.ids.iter().copied()).collect();
    let waited_for = waited_for(facts);
    for job in facts.jobs.values().filter(|job| job.is_forgotten) {
        let why = if !facts.history.forgetful.contains(&job.kind) {
            "is of a type that is kept"
        } else if !is_plain(job) {
            "was tried more than once"
        } else if job.dedupe.is_some() {
            "has a name"
        } else if with_key.contains(&job.id) {
            "answers a key"
        } else if waited_for.contains(&job.id) {
            "is waited for"
        } else {
            continue;
        };
        found.add("forgotten", format!("job {} {why}, and is forgotten", job.id));
    }
}

fn is_plain(job: &Job) -> bool {
    (job.n_attempts, job.n_failures, job.n_losses, job.n_refusals) == (1, 0, 0, 0)
}

/// Jobs that others wait for, by what clients were told.
fn waited_for(facts: &Facts<'_>) -> BTreeSet<u64> {
    let mut waited_for = BTreeSet::new();
    for said in &facts.history.said {
        let told = |place: &usize| said.ids.get(*place).copied();
        for asked in said.asked.iter().filter(|_| !said.ids.is_empty()) {
            waited_for.extend(&asked.after);
            waited_for.extend(asked.after_indexes.iter().filter_map(told));
        }
    }
    waited_for
}
