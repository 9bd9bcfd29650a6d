//! Tenants and what they use right now.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use model::tenant::Account;
use model::{Fixed, Millis, Tenant, TenantId, Timestamp};

use crate::account::{Contested, Measured};
use crate::index::{Lookup, Names};
use crate::table::{NameIx, Table, TenantIx};

#[derive(Clone, Debug)]
pub(crate) struct Sharer {
    pub(crate) tenant: Tenant,
    /// Minimum and maximum by pool.
    quotas: BTreeMap<NameIx, (u32, Option<u32>)>,
    /// Slots in use by pool.
    slots: BTreeMap<NameIx, u64>,
    /// How often it was evicted lately, by pool and moment.
    pub(crate) evictions: BTreeMap<(NameIx, Timestamp), u32>,
    /// Attempts.
    pub(crate) n_running: u32,
    /// Jobs that wait.
    pub(crate) n_queued: u32,
    /// Cost of attempts.
    pub(crate) in_flight: Fixed,
    /// Workspaces without a name in use.
    pub(crate) workspaces_used: u32,
    /// Slots of all its attempts, and the sum of when each of those slots was taken.
    pub(crate) slots_used: i64,
    pub(crate) slots_taken_at: i128,
    /// What of its slot time its account has taken in.
    pub(crate) settled: i128,
    /// Its due of the slot time of all tenants that compete, in parts of [`WHOLE`].
    pub(crate) due: i64,
    /// Slots of attempts of interactive jobs.
    pub(crate) slots_interactive: i64,
    /// Slot time that it took while others competed for it.
    pub(crate) contested: Contested,
    /// What follows from its account in this decision.
    pub(crate) measured: Measured,
}

/// Dues are parts of this.
pub(crate) const WHOLE: i64 = 1 << 32;

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

    /// Its minimums by pool.
    pub(crate) fn minimums(&self) -> impl Iterator<Item = (NameIx, u32)> {
        self.quotas.iter().map(|(pool, (min, _))| (*pool, *min)).filter(|(_, min)| *min > 0)
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

    /// The same, where shares are shares of it: a job counts as one at least, so that a tenant
    /// gains nothing by jobs that cost nothing.
    pub(crate) fn usage_shared(&self) -> Fixed {
        let completed =
            Fixed::whole(i64::try_from(self.tenant.completed).unwrap_or(i64::MAX / 1_000));
        self.tenant.used.max(completed) + self.in_flight.max(Fixed::whole(self.n_running.into()))
    }

    /// Slot-milliseconds that it has had by `now`.
    pub(crate) fn served(&self, now: Timestamp) -> i128 {
        let running = i128::from(self.slots_used) * i128::from(now.0) - self.slots_taken_at;
        i128::from(self.tenant.account.served) + running
    }

    /// Its weight where slot time is shared; a tenant without weight has next to nothing.
    pub(crate) fn share(&self) -> i128 {
        i128::from(self.tenant.weight.in_thousandths().max(1))
    }

    /// How far it is ahead of its share, in thousandths of a slot-millisecond for each unit of
    /// weight, after a millisecond more of what it runs: so what was placed at this moment counts.
    pub(crate) fn level(&self) -> i128 {
        let ahead = i128::from(self.tenant.account.ahead.in_thousandths());
        ahead + i128::from(self.slots_used) * 1_000_000 / self.share()
    }

    /// Whether its share is measured.
    pub(crate) const fn competes(&self) -> bool {
        self.tenant.account.competes
    }

    /// Whether it has a part in the sums of a deficit.
    pub(crate) fn counts(&self) -> bool {
        self.tenant.active && (self.n_queued > 0 || self.n_running > 0)
    }

    /// Whether none of its own limits keeps it from getting its share.
    pub(crate) fn contends(&self) -> bool {
        self.tenant.active
            && self.tenant.jobs_max.is_none_or(|max| self.n_running < max)
            && self.budget_left().is_none_or(|left| left > Fixed::ZERO)
    }

    /// Whether its quota in the pool has no slot left.
    pub(crate) fn is_at_max(&self, pool: NameIx) -> bool {
        self.quota(pool).1.is_some_and(|max| self.slots(pool) >= u64::from(max))
    }

    /// How often it was evicted in the pool so lately.
    pub(crate) fn evictions_within(&self, pool: NameIx, cooldown: Millis, now: Timestamp) -> u32 {
        let first = (pool, Timestamp(i64::MIN));
        let here = self.evictions.range(first..).take_while(|((own, _), _)| *own == pool);
        here.filter(|((_, at), _)| now.since(*at) < cooldown).map(|(_, count)| *count).sum()
    }

    /// What is left of its budget; `None` means that there is no limit.
    pub(crate) fn budget_left(&self) -> Option<Fixed> {
        self.tenant.budget.map(|budget| budget - self.usage())
    }

    pub(crate) fn start(&mut self, pool: NameIx, slots: u32, cost: Fixed, at: Timestamp) {
        self.slots_used += i64::from(slots);
        self.slots_taken_at += i128::from(slots) * i128::from(at.0);
        *self.slots.entry(pool).or_default() += u64::from(slots);
        self.n_running += 1;
        self.in_flight += cost;
    }

    pub(crate) fn move_slots(&mut self, from: NameIx, to: NameIx, slots: u32) {
        *self.slots.entry(from).or_default() -= u64::from(slots);
        *self.slots.entry(to).or_default() += u64::from(slots);
    }

    /// Its attempt started at another moment than was thought.
    pub(crate) fn restart(&mut self, slots: u32, from: Timestamp, to: Timestamp) {
        self.slots_taken_at += i128::from(slots) * i128::from(to.0 - from.0);
    }

    pub(crate) fn end(&mut self, pool: NameIx, slots: u32, cost: Fixed, started: Timestamp) {
        self.slots_used -= i64::from(slots);
        self.slots_taken_at -= i128::from(slots) * i128::from(started.0);
        *self.slots.entry(pool).or_default() -= u64::from(slots);
        self.n_running -= 1;
        self.in_flight -= cost;
    }
}

