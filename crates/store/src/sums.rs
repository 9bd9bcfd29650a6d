//! The sums of the ends of one call: written once for each call, not for each end.

use std::collections::BTreeMap;

use foldhash::HashMap;
use model::{Ending, Fixed, Name, TenantId};

use crate::{End, Ended, Run};

/// The charge of each tenant by one call: the cost, and the jobs that succeeded.
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

/// Runs of one history that one call writes. A call with more has many similar jobs, so the rest
/// would add no information. The history is full again after a few calls.
const RUNS_MAX: usize = 25;

/// The newest runs of each history, oldest first, each with the index of its answer.
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
