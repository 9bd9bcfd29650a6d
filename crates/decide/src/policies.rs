//! Which policy decides: the site's, or the one of a pool.
//!
//! A pool may have a policy of its own. It decides on the jobs that name the pool, or whose type
//! does, and the site's policy decides on all others. Each decision goes through the pools with
//! policies of their own first, by their names, and then through the rest.

use std::collections::BTreeMap;

use model::policy::{Aging, Order, Policy, Rule, Turn};
use model::{Fixed, Millis, Name};

use crate::catalogue::FitKey;
use crate::table::{JobIx, NameIx};
use crate::world::World;

/// The policies as they were given, and with the weights of rules multiplied in.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub(crate) given: Policy,
    pub(crate) site: Policy,
    pools: BTreeMap<NameIx, (Policy, Policy)>,
}

impl Policies {
    pub(crate) fn new(given: Policy) -> Self {
        Self { site: effective(&given), given, pools: BTreeMap::new() }
    }

    /// What decides on jobs of this pool.
    pub(crate) fn of(&self, pool: Option<NameIx>) -> &Policy {
        let own = pool.and_then(|pool| self.pools.get(&pool));
        own.map_or(&self.site, |(_, policy)| policy)
    }

    /// The pool, if it has a policy of its own.
    pub(crate) fn part(&self, pool: Option<NameIx>) -> Option<NameIx> {
        pool.filter(|pool| self.pools.contains_key(pool))
    }

    /// Pools with policies of their own, as they were given.
    pub(crate) fn given_to_pools(&self) -> impl Iterator<Item = (NameIx, &Policy)> {
        self.pools.iter().map(|(pool, (given, _))| (*pool, given))
    }

    pub(crate) fn set_site(&mut self, given: Policy) {
        self.site = effective(&given);
        self.given = given;
    }

    pub(crate) fn set_pool(&mut self, pool: NameIx, given: Option<Policy>) {
        match given {
            Some(given) => drop(self.pools.insert(pool, (given.clone(), effective(&given)))),
            None => drop(self.pools.remove(&pool)),
        }
    }

    /// Whether some part goes by types in turn.
    pub(crate) fn go_by_types(&self) -> bool {
        self.any(|policy| policy.turn == Turn::TypeGroups)
    }

    /// Whether slots are taken back in some part.
    pub(crate) fn any_preempts(&self) -> bool {
        self.any(|policy| policy.preemption.enabled)
    }

    /// Whether the costs at the beginning of a round count in some part.
    pub(crate) fn any_is_literal(&self) -> bool {
        let all = self.pools.values().map(|(_, policy)| policy);
        all.chain([&self.site]).any(|policy| policy.literal)
    }

    /// For so long evictions are remembered: the longest cooldown of any part.
    pub(crate) fn cooldown_max(&self) -> Millis {
        let all = self.pools.values().map(|(_, policy)| policy);
        let cooldowns = all.chain([&self.site]).map(|policy| policy.eviction_cooldown);
        cooldowns.max().unwrap_or(Millis::ZERO)
    }

    /// The longest slack of the parts that share slot time: so far behind a tenant may come back.
    pub(crate) fn slack_max(&self) -> Millis {
        let all = self.pools.values().map(|(_, policy)| policy);
        let sharing = all.chain([&self.site]).filter(|policy| shares(policy));
        sharing.map(|policy| policy.fairness.slack).max().unwrap_or(Millis::ZERO)
    }

    /// Whether accounts of tenants count in some part: slot time is shared, or shorter jobs go
    /// first.
    pub(crate) fn share(&self) -> bool {
        self.any(shares)
    }

    /// Whether some part goes by what was measured of the lengths of tenants' jobs.
    pub(crate) fn measure(&self) -> bool {
        self.share() || self.any(|policy| policy.guard)
    }

    fn any(&self, is_so: impl Fn(&Policy) -> bool) -> bool {
        is_so(&self.site) || self.pools.values().any(|(_, policy)| is_so(policy))
    }
}

impl World {
    /// The parts that are decided on one after the other; `None` is all that is in no other.
    pub(crate) fn parts(&self) -> Vec<Option<NameIx>> {
        let mut pools: Vec<NameIx> = self.policies.pools.keys().copied().collect();
        pools.sort_by(|one, two| self.names.name(*one).cmp(self.names.name(*two)));
        pools.into_iter().map(Some).chain([None]).collect()
    }

    /// From here on this part is decided on, by its policy.
    pub(crate) fn enter_part(&mut self, part: Option<NameIx>) {
        if self.part != part {
            self.part = part;
            self.policy = self.policies.of(part).clone();
        }
    }

    /// Whether jobs of this pool are in the part that is decided on.
    pub(crate) fn is_in_part(&self, pool: Option<NameIx>) -> bool {
        self.policies.part(pool) == self.part
    }

    /// The part that a waiting job is in.
    pub(crate) fn part_of(&self, job: JobIx) -> Option<NameIx> {
        let FitKey { pool, .. } = self.fleet.catalogue.fit_of(self.queue.jobs[job].class).key;
        self.policies.part(pool)
    }

    /// A pool has this policy of its own, or none any more.
    pub(crate) fn set_pool_policy(&mut self, pool: &Name, policy: Option<Policy>) {
        let pool = self.names.intern(pool);
        let known = self.policies.pools.get(&pool).map(|(given, _)| given);
        if known == policy.as_ref() {
            return;
        }
        self.policies.set_pool(pool, policy);
        self.use_policies();
    }

    /// The site has this policy.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policies.set_site(policy);
        self.use_policies();
    }

    /// Puts every worker and job where the policies say.
    fn use_policies(&mut self) {
        self.part = None;
        self.policy = self.policies.site.clone();
        self.fleet.reseat();
        self.fleet.catalogue.are_kinds_apart = self.policies.go_by_types();
        self.rebuild_berths(|_| true);
        self.queue.rebuild(&mut self.fleet.catalogue, &self.policies, self.now);
    }
}

/// Whether accounts of tenants count under the policy.
pub(crate) fn shares(policy: &Policy) -> bool {
    policy.turn == Turn::FairQueue || policy.order == Order::Shortest
}

/// The policy with the weights of rules multiplied into the magnitudes they stand for.
fn effective(policy: &Policy) -> Policy {
    let weigh = |rule: Rule, magnitude: i64| {
        let weight = policy.rules.get(&rule).copied().unwrap_or(Fixed::ZERO);
        Fixed::thousandths(magnitude).times(weight).in_thousandths()
    };
    let aging = policy.aging;
    let aging = Aging {
        priority: weigh(Rule::Priority, aging.priority),
        age: weigh(Rule::Age, aging.age),
        rarity: weigh(Rule::Rarity, aging.rarity),
        on_demand: weigh(Rule::OnDemand, aging.on_demand),
        on_demand_age: weigh(Rule::OnDemand, aging.on_demand_age),
        on_demand_age_max: aging.on_demand_age_max,
        length: aging.length.times(policy.rules.get(&Rule::Length).copied().unwrap_or(Fixed::ZERO)),
    };
    Policy { aging, ..policy.clone() }
}
