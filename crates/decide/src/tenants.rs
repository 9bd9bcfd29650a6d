//! Tenants and what they use right now.

use std::collections::BTreeMap;
use std::ops::Index;

use model::{Fixed, Tenant, TenantId};

use crate::index::{Lookup, Names};
use crate::table::{NameIx, Table, TenantIx};

#[derive(Clone, Debug)]
pub(crate) struct Sharer {
    pub(crate) tenant: Tenant,
    /// Minimum and maximum by pool.
    quotas: BTreeMap<NameIx, (u32, Option<u32>)>,
    /// Slots in use by pool.
    slots: BTreeMap<NameIx, u64>,
    /// Attempts.
    pub(crate) n_running: u32,
    /// Jobs that wait.
    pub(crate) n_queued: u32,
    /// Cost of attempts.
    pub(crate) in_flight: Fixed,
    /// Workspaces without a name in use.
    pub(crate) workspaces_used: u32,
}

impl Sharer {
    pub(crate) fn slots(&self, pool: NameIx) -> u64 {
        self.slots.get(&pool).copied().unwrap_or(0)
    }

    /// Slots in use, by pool; pools in which it has none are left out.
    pub(crate) fn slots_by_pool(&self) -> impl Iterator<Item = (NameIx, u64)> {
        self.slots.iter().map(|(pool, slots)| (*pool, *slots)).filter(|(_, slots)| *slots > 0)
    }

    /// Minimum and maximum in `pool`.
    pub(crate) fn quota(&self, pool: NameIx) -> (u32, Option<u32>) {
        self.quotas.get(&pool).copied().unwrap_or((0, None))
    }

    pub(crate) fn is_below_min(&self, pool: NameIx) -> bool {
        self.slots(pool) < u64::from(self.quota(pool).0)
    }

    /// Pools in which it is below its minimum.
    pub(crate) fn pools_below_min(&self) -> impl Iterator<Item = NameIx> {
        self.quotas.keys().copied().filter(|pool| self.is_below_min(*pool))
    }

    pub(crate) fn has_quotas(&self) -> bool {
        !self.quotas.is_empty()
    }

    /// Whether it completed or started anything in the window.
    pub(crate) fn has_any(&self) -> bool {
        self.tenant.completed > 0 || self.n_running > 0
    }

    /// Settled cost and that of attempts.
    pub(crate) fn usage(&self) -> Fixed {
        self.tenant.used + self.in_flight
    }

    /// Whether it has a part in the sums of a deficit.
    pub(crate) fn counts(&self) -> bool {
        self.n_queued > 0 || self.n_running > 0
    }

    /// Its part in those sums.
    fn part(&self) -> Option<(Fixed, Fixed)> {
        self.counts().then(|| (self.tenant.weight, self.usage()))
    }

    /// What is left of its budget; `None` means that there is no limit.
    pub(crate) fn budget_left(&self) -> Option<Fixed> {
        self.tenant.budget.map(|budget| budget - self.usage())
    }

    pub(crate) fn start(&mut self, pool: NameIx, slots: u32, cost: Fixed) {
        *self.slots.entry(pool).or_default() += u64::from(slots);
        self.n_running += 1;
        self.in_flight += cost;
    }

    pub(crate) fn end(&mut self, pool: NameIx, slots: u32, cost: Fixed) {
        *self.slots.entry(pool).or_default() -= u64::from(slots);
        self.n_running -= 1;
        self.in_flight -= cost;
    }

    /// An attempt counts in another pool.
    pub(crate) fn shift(&mut self, from: NameIx, to: NameIx, slots: u32) {
        *self.slots.entry(from).or_default() -= u64::from(slots);
        *self.slots.entry(to).or_default() += u64::from(slots);
    }
}

/// All tenants. The sums cover those with queued or running jobs.
#[derive(Clone, Debug)]
pub(crate) struct Tenants {
    table: Table<TenantIx, Sharer>,
    by_id: Lookup<TenantId, TenantIx>,
    weight_sum: Fixed,
    usage_sum: Fixed,
    n_counted: i64,
}

impl Index<TenantIx> for Tenants {
    type Output = Sharer;
    fn index(&self, ix: TenantIx) -> &Sharer {
        &self.table[ix]
    }
}

impl Tenants {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            table: Table::default(),
            by_id: Lookup::new(seed),
            weight_sum: Fixed::ZERO,
            usage_sum: Fixed::ZERO,
            n_counted: 0,
        }
    }

    pub(crate) fn find(&self, id: &TenantId) -> Option<TenantIx> {
        self.by_id.get(id)
    }

    pub(crate) fn find_or_default(&mut self, id: &TenantId, names: &mut Names) -> TenantIx {
        self.find(id).unwrap_or_else(|| self.set(Tenant::new(id.clone()), names))
    }

    pub(crate) fn set(&mut self, tenant: Tenant, names: &mut Names) -> TenantIx {
        let quotas = tenant.quotas.iter();
        let quotas =
            quotas.map(|quota| (names.intern(&quota.pool), (quota.min, quota.max))).collect();
        if let Some(ix) = self.find(&tenant.id) {
            self.change(ix, |sharer| {
                sharer.tenant = tenant;
                sharer.quotas = quotas;
            });
            return ix;
        }
        let id = tenant.id.clone();
        let ix = self.table.insert(Sharer {
            tenant,
            quotas,
            slots: BTreeMap::new(),
            n_running: 0,
            n_queued: 0,
            in_flight: Fixed::ZERO,
            workspaces_used: 0,
        });
        self.by_id.insert(id, ix);
        ix
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TenantIx, &Sharer)> {
        self.table.iter()
    }

    /// Changes a tenant and keeps the sums in step.
    pub(crate) fn change(&mut self, ix: TenantIx, with: impl FnOnce(&mut Sharer)) {
        let sharer = &mut self.table[ix];
        let before = sharer.part();
        with(sharer);
        let after = sharer.part();
        if before == after {
            return;
        }
        if let Some((weight, usage)) = before {
            self.weight_sum -= weight;
            self.usage_sum -= usage;
            self.n_counted -= 1;
        }
        if let Some((weight, usage)) = after {
            self.weight_sum += weight;
            self.usage_sum += usage;
            self.n_counted += 1;
        }
    }

    /// How far a tenant is ahead of its share; the most negative is furthest behind.
    ///
    /// It is `usage / all usage − weight / all weights`, times both sums: they are the same for
    /// all tenants, so the order stays and nothing is rounded.
    pub(crate) fn deficit(&self, ix: TenantIx) -> i128 {
        let sharer = &self.table[ix];
        let wide = |number: Fixed| i128::from(number.in_thousandths());
        let is_weightless = self.weight_sum == Fixed::ZERO;
        let (weight, weights) = if is_weightless {
            (1, i128::from(self.n_counted.max(1)))
        } else {
            (wide(sharer.tenant.weight), wide(self.weight_sum))
        };
        let usages = if self.usage_sum == Fixed::ZERO { Fixed::ONE } else { self.usage_sum };
        wide(sharer.usage()) * weights - weight * wide(usages)
    }
}
