//! Tenants and budgets.

use model::tenant::TENANT_DEFAULT;
use model::worker::POOL_DEFAULT;
use model::{Fixed, Name, TenantId, maxima};

use super::account::Account;
use super::list::{List, Object};
use super::name::{Id, Label};
use super::number::{Count, Number, Quantity};
use super::{or, unless};
use crate::check::unique;
use crate::error::{At as _, Problem};

record! {
    /// A user, team or customer that shares the fleet.
    Tenant {
        /// Its id.
        id: Id<TenantId>,
        /// The size of its share, relative to the weights of the other tenants. 1 if left out.
        weight: Option<Number>,
        /// Whether its jobs may start. True if left out.
        active: Option<bool>,
        /// Cost settled within the window. 0 if left out.
        used: Option<Number>,
        /// Jobs completed within the window. 0 if left out.
        completed: Option<Quantity>,
        /// Its account (`balanced`). Left out means a tenant that never had a job.
        account: Option<Object<Account>>,
        /// The limit of cost within the window. No limit if left out.
        budget: Option<Number>,
        /// The limit of live attempts. No limit if left out.
        jobs_max: Option<Count>,
        /// Unnamed exclusive locks, one for each job whose resource is `*`. None if left out.
        workspaces: Option<Count>,
        /// Its slots in each pool. A pool that is not listed has min 0 and no max.
        quotas: Option<List<Object<Quota>, { maxima::QUOTAS_MAX }>>,
    }
}

record! {
    /// Slots of a tenant in a pool.
    Quota {
        /// The pool. `default` if left out.
        pool: Option<Label>,
        /// Guaranteed slots: below this number its jobs go first. 0 if left out.
        min: Option<Count>,
        /// The limit of slots. No limit if left out.
        max: Option<Count>,
    }
}

record! {
    /// Cost that all tenants together may use within the window.
    Budget {
        /// The limit. No limit if left out.
        limit: Option<Number>,
        /// The settled cost. 0 if left out.
        used: Option<Number>,
    }
}

/// The tenant of a job or an attempt that may name one.
pub(crate) fn read_tenant(given: Option<Id<TenantId>>) -> TenantId {
    given.map_or_else(|| TenantId::new(TENANT_DEFAULT), TenantId::from)
}

pub(crate) fn write_tenant(tenant: &TenantId) -> Option<Id<TenantId>> {
    unless(tenant.clone(), &TenantId::new(TENANT_DEFAULT)).map(Id)
}

impl Tenant {
    pub(crate) fn read(self) -> Result<model::Tenant, Problem> {
        let default = model::Tenant::new(self.id.0);
        let quotas = self.quotas.into_iter().flat_map(|list| list.0).enumerate();
        let quotas: Result<Vec<model::Quota>, Problem> =
            quotas.map(|(index, Object(quota))| quota.read().at(index).at("quotas")).collect();
        let mut quotas = quotas?;
        unique("quotas", "pool", quotas.iter().map(|quota| &quota.pool))?;
        quotas.sort_by(|one, two| one.pool.cmp(&two.pool));
        Ok(model::Tenant {
            weight: or(self.weight, default.weight),
            active: or(self.active, default.active),
            used: or(self.used, default.used),
            completed: or(self.completed, default.completed),
            account: self.account.map_or_else(Default::default, |Object(own)| own.read()),
            budget: self.budget.map(Fixed::from),
            jobs_max: self.jobs_max.map(u32::from),
            workspaces: self.workspaces.map(u32::from),
            quotas,
            ..default
        })
    }

    pub(crate) fn write(tenant: &model::Tenant) -> Self {
        let default = model::Tenant::new(tenant.id.clone());
        let quotas = tenant.quotas.iter().map(|quota| Object(Quota::write(quota)));
        Self {
            id: Id(tenant.id.clone()),
            weight: unless(tenant.weight, &default.weight).map(Number),
            active: unless(tenant.active, &default.active),
            used: unless(tenant.used, &default.used).map(Number),
            completed: unless(tenant.completed, &default.completed).map(Quantity),
            account: unless(tenant.account.clone(), &default.account)
                .map(|account| Object(Account::write(&account))),
            budget: tenant.budget.map(Number),
            jobs_max: tenant.jobs_max.map(Count),
            workspaces: tenant.workspaces.map(Count),
            quotas: (!tenant.quotas.is_empty()).then(|| List(quotas.collect())),
        }
    }
}

impl Quota {
    fn read(self) -> Result<model::Quota, Problem> {
        let (min, max) = (or(self.min, 0), self.max.map(u32::from));
        if let Some(max) = max.filter(|max| min > *max) {
            let problem = Problem::new(format!("is {min}, above its `max` of {max}"));
            return Err(problem.at("min"));
        }
        let pool = self.pool.map_or_else(|| Name::new(POOL_DEFAULT), Name::from);
        Ok(model::Quota { pool, min, max })
    }

    fn write(quota: &model::Quota) -> Self {
        Self {
            pool: Some(Label(quota.pool.clone())),
            min: unless(quota.min, &0).map(Count),
            max: quota.max.map(Count),
        }
    }
}

impl Budget {
    pub(crate) fn read(self) -> Option<model::Budget> {
        let used = or(self.used, Fixed::ZERO);
        self.limit.map(|limit| model::Budget { limit: limit.into(), used })
    }

    pub(crate) fn write(budget: model::Budget) -> Self {
        let used = unless(budget.used, &Fixed::ZERO).map(Number);
        Self { limit: Some(Number(budget.limit)), used }
    }
}
