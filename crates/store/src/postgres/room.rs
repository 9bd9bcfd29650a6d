//! The numbers of unfinished jobs in memory, so that limits need no count.
//!
//! Changes of this process count at once. Changes of peers count after the next refresh, so that
//! submissions to several schedulers may exceed a limit until then. The limit is for backpressure
//! and need not be exact.

use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use model::TenantId;

use crate::{Options, Refusal};

#[derive(Default)]
pub(super) struct Room(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    of_tenant: HashMap<TenantId, u64>,
    total: u64,
}

impl Counts {
    fn change(&mut self, tenant: &TenantId, by: i64) {
        self.total = self.total.saturating_add_signed(by);
        if let Some(n_jobs) = self.of_tenant.get_mut(tenant) {
            *n_jobs = n_jobs.saturating_add_signed(by);
            if *n_jobs == 0 {
                self.of_tenant.remove(tenant);
            }
        } else if by > 0 {
            self.of_tenant.insert(tenant.clone(), by.unsigned_abs());
        }
    }
}

impl Room {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason why there is no room for further jobs, on top of `n_more` that are about to be
    /// submitted.
    pub(super) fn full(
        &self,
        options: &Options,
        tenant: &TenantId,
        n_new: u64,
        n_more: (u64, u64),
    ) -> Option<Refusal> {
        let counts = self.counts();
        let (jobs, max) = (
            counts.of_tenant.get(tenant).copied().unwrap_or(0) + n_more.0,
            options.tenant_jobs_max,
        );
        if n_new > 0 && jobs.saturating_add(n_new) > max {
            return Some(Refusal::TenantFull { tenant: tenant.to_string(), jobs, max });
        }
        let (jobs, max) = (counts.total + n_more.1, options.jobs_max);
        (n_new > 0 && jobs.saturating_add(n_new) > max).then_some(Refusal::StoreFull { jobs, max })
    }

    /// Jobs were submitted or ended, by tenant.
    pub(super) fn change<'t>(&self, changes: impl IntoIterator<Item = (&'t TenantId, i64)>) {
        let mut counts = self.counts();
        for (tenant, by) in changes {
            counts.change(tenant, by);
        }
    }

    /// Sets the counts of a full count.
    pub(super) fn set(&self, of_tenant: HashMap<TenantId, u64>) {
        let total = of_tenant.values().sum();
        *self.counts() = Counts { of_tenant, total };
    }
}
