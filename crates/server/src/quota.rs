//! What tenants, types and resources may use. The world keeps to it; where several schedulers
//! share a store, it counts what is used besides, and a claim that would exceed a limit is refused.
//! Whoever has no limit is not counted.

use std::collections::BTreeMap;

use model::{Ask, Event, Fixed, JobType, Name, Tenant, TenantId};
use store::{Limit, Spent};

use crate::queue::Seen;
use crate::scheduler::Scheduler;
use crate::settings::Understood;

/// What is set of tenants and types.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    tenants: BTreeMap<TenantId, Tenant>,
    types: BTreeMap<Name, JobType>,
}

/// Between the parts of a name: no part has it.
const BETWEEN: char = '\u{1f}';

impl Scheduler {
    /// Takes note of what is set.
    pub(crate) fn note_quota(&mut self, setting: &Understood) {
        match setting {
            Understood::Event(Event::Tenant(tenant)) => {
                self.quotas.tenants.insert(tenant.id.clone(), tenant.clone());
            }
            Understood::Type(kind, ..) => {
                self.quotas.types.insert(kind.name.clone(), kind.clone());
            }
            Understood::Event(_)
            | Understood::Budget(_)
            | Understood::Pool { .. }
            | Understood::Worker { .. }
            | Understood::Descriptor(..)
            | Understood::Published(_)
            | Understood::Schedule(..)
            | Understood::Asked(..) => {}
        }
    }

    /// What holds for a type that workers find, whoever said so.
    pub(crate) fn note_type(&mut self, kind: &JobType) {
        self.quotas.types.insert(kind.name.clone(), kind.clone());
    }

    /// The limits under which this job goes to a worker of this pool.
    pub(crate) fn limits_of(&self, seen: &Seen, pool: &Name, holds: Option<&Ask>) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut add = |parts: &[&str], amount: i64, max: i64, spent: Option<Spent>| {
            let name = parts.join(&BETWEEN.to_string());
            limits.push(Limit { name, amount, max, spent });
        };
        let since = self.store.now() - self.config.usage_window;
        let (tenant, cost) = (seen.tenant.to_string(), seen.cost.in_thousandths());
        if let Some(settings) = self.quotas.tenants.get(&seen.tenant) {
            if let Some(max) = settings.jobs_max {
                add(&["jobs", &tenant], 1, max.into(), None);
            }
            if let Some(max) = settings.quota(pool).max {
                let parts = ["quota", &tenant, &pool.to_string()];
                add(&parts, seen.slots.into(), max.into(), None);
            }
            if let Some(max) = settings.budget.map(Fixed::in_thousandths) {
                let spent = Spent { tenant: Some(seen.tenant.clone()), since };
                add(&["budget", &tenant], cost, max, Some(spent));
            }
            if let (Some(max), Some(Ask::Any)) = (settings.workspaces, holds) {
                add(&["workspaces", &tenant], 1, max.into(), None);
            }
        }
        if let Some(max) = self.quotas.types.get(&seen.kind).and_then(|kind| kind.jobs_max) {
            add(&["type", &seen.kind.to_string()], 1, max.into(), None);
        }
        if let Some(max) = self.budget_limit.map(Fixed::in_thousandths) {
            add(&["budgets"], cost, max, Some(Spent { tenant: None, since }));
        }
        if let Some(Ask::Named(name)) = holds {
            add(&["resource", &name.to_string()], 1, 1, None);
        }
        limits
    }
}
