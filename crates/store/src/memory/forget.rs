//! Deletes data after its retention.

use std::collections::BTreeMap;

use model::Timestamp;

use super::World;
use crate::{Old, minute};

impl World {
    pub(super) fn forget(&mut self, old: Old) -> usize {
        let Old { before, charged_before, counted_before, max } = old;
        let finished = |(number, record): (&i64, &model::Record)| {
            record.finished.filter(|finished| *finished < before).map(|at| (at, *number))
        };
        let mut old: Vec<(Timestamp, i64)> = self.jobs.iter().filter_map(finished).collect();
        old.sort_unstable();
        old.truncate(max);
        for (_, number) in &old {
            self.jobs.remove(number);
            self.pasts.retain(|(job, _), _| job != number);
            self.logs.retain(|(job, _, _), _| job != number);
            self.keys.retain(|_, (_, jobs)| !jobs.contains(number));
        }
        let keyed = self.keys.values().flat_map(|(_, jobs)| jobs.iter().copied());
        self.keyed = keyed.collect();
        let minute = minute::of(charged_before);
        self.usage.retain(|(at, _), _| *at >= minute);
        self.minutes = self.minutes.split_off(&minute::of(counted_before));
        self.runs.retain(|run| run.at >= before);
        self.notices.retain(|_, (_, notice)| notice.finished >= before);
        self.trim();
        self.forget_notes(before);
        self.forget_workers(before);
        old.len()
    }

    fn trim(&mut self) {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        let runs_max = self.options.runs_max;
        // Newest first.
        self.runs.reverse();
        self.runs.retain(|run| {
            let key = (run.tenant.clone(), run.kind.clone(), run.history_key.clone());
            let count = counts.entry(key).or_default();
            *count += 1;
            *count <= runs_max
        });
        self.runs.reverse();
    }

    /// If a deleted worker returns, its generation is still higher than any before.
    fn forget_workers(&mut self, before: Timestamp) {
        let busy = self.busy();
        let mut generations = self.generations;
        self.sessions.retain(|worker, lease| {
            let is_old = lease.until < before && !busy.contains(worker);
            if is_old {
                generations = generations.max(lease.generation);
            }
            !is_old
        });
        self.generations = generations;
    }
}
