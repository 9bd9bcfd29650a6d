//! Shares of tenants: which tenants compete, and the slot time that is due to each.
//!
//! A tenant *competes* while jobs of it wait that some serving worker could run and that no limit
//! holds back. The slot time of all tenants that compete is due to them by constrained max-min
//! fairness ([`crate::max_min`]), and at least the minimums of their quotas, which are paid for. A
//! tenant's account says how far it is ahead of its due: so much slot time for each unit of its
//! weight. Accounts of those that compete add up to nothing.
//!
//! - A tenant that does not compete gains no claim to slot time while it has no work.
//! - Slot time that a tenant takes while no other tenant competes is not on its account.
//! - A tenant that returns is at most the slack behind the other tenants. If it was ahead, the time
//!   that passed has paid for that.
//! - Slots that a tenant takes while other tenants compete for them count, also while no job of it
//!   waits. So a limit that holds its jobs back at times gives no tenant more than its due.
//!
//! **Invariant:** an account rests on slot time that was used, never on an expected length.

use std::collections::BTreeMap;

use model::policy::Turn;
use model::tenant::Trust;
use model::{Fixed, Millis, TenantId, Timestamp};

use crate::account::{self, Measured};
use crate::bits::Bits;
use crate::max_min::{Group, Party, levels, with_minimums};
use crate::table::{AudienceIx, NameIx, TenantIx, WorkerIx};
use crate::tenants::{Sharer, Tenants, WHOLE};
use crate::world::World;

/// Reaches tell so many kinds of slots apart. All further kinds count as one.
const KINDS_MAX: usize = 64;

/// The input of the last dues. The dues hold until it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dues {
    /// Tenants that compete, their weights, and the minimums of their quotas in slots.
    parties: Vec<(TenantIx, i128, i128)>,
    /// Who could run the jobs of each tenant with jobs in line that no limit of their type holds
    /// back, sorted.
    reaches: BTreeMap<TenantIx, Vec<AudienceIx>>,
    is_reach_changed: bool,
    /// What [`crate::fleet::Fleet::n_changes`] was.
    n_changes: u64,
    /// Reaches that tell slots apart, sorted …
    kinds: Vec<AudienceIx>,
    /// … how many slots are in the same of them …
    groups: Vec<Group>,
    /// … and what `n_changes` was when they were counted.
    n_changes_counted: u64,
}

/// How a tenant stands to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareStatus {
    /// Slots that it uses.
    pub slots: u64,
    /// Slots that the tenants that compete use, and those that are free.
    pub slots_shared: u64,
    /// Slots of these that are its due.
    pub due: Fixed,
    /// How far it is behind, in time of its share. A tenant that is ahead has less than zero.
    pub behind: Millis,
    /// Whether its share is measured now.
    pub competes: bool,
}

impl World {
    /// Books the slot time since the last decision, and finds the tenants that compete from now on.
    pub(crate) fn settle_shares(&mut self) {
        if self.policies.share() {
            self.tenants.settle_accounts(self.now);
            self.observe_queues();
            self.find_reaches();
            self.review_competition();
            self.set_dues();
        }
        if self.policies.measure() {
            self.measure_tenants();
        }
    }

    /// Takes in how much work waits.
    fn observe_queues(&mut self) {
        let (now, usual) = (self.now, self.usual_length());
        let crowd = &self.queue.crowd;
        self.tenants.change_live(|ix, sharer| {
            let work = crowd.work_of(ix).total(usual);
            if work == 0 && sharer.tenant.account.queue.marks.is_empty() {
                return;
            }
            let served = i64::try_from(sharer.served(now)).unwrap_or(i64::MAX);
            account::observe(&mut sharer.tenant.account.queue, work, served, now);
        });
        self.tenants.forget_settled();
    }

    /// Takes in how well lengths were known, and which jobs are overdue.
    fn measure_tenants(&mut self) {
        let mut all = Trust::default();
        self.tenants.live().for_each(|ix| {
            account::add(&mut all, &self.tenants[ix].tenant.account.trust);
        });
        let spread = account::spread(&all);
        // While nothing has ended, nothing is known of how much work waits.
        let (now, is_any_known) = (self.now, self.usual.is_some());
        self.tenants.change_live(|_, sharer| {
            let account = &sharer.tenant.account;
            let skill = account::skill(&account.trust, None);
            let served = i64::try_from(sharer.served(now)).unwrap_or(i64::MAX);
            let overdue = account::overdue_until(&account.queue, skill, served);
            sharer.measured = Measured {
                skill,
                skill_among_all: account::skill(&account.trust, Some(spread)),
                overdue_until: overdue.filter(|_| is_any_known),
            };
        });
    }

