//! Who waits for what: the jobs of each tenant that may have their turn, by where they stand, and
//! the work of all that stand in line.

use std::collections::{BTreeMap, BTreeSet};

use model::Millis;

use crate::table::{BerthIx, Ix, TenantIx};

#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd {
    by_berth: BTreeMap<(TenantIx, BerthIx), usize>,
    work: BTreeMap<TenantIx, Work>,
    /// Tenants whose jobs stand in other berths than before, or under other limits.
    moved: BTreeSet<TenantIx>,
}

/// Work that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Slot-milliseconds of jobs of known length.
    known: i128,
    /// Slots of jobs of unknown length.
    unknown: i128,
    n_jobs: u64,
}

/// A job's length counts up to this, about eleven days.
const LENGTH_MAX: i64 = 1_000_000_000;

impl Work {
    /// All of it in slot-milliseconds, if jobs of unknown length run for so long.
    pub(crate) fn total(self, unknown: Millis) -> i64 {
        let all = self.known + self.unknown * i128::from(unknown.0);
        i64::try_from(all).unwrap_or(i64::MAX).max(i64::from(self.n_jobs > 0))
    }
}

impl Crowd {
    pub(crate) fn add(&mut self, key: (TenantIx, BerthIx), n_jobs: usize) {
        if n_jobs > 0 {
            let count = self.by_berth.entry(key).or_default();
            if *count == 0 {
                self.moved.insert(key.0);
            }
            *count += n_jobs;
        }
    }

    pub(crate) fn remove(&mut self, key: (TenantIx, BerthIx), n_jobs: usize) {
        let Some(count) = self.by_berth.get_mut(&key) else { return };
        *count -= n_jobs;
        if *count == 0 {
            self.by_berth.remove(&key);
            self.moved.insert(key.0);
        }
    }

    pub(crate) fn add_work(&mut self, tenant: TenantIx, slots: u32, length: Option<Millis>) {
        let work = self.work.entry(tenant).or_default();
        work.n_jobs += 1;
        let slots = i128::from(slots);
        match length {
            Some(Millis(length)) => work.known += slots * i128::from(length.min(LENGTH_MAX)),
            None => work.unknown += slots,
        }
    }

    pub(crate) fn remove_work(&mut self, tenant: TenantIx, slots: u32, length: Option<Millis>) {
        let Some(work) = self.work.get_mut(&tenant) else { return };
        work.n_jobs -= 1;
        let slots = i128::from(slots);
        match length {
            Some(Millis(length)) => work.known -= slots * i128::from(length.min(LENGTH_MAX)),
            None => work.unknown -= slots,
        }
        if work.n_jobs == 0 {
            self.work.remove(&tenant);
        }
    }

    /// Tenants with jobs in line, and their work.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = (TenantIx, Work)> {
        self.work.iter().map(|(tenant, work)| (*tenant, *work))
    }

    /// The work of a tenant in line.
    pub(crate) fn work_of(&self, tenant: TenantIx) -> Work {
        self.work.get(&tenant).copied().unwrap_or_default()
    }

    /// A limit of the tenant changed that may hold back jobs where they stand.
    pub(crate) fn review(&mut self, tenant: TenantIx) {
        self.moved.insert(tenant);
    }

    /// Tenants whose jobs stand in other berths than when this was last asked.
    pub(crate) fn take_moved(&mut self) -> BTreeSet<TenantIx> {
        std::mem::take(&mut self.moved)
    }

    /// Where the jobs of a tenant stand that may have their turn.
    pub(crate) fn berths_of(&self, tenant: TenantIx) -> impl Iterator<Item = BerthIx> {
        let from = (tenant, BerthIx::new(0));
        let own = self.by_berth.range(from..).take_while(move |((other, _), _)| *other == tenant);
        own.map(|((_, berth), _)| *berth)
    }
}
