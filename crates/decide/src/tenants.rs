//! Tenants and what they use right now.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use model::{Fixed, Millis, Tenant, TenantId, Timestamp};

use crate::index::{Lookup, Names};
use crate::table::{NameIx, Table, TenantIx};

#[derive(Clone, Debug)]
pub(crate) struct Sharer {
    pub(crate) tenant: Tenant,
    /// Minimum and maximum by pool.
    quotas: BTreeMap<NameIx, (u32, Option<u32>)>,
    /// Slots in use by pool.
    slots: BTreeMap<NameIx, u64>,
    /// Recent evictions by pool.
    pub(crate) evictions: BTreeMap<NameIx, u32>,
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
    /// When slots were last taken, and how many of them.
    taken_last: (Timestamp, i64),
    /// Waiting work of known length, in slot-milliseconds, and slots asked for by the rest.
    pub(crate) backlog: Backlog,
    /// Whether jobs of it waited when the last decision began.
    pub(crate) was_waiting: bool,
}

/// Work that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Slot-milliseconds of jobs of known length.
    known: i128,
    /// Slots of jobs of unknown length.
    unknown: i128,
}

impl Backlog {
    pub(crate) fn add(&mut self, slots: u32, length: Option<Millis>) {
        match length {
            Some(length) => self.known += i128::from(slots) * i128::from(length.0),
            None => self.unknown += i128::from(slots),
        }
    }

    pub(crate) fn subtract(&mut self, slots: u32, length: Option<Millis>) {
        match length {
            Some(length) => self.known -= i128::from(slots) * i128::from(length.0),
            None => self.unknown -= i128::from(slots),
        }
    }

    /// All of it, in slot-milliseconds, if what nobody predicted takes so long.
    pub(crate) fn work(self, unknown: Millis) -> i128 {
        self.known + self.unknown * i128::from(unknown.0)
    }
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

    /// What its share is measured by where shares are live: slot-milliseconds that it has had by
    /// `now`, and what it was lifted by.
    pub(crate) fn account(&self, now: Timestamp) -> i128 {
        let running = i128::from(self.slots_used) * i128::from(now.0) - self.slots_taken_at;
        i128::from(self.tenant.lift.in_thousandths()) + running
    }

    /// Its weight where shares are live; whoever has none has next to nothing.
    pub(crate) fn share(&self) -> i128 {
        i128::from(self.tenant.weight.in_thousandths().max(1))
    }

    /// How much it has had for its weight, in steps: between tenants at one step the shortest job
    /// goes first. What started just now counts as a step for each slot, so that who has been
    /// behind is not given all that is free.
    pub(crate) fn level(&self, now: Timestamp) -> i128 {
        let (taken_at, slots) = self.taken_last;
        let taken_now = if taken_at == now { slots } else { 0 };
        let account = self.account(now) + i128::from(taken_now) * LEVEL_STEP;
        (account * 1_000).div_euclid(self.share() * LEVEL_STEP)
    }

    /// Adds slot-milliseconds to its account.
    pub(crate) fn lift(&mut self, by: i128) {
        let lift = i128::from(self.tenant.lift.in_thousandths()) + by;
        self.tenant.lift = Fixed::thousandths(narrow(lift));
    }

    /// Whether turns go by its share.
    pub(crate) fn competes(&self) -> bool {
        self.tenant.competes && self.n_queued > 0
    }

    /// Whether it has a part in the sums of a deficit.
    pub(crate) fn counts(&self) -> bool {
        self.n_queued > 0 || self.n_running > 0
    }

    /// Whether none of its own limits keeps it from getting its share.
    pub(crate) fn contends(&self) -> bool {
        let is_at_max = |(pool, (_, max)): (&NameIx, &(u32, Option<u32>))| {
            max.is_some_and(|max| self.slots(*pool) >= u64::from(max))
        };
        self.tenant.active
            && self.tenant.jobs_max.is_none_or(|max| self.n_running < max)
            && self.budget_left().is_none_or(|left| left > Fixed::ZERO)
            && !self.quotas.iter().any(is_at_max)
    }

    /// What is left of its budget; `None` means that there is no limit.
    pub(crate) fn budget_left(&self) -> Option<Fixed> {
        self.tenant.budget.map(|budget| budget - self.usage())
    }

    pub(crate) fn start(&mut self, pool: NameIx, slots: u32, cost: Fixed, at: Timestamp) {
        self.slots_used += i64::from(slots);
        self.slots_taken_at += i128::from(slots) * i128::from(at.0);
        self.take_at(at, i64::from(slots));
        *self.slots.entry(pool).or_default() += u64::from(slots);
        self.n_running += 1;
        self.in_flight += cost;
    }

    fn take_at(&mut self, at: Timestamp, slots: i64) {
        if at > self.taken_last.0 {
            self.taken_last = (at, 0);
        }
        if at == self.taken_last.0 {
            self.taken_last.1 += slots;
        }
    }

    fn give_back_at(&mut self, at: Timestamp, slots: i64) {
        if at == self.taken_last.0 {
            self.taken_last.1 -= slots;
        }
    }

    pub(crate) fn move_slots(&mut self, from: NameIx, to: NameIx, slots: u32) {
        *self.slots.entry(from).or_default() -= u64::from(slots);
        *self.slots.entry(to).or_default() += u64::from(slots);
    }