    /// Takes in whose jobs could run where, for tenants where that may have changed.
    pub(crate) fn find_reaches(&mut self) {
        let mut moved = self.queue.crowd.take_moved();
        // Types at their limits close berths without moving any job.
        let has_limits = !self.fleet.catalogue.kinds_apart.is_empty();
        if has_limits || self.dues.n_changes != self.fleet.n_changes {
            moved.extend(self.queue.crowd.tenants().map(|(ix, _)| ix));
            moved.extend(self.dues.reaches.keys());
        } else {
            // So do quotas.
            let waiting = self.queue.crowd.tenants().map(|(ix, _)| ix);
            moved.extend(waiting.filter(|ix| self.tenants[*ix].has_quotas()));
        }
        for ix in moved {
            let reach = self.reach(ix);
            let before = self.dues.reaches.get(&ix);
            if before.map_or(&[][..], Vec::as_slice) == reach.as_slice() {
                continue;
            }
            self.dues.is_reach_changed = true;
            if reach.is_empty() {
                self.dues.reaches.remove(&ix);
            } else {
                self.dues.reaches.insert(ix, reach);
            }
        }
    }

    /// Finds the tenants that compete from now on, and sets the accounts of those that return.
    fn review_competition(&mut self) {
        let now = self.dues.reaches.keys().filter(|ix| self.tenants[**ix].contends());
        if now.clone().copied().eq(self.tenants.competing()) {
            return;
        }
        let now: Vec<TenantIx> = now.copied().collect();
        let before: Vec<TenantIx> = self.tenants.competing().collect();
        let shares: i128 = now.iter().map(|ix| self.tenants[*ix].share()).sum();
        let slack = i128::from(self.policies.slack_max().0) * i128::from(self.fleet.slots);
        let credit = slack * 1_000_000 / shares.max(1);
        for ix in &before {
            self.tenants.table[*ix].tenant.account.competes = false;
        }
        for ix in &now {
            let is_back = !before.contains(ix);
            let account = &mut self.tenants.table[*ix].tenant.account;
            account.competes = true;
            if is_back {
                account.ahead = account.ahead.max(fixed(-credit));
            }
        }
        // Accounts are told from where those are that compete.
        let weighed = now.iter().map(|ix| {
            let own = &self.tenants[*ix];
            i128::from(own.tenant.account.ahead.in_thousandths()) * own.share()
        });
        let mean = weighed.sum::<i128>() / shares.max(1);
        // One that goes stays as far from the others: what it was ahead is not forgiven.
        let gone = before.iter().filter(|ix| !now.contains(ix));
        for ix in now.iter().chain(gone) {
            let ahead = &mut self.tenants.table[*ix].tenant.account.ahead;
            *ahead = moved(*ahead, -mean);
        }
    }

    /// Whether a tenant other than this one competes for slots of the worker.
    pub(crate) fn is_contested(&self, worker: WorkerIx, by: TenantIx) -> bool {
        let table = &self.fleet.catalogue.audiences.table;
        let position = self.fleet.workers[worker].position;
        let rivals = self.tenants.competing().filter(|ix| *ix != by);
        let mut reached = rivals.filter_map(|ix| self.dues.reaches.get(&ix)).flatten();
        reached.any(|audience| table.get(*audience).is_some_and(|own| own.seats.has(position)))
    }

    /// Who could run the jobs of a tenant that no limit of their type holds back, sorted.
    fn reach(&self, ix: TenantIx) -> Vec<AudienceIx> {
        let audiences = &self.fleet.catalogue.audiences;
        let berths = self.queue.crowd.berths_of(ix).map(|berth| &audiences.berths[berth].key);
        let open = berths.filter(|key| {
            audiences.table[key.audience].slots > 0
                && !self.kind_is_full(key.kind)
                && !self.is_at_max(ix, key.pool)
        });
        let mut reach: Vec<AudienceIx> = open.map(|key| key.audience).collect();
        reach.sort_unstable();
        reach.dedup();
        reach
    }

    /// Whether the tenant has no slot left in the pool, or in any pool there is.
    fn is_at_max(&self, ix: TenantIx, pool: Option<NameIx>) -> bool {
        let sharer = &self.tenants[ix];
        match pool {
            Some(pool) => sharer.is_at_max(pool),
            None => {
                sharer.has_quotas() && self.fleet.pools.iter().all(|pool| sharer.is_at_max(*pool))
            }
        }
    }