/// All tenants.
#[derive(Clone, Debug)]
pub(crate) struct Tenants {
    pub(crate) table: Table<TenantIx, Sharer>,
    by_id: Lookup<TenantId, TenantIx>,
    /// Those with queued or running jobs.
    pub(crate) counted: Sums,
    /// Settled cost of all tenants.
    used: Fixed,
    /// Settled cost of all tenants and the weights of those with jobs in line, when the round
    /// began.
    round: Sums,
    /// Those whose accounts may move: most tenants of a large fleet have nothing to do.
    live: BTreeSet<TenantIx>,
}

/// Sums over some tenants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) weight: Fixed,
    pub(crate) usage: Fixed,
    pub(crate) count: i64,
}

impl Sums {
    pub(crate) fn add(&mut self, sharer: &Sharer) {
        self.weight += sharer.tenant.weight;
        self.usage += sharer.usage_shared();
        self.count += 1;
    }

    pub(crate) fn subtract(&mut self, sharer: &Sharer) {
        self.weight -= sharer.tenant.weight;
        self.usage -= sharer.usage_shared();
        self.count -= 1;
    }
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
            counted: Sums::default(),
            used: Fixed::ZERO,
            round: Sums::default(),
            live: BTreeSet::new(),
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
                // Settings say nothing of what was measured here.
                let account = std::mem::take(&mut sharer.tenant.account);
                sharer.tenant = Tenant { account, ..tenant };
                sharer.quotas = quotas;
            });
            return ix;
        }
        let (id, settled) = (tenant.id.clone(), i128::from(tenant.account.served));
        self.used += tenant.used;
        let ix = self.table.insert(Sharer {
            tenant,
            quotas,
            slots: BTreeMap::new(),
            evictions: BTreeMap::new(),
            n_running: 0,
            n_queued: 0,
            in_flight: Fixed::ZERO,
            workspaces_used: 0,
            slots_used: 0,
            slots_taken_at: 0,
            settled,
            due: 0,
            slots_interactive: 0,
            contested: Contested::default(),
            measured: Measured::default(),
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
        let was_busy = sharer.counts();
        if was_busy {
            self.counted.subtract(sharer);
        }
        let used = sharer.tenant.used;
        with(sharer);
        self.used += sharer.tenant.used - used;
        if sharer.counts() {
            self.counted.add(sharer);
        }
        if sharer.n_queued > 0 || sharer.n_running > 0 {
            self.live.insert(ix);
        }
    }

    /// Those with jobs that wait or run.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (TenantIx, &Sharer)> {
        let live = self.live.iter().map(|ix| (*ix, &self.table[*ix]));
        live.filter(|(_, own)| own.n_queued > 0 || own.n_running > 0)
    }

    /// Those whose accounts may move.
    pub(crate) fn live(&self) -> impl Iterator<Item = TenantIx> + Clone {
        self.live.iter().copied()
    }

    /// What was served so far is on the accounts already.
    pub(crate) fn start_accounts(&mut self, now: Timestamp) {
        for (ix, sharer) in self.table.iter_mut() {
            sharer.settled = sharer.served(now);
            sharer.contested.settle(now);
            if sharer.tenant.account != Account::default() {
                self.live.insert(ix);
            }
        }
    }

    /// Changes each of those whose accounts may move.
    pub(crate) fn change_live(&mut self, mut with: impl FnMut(TenantIx, &mut Sharer)) {
        for ix in &self.live {
            with(*ix, &mut self.table[*ix]);
        }
    }

    /// Tenants with nothing to do and nothing on their accounts are looked at no more.
    pub(crate) fn forget_settled(&mut self) {
        let table = &self.table;
        self.live.retain(|ix| {
            let own = &table[*ix];
            let account = &own.tenant.account;
            let is_settled = account.ahead == Fixed::ZERO && account.queue.marks.is_empty();
            own.n_queued > 0 || own.n_running > 0 || own.competes() || !is_settled
        });
    }

    /// A round begins, in which jobs of these tenants stand in line.
    pub(crate) fn begin_round(&mut self, waiting: impl Iterator<Item = TenantIx>) {
        let mut round = Sums { usage: self.used, ..Sums::default() };
        for own in waiting.map(|ix| &self.table[ix].tenant).filter(|own| own.active) {
            round.weight += own.weight;
            round.count += 1;
        }
        self.round = round;
    }

    /// How far a tenant is ahead of its share of all usage; the most negative is furthest behind.
    pub(crate) fn deficit(&self, ix: TenantIx) -> i128 {
        let sharer = &self.table[ix];
        ahead(&self.counted, sharer, sharer.usage_shared())
    }

    /// The same by settled cost alone, and the sums of when the round began.
    pub(crate) fn deficit_settled(&self, ix: TenantIx) -> i128 {
        let sharer = &self.table[ix];
        ahead(&self.round, sharer, sharer.tenant.used)
    }
}

/// `own / all − weight / all weights`, times both sums: they are the same for all tenants, so the
/// order stays and nothing is rounded.
fn ahead(sums: &Sums, sharer: &Sharer, own: Fixed) -> i128 {
    let wide = |number: Fixed| i128::from(number.in_thousandths());
    let is_weightless = sums.weight == Fixed::ZERO;
    let (weight, weights) = if is_weightless {
        (1, i128::from(sums.count.max(1)))
    } else {
        (wide(sharer.tenant.weight), wide(sums.weight))
    };
    let all = if sums.usage == Fixed::ZERO { Fixed::ONE } else { sums.usage };
    wide(own) * weights - weight * wide(all)
}
