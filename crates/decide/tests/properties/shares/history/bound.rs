//! What no history may break: how far one tenant may be ahead of another.

use std::collections::BTreeSet;

use model::TenantId;

use super::{History, id};

/// Since when two tenants were backlogged for the same slots under the same weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) served: [i64; 2],
    /// How far the first was ahead of the second in its account when the interval began.
    pub(super) offset: i128,
    /// The most slack of the second since then.
    pub(super) slack: i128,
}

/// Thousandths of a slot-millisecond for each unit of weight, as in accounts.
fn per_weight(slot_ms: i64, weight: i64) -> i128 {
    i128::from(slot_ms) * 1_000 / i128::from(weight)
}

impl History {
    /// How far the tenant may be passed by others: `fair_slack` of what it is due at most.
    fn slack_of(&self, tenant: usize, reaches: &[BTreeSet<usize>]) -> i128 {
        let own = self.sharers[tenant].weight;
        let rivals = || (0..reaches.len()).filter(|at| !reaches[*at].is_empty());
        let has_quotas = self.sharers.iter().any(|own| !own.quotas.is_empty());
        let is_uniform = !has_quotas && rivals().all(|at| reaches[at] == reaches[tenant]);
        let weights: i64 = rivals().map(|at| self.sharers[at].weight).sum();
        let weight = if is_uniform { weights } else { own };
        i128::from(self.slack.0) * self.slots() * 1_000 / i128::from(weight)
    }

    /// Whether the tenant goes before all that have no minimum, at any share.
    fn has_min(&self, tenant: usize) -> bool {
        self.sharers[tenant].quotas.values().any(|(min, _)| *min > 0)
    }

    /// Whether the tenant may take no more slots in some pool.
    fn is_at_max(&self, tenant: usize) -> bool {
        let used = |pool: usize| {
            let own = self.running.values().filter(|run| run.work.tenant == tenant);
            own.filter(|run| self.workers.get(&run.worker).is_some_and(|own| own.pool == pool))
                .count()
        };
        let mut quotas = self.sharers[tenant].quotas.iter();
        quotas.any(|(pool, (_, max))| {
            max.is_some_and(|max| used(*pool) >= usize::try_from(max).unwrap_or(usize::MAX))
        })
    }

    /// The tenant has another weight or quota: from here on intervals begin anew.
    pub(super) fn forget_intervals(&mut self, tenant: usize) {
        self.intervals.retain(|(one, two), _| *one != tenant && *two != tenant);
    }

    /// A tenant does not compete while it is at a maximum.
    pub(super) fn end_intervals_at_max(&mut self) {
        for tenant in (0..self.sharers.len()).filter(|at| self.is_at_max(*at)).collect::<Vec<_>>() {
            self.forget_intervals(tenant);
        }
    }

    /// Intervals end when a tenant is not backlogged, or no longer for the same slots.
    pub(super) fn begin_intervals(&mut self, reaches: &[BTreeSet<usize>]) -> Result<(), String> {
        let count = reaches.len();
        let pairs = (0..count).flat_map(|one| (0..count).map(move |two| (one, two)));
        let is_shared = |(one, two): &(usize, usize)| {
            let is_even = |at: &usize| !self.has_min(*at) && !self.is_at_max(*at);
            one != two
                && !reaches[*one].is_empty()
                && reaches[*one] == reaches[*two]
                && is_even(one)
                && is_even(two)
        };
        let shared: BTreeSet<(usize, usize)> = pairs.filter(is_shared).collect();
        self.intervals.retain(|pair, _| shared.contains(pair));
        let is_known = shared.iter().all(|pair| self.intervals.contains_key(pair));
        let tenants = if is_known { Vec::new() } else { self.world.snapshot().tenants };
        for pair in shared {
            let slack = self.slack_of(pair.1, reaches);
            if let Some(interval) = self.intervals.get_mut(&pair) {
                interval.slack = interval.slack.max(slack);
                continue;
            }
            let ahead = |at: usize| {
                let own = tenants.iter().find(|own| own.id == TenantId::number(id(at)));
                own.map_or(0, |own| i128::from(own.account.ahead.in_thousandths()))
            };
            let offset = ahead(pair.0) - ahead(pair.1);
            // The slack and the longest job, each for every slot, of both.
            let running = self.running.values().map(|run| self.now.since(run.started).0);
            let longest = self.longest.max(running.max().unwrap_or(0));
            let most =
                i128::from(longest + self.slack.0) * self.slots_max * 2_000 + self.rounding();
            if offset.abs() > most {
                return Err(format!("{pair:?} begin {offset} apart, more than {most}"));
            }
            let served = [self.served(pair.0), self.served(pair.1)];
            self.intervals.insert(pair, Interval { served, offset, slack });
        }
        Ok(())
    }

    /// How far the first is ahead of the second, by what both were served since the interval began.
    fn lead(&self, (one, two): (usize, usize), interval: Interval) -> i128 {
        let had =
            |at: usize, served: i64| per_weight(self.served(at) - served, self.sharers[at].weight);
        had(one, interval.served[0]) - had(two, interval.served[1])
    }

    /// What rounding may add up to, and the millisecond for which each slot in use counts.
    fn rounding(&self) -> i128 {
        (self.slots_max + 1) * 1_000 + self.n_decisions * 50
    }

    /// A job of the tenant goes to the worker: nobody else who could use it may be further behind
    /// than the slack.
    pub(super) fn check_placement(&self, one: usize, worker: usize) -> Result<(), String> {
        for two in (0..self.sharers.len()).filter(|two| *two != one) {
            if !self.reach(two).contains(&worker) || self.is_at_max(two) {
                continue;
            }
            let pair = (one, two);
            let Some(interval) = self.intervals.get(&pair).copied() else { continue };
            let (lead, slack) = (self.lead(pair, interval) + interval.offset, interval.slack);
            if lead > slack + self.rounding() {
                return Err(format!("{pair:?}: placed {lead} ahead, {slack} allowed"));
            }
        }
        Ok(())
    }

    /// What the first is ahead by now: since its last job was placed it had one job on each slot.
    pub(super) fn check_interval(&self, pair: (usize, usize)) -> Result<(), String> {
        let interval = self.intervals[&pair];
        let own = self.running.values().filter(|run| run.work.tenant == pair.0);
        let running = own.map(|run| self.now.since(run.started).0).max().unwrap_or(0);
        let slots = i64::try_from(self.slots_max).unwrap_or(i64::MAX);
        let jobs = per_weight(slots * self.longest.max(running), self.sharers[pair.0].weight);
        let lead = self.lead(pair, interval);
        let most = (interval.slack - interval.offset).max(0) + jobs + self.rounding();
        if lead > most {
            return Err(format!("{pair:?} are {lead} apart, more than {most}"));
        }
        Ok(())
    }
}
