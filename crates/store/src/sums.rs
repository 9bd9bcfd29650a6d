//! What the ends of one call add up to: written once a call, not once an end.

use std::collections::BTreeMap;

use foldhash::HashMap;
use model::{Ending, Fixed, Name, TenantId};

use crate::{End, Ended, Run};

/// What each tenant is charged by one call: the cost, and the jobs that succeeded.
pub(crate) type Sums = BTreeMap<TenantId, (Fixed, i64)>;

pub(crate) fn charge(sums: &mut Sums, end: &End, answer: &Ended) {
    let Ended::Accepted { record, charged, .. } = answer else { return };
    let has_succeeded = end.ending == Ending::Succeeded;
    if *charged != Fixed::ZERO || has_succeeded {
        let sum = sums.entry(record.spec.tenant.clone()).or_insert((Fixed::ZERO, 0));
        sum.0 += *charged;
        sum.1 += i64::from(has_succeeded);
    }
}

/// Runs of one history that one call writes down. One that brings more is of so many jobs that the
/// rest say nothing new, and its history is full again after a few of them.
const RUNS_MAX: usize = 25;

/// The runs that are worth writing down, oldest first, each with the place of its answer: of each
/// history the newest.
pub(crate) fn newest(answers: &[Ended], runs_max: usize) -> Vec<(usize, &Run)> {
    let mut n_newer: HashMap<(&TenantId, &Name, &str), usize> = HashMap::default();
    let mut runs: Vec<(usize, &Run)> = Vec::new();
    for (at, answer) in answers.iter().enumerate().rev() {
        let Ended::Accepted { run: Some(run), .. } = answer else { continue };
        let n = n_newer.entry((&run.tenant, &run.kind, &run.history_key)).or_default();
        *n += 1;
        if *n <= runs_max.min(RUNS_MAX) {
            runs.push((at, run));
        }
    }
    runs.reverse();
    runs
}