    /// Sets what each tenant that competes is due, if anything changed.
    pub(crate) fn set_dues(&mut self) {
        let is_changed = std::mem::take(&mut self.dues.is_reach_changed)
            || self.dues.n_changes != self.fleet.n_changes;
        let parties = self.tenants.competing();
        let parties = parties.map(|ix| (ix, self.tenants[ix].share(), self.minimum(ix)));
        if !is_changed && parties.clone().eq(self.dues.parties.iter().copied()) {
            return;
        }
        self.dues.parties = parties.collect();
        let parties = &self.dues.parties;
        let reach = |ix: &TenantIx| self.dues.reaches.get(ix);
        let is_uniform = parties.windows(2).all(|two| reach(&two[0].0) == reach(&two[1].0));
        let parts: Vec<i128> = if is_uniform {
            parties.iter().map(|(_, share, _)| *share).collect()
        } else {
            self.count_groups();
            self.constrained()
        };
        let minimums: Vec<i128> = self.dues.parties.iter().map(|(.., min)| *min).collect();
        let parts = with_minimums(&parts, &minimums, i128::from(self.fleet.slots));
        let all: i128 = parts.iter().sum();
        for ((ix, ..), part) in self.dues.parties.iter().zip(&parts) {
            let due = part * i128::from(WHOLE) / all.max(1);
            self.tenants.table[*ix].due = i64::try_from(due).unwrap_or(WHOLE);
        }
        self.dues.n_changes = self.fleet.n_changes;
    }

    /// Slots that quotas give a tenant at least, in pools where its jobs could run.
    fn minimum(&self, ix: TenantIx) -> i128 {
        let reach = self.dues.reaches.get(&ix);
        let is_reached = |pool: NameIx| {
            reach.into_iter().flatten().any(|own| self.fleet.has_member_in(*own, pool))
        };
        let minimums = self.tenants[ix].minimums().filter(|(pool, _)| is_reached(*pool));
        minimums.map(|(_, min)| i128::from(min)).sum()
    }

