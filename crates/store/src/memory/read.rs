//! Queries.

use std::collections::BTreeMap;

use model::{Fixed, JobId, Name, Record, State, TenantId, Timestamp};

use super::World;
use crate::{Filter, LogChunk, LogPage, Minute, Past, Run, Tally, Usage, minute, number};

impl World {
    pub(super) fn look(&self, after: Option<&JobId>, max: usize) -> Vec<Record> {
        let after = number::after(after);
        let numbers = self.unfinished.iter().filter(|number| **number > after);
        numbers.take(max).map(|number| self.jobs[number].clone()).collect()
    }

    pub(super) fn filtered(&self, filter: &Filter) -> Vec<Record> {
        let before = number::before(filter.before.as_ref());
        let newest_first = self.jobs.range(..before).rev().map(|(_, record)| record);
        newest_first.filter(|record| passes(record, filter)).take(filter.max).cloned().collect()
    }

    pub(super) fn tally(&self) -> Vec<Tally> {
        let mut counts: BTreeMap<(&Name, State), u64> = BTreeMap::new();
        for record in self.unfinished.iter().map(|number| &self.jobs[number]) {
            *counts.entry((&record.spec.kind, record.state)).or_default() += 1;
        }
        let tally = |((kind, state), n_jobs): ((&Name, State), u64)| Tally {
            kind: kind.clone(),
            state,
            n_jobs,
        };
        counts.into_iter().map(tally).collect()
    }

    pub(super) fn minutes(&self, from: i64, before: i64) -> Vec<Minute> {
        let minutes = self.minutes.range(from..before.max(from));
        let counted = |(at, document): (&i64, &String)| Minute {
            at: minute::begin(*at),
            scheduler: 0,
            document: document.clone(),
        };
        minutes.map(counted).collect()
    }

    pub(super) fn attempts(&self, id: &JobId) -> Vec<Past> {
        let number = number::of(id).unwrap_or(0);
        let pasts = self.pasts.range((number, 0)..=(number, u32::MAX));
        pasts.map(|(_, past)| past.clone()).collect()
    }

    pub(super) fn logs(&self, page: &LogPage) -> Vec<LogChunk> {
        let number = number::of(&page.job).unwrap_or(0);
        let pieces = self.logs.range((number, 0, 0)..=(number, u32::MAX, u64::MAX));
        let is_wanted = |piece: &&LogChunk| {
            page.attempt.is_none_or(|attempt| attempt == piece.attempt)
                && page.after.is_none_or(|after| (piece.attempt, piece.offset) > after)
        };
        pieces.map(|(_, piece)| piece).filter(is_wanted).take(page.max).cloned().collect()
    }

    pub(super) fn usage(&self, since: Timestamp) -> Vec<Usage> {
        let mut sums: BTreeMap<&TenantId, (Fixed, u64)> = BTreeMap::new();
        for ((minute, tenant), (cost, completed)) in &self.usage {
            let is_used = (*cost, *completed) != (Fixed::ZERO, 0);
            if *minute >= minute::of(since) && is_used {
                let sum = sums.entry(tenant).or_default();
                sum.0 += *cost;
                sum.1 += completed;
            }
        }
        let usage = |(tenant, (cost, completed)): (&TenantId, _)| Usage {
            tenant: tenant.clone(),
            cost,
            completed,
        };
        sums.into_iter().map(usage).collect()
    }

    pub(super) fn runs(&self, since: Timestamp, max: usize) -> Vec<Run> {
        let newest_first = self.runs.iter().rev().take_while(|run| run.at >= since);
        newest_first.take(max).cloned().collect()
    }
}

fn passes(record: &Record, filter: &Filter) -> bool {
    let spec = &record.spec;
    let worker = record.current.as_ref().map(|current| &current.worker);
    let on = |wanted| worker == Some(wanted) || record.last_worker.as_ref() == Some(wanted);
    filter.tenant.as_ref().is_none_or(|tenant| spec.tenant == *tenant)
        && (filter.states.is_empty() || filter.states.contains(&record.state))
        && filter.kind.as_ref().is_none_or(|kind| spec.kind == *kind)
        && filter.labels.iter().all(|(key, label)| spec.labels.get(key) == Some(label))
        && filter.group.as_ref().is_none_or(|group| spec.group.as_ref() == Some(group))
        && filter.parent.as_ref().is_none_or(|parent| spec.parent.as_ref() == Some(parent))
        && filter.worker.as_ref().is_none_or(on)
        && filter.cause.is_none_or(|cause| record.cause == Some(cause))
}
