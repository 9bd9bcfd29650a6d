//! How many jobs wait for which reason, without a look at each.
//!
//! Jobs that stand in line are counted by line, under the reason of the first. So the cost depends
//! on how many kinds of jobs wait and how many workers could run them, not on how many jobs.

use std::collections::BTreeMap;

use model::{Name, Reason, TenantId, Timestamp};

use super::Audiences;
use crate::table::{NameIx, TenantIx};
use crate::world::World;

/// Jobs that stand in no line yet are looked at one by one, if no more jobs wait than this.
const SCANNED_MAX: usize = 100_000;

/// Jobs of one tenant, type and pool that wait for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiters {
    /// Why they wait.
    pub reason: Reason,
    /// Whose they are.
    pub tenant: TenantId,
    /// Their type; `None` if they have none, or if too many jobs wait to tell.
    pub kind: Option<Name>,
    /// The pool that they ask for. `None`: they ask for none, or too many jobs wait to tell.
    pub pool: Option<Name>,
    /// How many there are.
    pub n_jobs: u64,
}

/// Why, whose, and the type and the pool.
type Key = (Reason, TenantIx, [Option<NameIx>; 2]);

impl World {
    /// How many jobs wait for which reason, by tenant, type and pool.
    ///
    /// All jobs of a line count as its first: they differ in cost and age alone, so one that a
    /// budget does not cover may be counted under the reason of one that it covers.
    pub fn waiting_by_reason(&mut self, now: Timestamp) -> Vec<Waiters> {
        self.advance(now);
        let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
        let mut audiences = Audiences::new();
        let mut in_line: BTreeMap<TenantIx, u64> = BTreeMap::new();
        for ix in self.queue.lines.indices() {
            self.enter_part(self.part_of(self.queue.lines[ix].head.job));
            let line = &self.queue.lines[ix];
            let key = (line.key.class, line.key.tenant);
            let audience = audiences.entry(key).or_insert_with(|| self.audience(key));
            let reason = self.first_reason(line.head.job, audience, None);
            let fit = &self.fleet.catalogue.fit_of(line.key.class).key;
            let fit = [fit.kind, fit.pool];
            let n_jobs = u64::try_from(line.jobs.len()).unwrap_or(u64::MAX);
            *counts.entry((reason, line.key.tenant, fit)).or_default() += n_jobs;
            *in_line.entry(line.key.tenant).or_default() += n_jobs;
        }
        self.enter_part(None);
        self.count_delayed(&in_line, &mut counts, &mut audiences);
        let name = |name: Option<NameIx>| name.map(|name| self.names.name(name).clone());
        let waiters = |((reason, tenant, [kind, pool]), n_jobs): (Key, u64)| Waiters {
            reason,
            tenant: self.tenants[tenant].tenant.id.clone(),
            kind: name(kind),
            pool: name(pool),
            n_jobs,
        };
        counts.into_iter().map(waiters).collect()
    }

    /// Jobs whose moment has not come stand in no line.
    fn count_delayed(
        &self,
        in_line: &BTreeMap<TenantIx, u64>,
        counts: &mut BTreeMap<Key, u64>,
        audiences: &mut Audiences,
    ) {
        let delayed = self.tenants.busy().filter_map(|(tenant, sharer)| {
            let n_in_line = in_line.get(&tenant).copied().unwrap_or(0);
            let n_delayed = u64::from(sharer.n_queued).saturating_sub(n_in_line);
            (n_delayed > 0).then_some((tenant, n_delayed))
        });
        let delayed: Vec<(TenantIx, u64)> = delayed.collect();
        if delayed.is_empty() {
            return;
        }
        if self.queue.jobs.len() > SCANNED_MAX {
            for (tenant, n_jobs) in delayed {
                *counts.entry((Reason::NotBefore, tenant, [None; 2])).or_default() += n_jobs;
            }
            return;
        }
        for (ix, waiting) in self.queue.jobs.iter().filter(|(_, job)| job.line.is_none()) {
            let key = (waiting.class, waiting.tenant);
            let audience = audiences.entry(key).or_insert_with(|| self.audience(key));
            let reason = self.first_reason(ix, audience, None);
            let fit = &self.fleet.catalogue.fit_of(waiting.class).key;
            *counts.entry((reason, waiting.tenant, [fit.kind, fit.pool])).or_default() += 1;
        }
    }
}