    /// Counts the slots that the same reaches have in common, if those are others than before.
    fn count_groups(&mut self) {
        let parties = self.dues.parties.iter();
        let reaches = parties.filter_map(|(ix, ..)| self.dues.reaches.get(ix));
        let mut kinds: Vec<AudienceIx> = reaches.flatten().copied().collect();
        let is_counted = self.dues.n_changes_counted == self.fleet.n_changes;
        let is_known = |kind: &AudienceIx| self.dues.kinds.binary_search(kind).is_ok();
        let has_few = self.dues.kinds.len() <= KINDS_MAX;
        if is_counted && has_few && kinds.iter().all(is_known) {
            return;
        }
        if is_counted && has_few {
            // Where a queue runs empty and fills again, nothing is counted again.
            kinds.extend(&self.dues.kinds);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let table = &self.fleet.catalogue.audiences.table;
        let seats: Vec<&Bits> = kinds.iter().take(KINDS_MAX).map(|ix| &table[*ix].seats).collect();
        let mut groups: BTreeMap<u64, i64> = BTreeMap::new();
        for (_, seated) in self.fleet.workers.iter() {
            let bits = (0..).zip(&seats).filter(|(_, seats)| seats.has(seated.position));
            let bits = bits.fold(0, |bits, (at, _): (u32, _)| bits | 1 << at);
            *groups.entry(bits).or_default() += i64::from(seated.slots_serving());
        }
        self.dues.groups = groups.into_iter().map(|(bits, slots)| Group { bits, slots }).collect();
        self.dues.kinds = kinds;
        self.dues.n_changes_counted = self.fleet.n_changes;
    }

    /// The dues where not all tenants can use the same slots.
    fn constrained(&self) -> Vec<i128> {
        let Dues { kinds, groups, reaches, parties, .. } = &self.dues;
        let bit = |own: &AudienceIx| {
            let at = kinds.binary_search(own).unwrap_or(KINDS_MAX);
            1_u64 << at.min(KINDS_MAX - 1)
        };
        let own = parties.iter().map(|(ix, share, _)| Party {
            reach: reaches.get(ix).into_iter().flatten().fold(0, |reach, own| reach | bit(own)),
            weight: i64::try_from(*share).unwrap_or(i64::MAX),
        });
        let own: Vec<Party> = own.collect();
        // Tenants that can use the same slots are due the same for their weights.
        let mut merged = own.clone();
        merged.sort_by_key(|party| party.reach);
        merged.dedup_by(|next, party| {
            let is_same = next.reach == party.reach;
            if is_same {
                party.weight = party.weight.saturating_add(next.weight);
            }
            is_same
        });
        let levels = levels(&merged, groups);
        let part = |party: &Party| {
            let at = merged.binary_search_by_key(&party.reach, |own| own.reach).unwrap_or(0);
            let (slots, weight) = levels[at];
            ((i128::from(slots) * i128::from(party.weight)) << 20) / i128::from(weight)
        };
        own.iter().map(part).collect()
    }

    /// How long jobs usually run, by what ended lately; next to nothing while nothing has.
    pub(crate) fn usual_length(&self) -> Millis {
        self.usual.unwrap_or(Millis(1))
    }

    /// How a tenant stands to its share; `None` if the policy knows no shares, or not the tenant.
    pub fn share_of(&self, tenant: &TenantId) -> Option<ShareStatus> {
        let own = &self.tenants[self.tenants.find(tenant)?];
        let used = |sharer: &Sharer| u64::try_from(sharer.slots_used).unwrap_or(0);
        let (competes, part) = match self.policy.turn {
            Turn::FairQueue => (own.competes(), i128::from(own.due)),
            Turn::Deficit => {
                let weights = i128::from(self.tenants.counted.weight.in_thousandths().max(1));
                (own.n_queued > 0 && own.counts(), own.share() * i128::from(WHOLE) / weights)
            }
            Turn::FirstCome | Turn::QuotaFirst | Turn::TypeGroups => return None,
        };
        let shared = match self.policy.turn {
            Turn::FairQueue => {
                self.tenants.competing().map(|ix| used(&self.tenants[ix])).sum::<u64>()
            }
            Turn::FirstCome | Turn::QuotaFirst | Turn::Deficit | Turn::TypeGroups => {
                self.tenants.live().map(|ix| used(&self.tenants[ix])).sum::<u64>()
            }
        };
        let slots_shared = shared + self.fleet.slots_free;
        let all = i128::from(slots_shared) * 1_000;
        let due = if competes { fixed(all * part / i128::from(WHOLE)) } else { Fixed::ZERO };
        let ahead = i128::from(own.tenant.account.ahead.in_thousandths()) * own.share();
        // Thousandths of slot-milliseconds over thousandths of slots.
        let behind = -ahead / 1_000 / i128::from(due.in_thousandths().max(1));
        let behind = if competes { i64::try_from(behind).unwrap_or(0) } else { 0 };
        Some(ShareStatus { slots: used(own), slots_shared, due, behind: Millis(behind), competes })
    }
}

impl Tenants {
    /// Books the slot time since the last time against the dues that held then.
    pub(crate) fn settle_accounts(&mut self, now: Timestamp) {
        let served = |sharer: &Sharer| sharer.served(now) - sharer.settled;
        let (mut all, mut shares) = (0_i128, 0_i128);
        for ix in self.competing() {
            all += served(&self[ix]);
            shares += self[ix].share();
        }
        self.change_live(|_, sharer| {
            let own = sharer.served(now) - sharer.settled;
            sharer.settled += own;
            let contested = sharer.contested.settle(now);
            let share = sharer.share();
            let account = &mut sharer.tenant.account;
            if account.competes {
                let due = all * i128::from(sharer.due) / i128::from(WHOLE);
                account.ahead = moved(account.ahead, (own - due) * 1_000_000 / share);
            } else if shares == 0 {
                // While nobody competed, nobody took anything from anybody.
                account.ahead = Fixed::ZERO;
            } else {
                // What it took from others counts, against what those had that compete; what it did
                // not take pays back what it was ahead, and no more.
                let by = contested * 1_000_000 / share - all * 1_000_000 / shares;
                let least = account.ahead.min(Fixed::ZERO);
                account.ahead = moved(account.ahead, by).max(least);
            }
        });
    }

    /// Those whose shares are measured.
    pub(crate) fn competing(&self) -> impl Iterator<Item = TenantIx> + Clone {
        self.live().filter(|ix| self[*ix].competes())
    }
}

fn fixed(thousandths: i128) -> Fixed {
    let narrow = i64::try_from(thousandths);
    Fixed::thousandths(narrow.unwrap_or(if thousandths < 0 { i64::MIN } else { i64::MAX }))
}

fn moved(from: Fixed, by: i128) -> Fixed {
    fixed(i128::from(from.in_thousandths()) + by)
}
