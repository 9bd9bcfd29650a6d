//! How many jobs stand in line: all, those of each tenant, and those of a tenant by what could run
//! them.

use crate::index::QuickLookup;
use crate::table::{FitIx, TenantIx};

#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd {
    pub(crate) all: u64,
    by_tenant: QuickLookup<TenantIx, u64>,
    by_fit: QuickLookup<(TenantIx, FitIx), u64>,
}

impl Crowd {
    pub(crate) fn add(&mut self, tenant: TenantIx, fit: FitIx) {
        self.all += 1;
        self.by_tenant.insert(tenant, self.of_tenant(tenant) + 1);
        self.by_fit.insert((tenant, fit), self.of_fit(tenant, fit) + 1);
    }

    pub(crate) fn remove(&mut self, tenant: TenantIx, fit: FitIx) {
        self.all -= 1;
        match self.of_tenant(tenant) {
            0 | 1 => drop(self.by_tenant.remove(&tenant)),
            more => self.by_tenant.insert(tenant, more - 1),
        }
        match self.of_fit(tenant, fit) {
            0 | 1 => drop(self.by_fit.remove(&(tenant, fit))),
            more => self.by_fit.insert((tenant, fit), more - 1),
        }
    }

    /// How many would wait for these slots if everybody asked for what this tenant asks for, in so
    /// many parts of a job.
    pub(crate) fn as_if_all_were(&self, tenant: TenantIx, fit: FitIx, parts: u64) -> u64 {
        let of_tenant = self.of_tenant(tenant).max(1);
        self.of_fit(tenant, fit).saturating_mul(self.all).saturating_mul(parts) / of_tenant
    }

    fn of_tenant(&self, tenant: TenantIx) -> u64 {
        self.by_tenant.get(&tenant).unwrap_or(0)
    }

    fn of_fit(&self, tenant: TenantIx, fit: FitIx) -> u64 {
        self.by_fit.get(&(tenant, fit)).unwrap_or(0)
    }
}