    /// Its attempt started at another moment than was thought.
    pub(crate) fn restart(&mut self, slots: u32, from: Timestamp, to: Timestamp) {
        self.slots_taken_at += i128::from(slots) * i128::from(to.0 - from.0);
        self.give_back_at(from, i64::from(slots));
        self.take_at(to, i64::from(slots));
    }

    pub(crate) fn end(&mut self, pool: NameIx, slots: u32, cost: Fixed, started: Timestamp) {
        self.slots_used -= i64::from(slots);
        self.slots_taken_at -= i128::from(slots) * i128::from(started.0);
        self.give_back_at(started, i64::from(slots));
        *self.slots.entry(pool).or_default() -= u64::from(slots);
        self.n_running -= 1;
        self.in_flight -= cost;
    }
}

/// Shares are compared in steps of so many slot-milliseconds for each unit of weight.
const LEVEL_STEP: i128 = 32_000;

fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// All tenants.
#[derive(Clone, Debug)]
pub(crate) struct Tenants {
    pub(crate) table: Table<TenantIx, Sharer>,
    by_id: Lookup<TenantId, TenantIx>,
    /// Those with queued or running jobs.
    pub(crate) counted: Sums,
    /// The same, one by one: most tenants of a large fleet have nothing to do.
    busy: BTreeSet<TenantIx>,
    /// Those who may have asked for work lately.
    asking: BTreeSet<TenantIx>,
    /// How many have jobs that wait.
    pub(crate) n_waiting: usize,
    /// Those whose first job came, or whose last job went, since the last decision began.
    pub(crate) changed: BTreeSet<TenantIx>,
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
        self.usage += sharer.usage();
        self.count += 1;
    }

    pub(crate) fn subtract(&mut self, sharer: &Sharer) {
        self.weight -= sharer.tenant.weight;
        self.usage -= sharer.usage();
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
            busy: BTreeSet::new(),
            asking: BTreeSet::new(),
            n_waiting: 0,
            changed: BTreeSet::new(),
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
                // Whoever sets a tenant knows its usage, but not what its share is here.
                let Tenant { lift, asked, competes, .. } = sharer.tenant;
                sharer.tenant = Tenant { lift, asked, competes, ..tenant };
                sharer.quotas = quotas;
            });
            return ix;
        }
        let (id, has_asked) = (tenant.id.clone(), tenant.asked.is_some());
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
            taken_last: (Timestamp(i64::MIN), 0),
            backlog: Backlog::default(),
            was_waiting: false,
        });
        self.by_id.insert(id, ix);
        if has_asked {
            self.asking.insert(ix);
        }
        ix
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TenantIx, &Sharer)> {
        self.table.iter()
    }

    /// Those with queued or running jobs.
    pub(crate) fn busy(&self) -> impl Iterator<Item = (TenantIx, &Sharer)> {
        self.busy.iter().map(|ix| (*ix, &self.table[*ix]))
    }

    /// Those who have something to do, or may have asked for work lately.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (TenantIx, &Sharer)> {
        self.asking.union(&self.busy).map(|ix| (*ix, &self.table[*ix]))
    }

    /// A tenant asks for work.
    pub(crate) fn ask(&mut self, ix: TenantIx, with: impl FnOnce(&mut Sharer)) {
        self.asking.insert(ix);
        self.change(ix, with);
    }

    /// These have not asked for anything lately: what they asked for before is past.
    pub(crate) fn forget_asking(&mut self, quiet: &[TenantIx]) {
        for ix in quiet {
            self.asking.remove(ix);
            self.table[*ix].tenant.asked = None;
        }
    }

    /// Changes a tenant and keeps the sums in step.
    pub(crate) fn change(&mut self, ix: TenantIx, with: impl FnOnce(&mut Sharer)) {
        let sharer = &mut self.table[ix];
        let (was_waiting, was_busy) = (sharer.n_queued > 0, sharer.counts());
        if was_busy {
            self.counted.subtract(sharer);
        }
        with(sharer);
        let is_busy = sharer.counts();
        if is_busy {
            self.counted.add(sharer);
        }
        if is_busy && !was_busy {
            self.busy.insert(ix);
        } else if was_busy && !is_busy {
            self.busy.remove(&ix);
        }
        let is_waiting = sharer.n_queued > 0;
        if was_waiting != is_waiting {
            self.n_waiting = if is_waiting { self.n_waiting + 1 } else { self.n_waiting - 1 };
            sharer.tenant.competes &= is_waiting;
            self.changed.insert(ix);
        }
    }

    /// How far a tenant is ahead of its share of all usage; the most negative is furthest behind.
    pub(crate) fn deficit(&self, ix: TenantIx) -> i128 {
        let sharer = &self.table[ix];
        self.ahead(sharer, sharer.usage(), self.counted.usage)
    }

    /// `own / all − weight / all weights`, times both sums: they are the same for all tenants, so
    /// the order stays and nothing is rounded.
    fn ahead(&self, sharer: &Sharer, own: Fixed, all: Fixed) -> i128 {
        let wide = |number: Fixed| i128::from(number.in_thousandths());
        let is_weightless = self.counted.weight == Fixed::ZERO;
        let (weight, weights) = if is_weightless {
            (1, i128::from(self.counted.count.max(1)))
        } else {
            (wide(sharer.tenant.weight), wide(self.counted.weight))
        };
        let all = if all == Fixed::ZERO { Fixed::ONE } else { all };
        wide(own) * weights - weight * wide(all)
    }
}
