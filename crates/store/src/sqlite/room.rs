//! The numbers and limits of unfinished jobs in memory, so that limits need no count.
//!
//! **Invariant:** jobs that were numbered ahead find room, because it is reserved for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::TenantId;

use crate::{Options, Refusal};

#[derive(Clone)]
pub(super) struct Room(Arc<Mutex<Counts>>);

struct Counts {
    /// Limits of unfinished jobs of one tenant, and of all together.
    tenant_jobs_max: u64,
    jobs_max: u64,
    here: Count,
    /// Jobs with reserved numbers.
    on_the_way: Count,
}

#[derive(Default)]
struct Count {
    of_tenant: HashMap<TenantId, u64>,
    total: u64,
}

impl Count {
    fn of(&self, tenant: &TenantId) -> u64 {
        self.of_tenant.get(tenant).copied().unwrap_or(0)
    }

    fn add(&mut self, tenant: &TenantId, n_jobs: u64) {
        self.total += n_jobs;
        match self.of_tenant.get_mut(tenant) {
            Some(count) => *count += n_jobs,
            None => {
                self.of_tenant.insert(tenant.clone(), n_jobs);
            }
        }
    }

    fn remove(&mut self, tenant: &TenantId, n_jobs: u64) {
        self.total = self.total.saturating_sub(n_jobs);
        if let Some(count) = self.of_tenant.get_mut(tenant) {
            *count = count.saturating_sub(n_jobs);
            if *count == 0 {
                self.of_tenant.remove(tenant);
            }
        }
    }
}

impl Counts {
    fn refusal(&self, tenant: &TenantId, n_new: u64) -> Option<Refusal> {
        let jobs = self.here.of(tenant) + self.on_the_way.of(tenant);
        let max = self.tenant_jobs_max;
        if n_new > 0 && jobs.saturating_add(n_new) > max {
            return Some(Refusal::TenantFull { tenant: tenant.to_string(), jobs, max });
        }
        let (jobs, max) = (self.here.total + self.on_the_way.total, self.jobs_max);
        (n_new > 0 && jobs.saturating_add(n_new) > max).then_some(Refusal::StoreFull { jobs, max })
    }
}

impl Room {
    pub(super) fn new(options: &Options) -> Self {
        let Options { tenant_jobs_max, jobs_max, .. } = *options;
        let (here, on_the_way) = (Count::default(), Count::default());
        Self(Arc::new(Mutex::new(Counts { tenant_jobs_max, jobs_max, here, on_the_way })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The reason why there is no room for `n_new` jobs.
    pub(super) fn refusal(&self, tenant: &TenantId, n_new: usize) -> Option<Refusal> {
        self.with(|counts| counts.refusal(tenant, count(n_new)))
    }

    /// Reserves room for jobs, if there is enough. [`Self::expect`] must follow.
    pub(super) fn keep(&self, tenant: &TenantId, n_jobs: usize) -> bool {
        self.with(|counts| {
            let has_room = counts.refusal(tenant, count(n_jobs)).is_none();
            if has_room {
                counts.on_the_way.add(tenant, count(n_jobs));
            }
            has_room
        })
    }

    /// Counts jobs with reserved numbers until the result is dropped. By then they are submitted,
    /// or will not be.
    pub(super) fn expect(&self, tenant: &TenantId, n_jobs: usize) -> Expected {
        Expected { room: self.clone(), tenant: tenant.clone(), n_jobs: count(n_jobs) }
    }

    pub(super) fn add(&self, tenant: &TenantId) {
        self.with(|counts| counts.here.add(tenant, 1));
    }

    pub(super) fn remove(&self, tenant: &TenantId) {
        self.with(|counts| counts.here.remove(tenant, 1));
    }

    /// Sets the counts.
    pub(super) fn set(&self, of_tenant: HashMap<TenantId, u64>) {
        let total = of_tenant.values().sum();
        self.with(|counts| counts.here = Count { of_tenant, total });
    }
}

/// Jobs with reserved numbers that are not submitted yet.
pub(super) struct Expected {
    room: Room,
    tenant: TenantId,
    n_jobs: u64,
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.room.with(|counts| counts.on_the_way.remove(&self.tenant, self.n_jobs));
    }
}

fn count(n_jobs: usize) -> u64 {
    u64::try_from(n_jobs).unwrap_or(u64::MAX)
}
