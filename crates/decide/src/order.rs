//! Which job goes first: a key that does not change with time, and the score it stands for.
//!
//! **Invariant:** within a [`Mode`], a smaller key means a higher score at every instant, because
//! all scores of a mode grow alike. So queues are sorted once, not at every decision.

use model::maxima::PRIORITY_SCORED_MAX;
use model::policy::{Aging, Order, Policy, Rule};
use model::{Fixed, JobId, Millis, Points, Timestamp};

/// Where a job stands among those of its line: smallest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey {
    pub(crate) major: i64,
    pub(crate) ready: Timestamp,
    pub(crate) id: JobId,
}

/// How a job's score grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// With its age.
    Batch,
    /// Faster: a person waits.
    OnDemand,
    /// With its age again: the person has waited so long that the bonus grows no more.
    OnDemandCapped,
}

/// What of a job its order depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) priority: i32,
    pub(crate) on_demand: bool,
    pub(crate) created: Timestamp,
    pub(crate) ready: Timestamp,
    /// Frozen when the job becomes ready, so that history never re-keys the queue.
    pub(crate) estimate: Option<Millis>,
}

/// A prediction beyond this counts as this: about eleven days.
const ESTIMATE_SCORED_MAX: i64 = 1_000_000_000;

impl Standing {
    pub(crate) fn mode(&self, policy: &Policy, now: Timestamp) -> Mode {
        match policy.order {
            Order::Aging if self.on_demand => {
                if now.since(self.ready) < policy.aging.on_demand_age_max {
                    Mode::OnDemand
                } else {
                    Mode::OnDemandCapped
                }
            }
            Order::Aging | Order::PriorityAge | Order::Rules | Order::Proposal => Mode::Batch,
        }
    }

    /// When its mode changes by itself.
    pub(crate) fn mode_ends(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        let ends = self.mode(policy, now) == Mode::OnDemand;
        ends.then(|| self.ready + policy.aging.on_demand_age_max)
    }

    pub(crate) fn major(&self, policy: &Policy, mode: Mode) -> i64 {
        match policy.order {
            Order::PriorityAge => -i64::from(self.priority),
            Order::Rules => 0,
            Order::Proposal => self.created.0,
            Order::Aging => {
                let aging = &policy.aging;
                let slope = match mode {
                    Mode::Batch | Mode::OnDemandCapped => aging.age,
                    Mode::OnDemand => aging.age + aging.on_demand_age,
                };
                slope * self.ready.0 - self.priority_points(aging) - self.length_points(aging)
            }
        }
    }

    /// Its score under [`Order::Aging`] at `now`, when `slots_free` free slots could run it.
    pub(crate) fn score(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> Fixed {
        Fixed::thousandths(self.parts(aging, now, slots_free).into_iter().sum())
    }

    /// What each part of its score says.
    pub(crate) fn points(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> Vec<Points> {
        let rules = [Rule::Priority, Rule::Age, Rule::Rarity, Rule::OnDemand, Rule::Length];
        let said = rules.into_iter().zip(self.parts(aging, now, slots_free));
        let said = said.filter(|(_, points)| *points != 0);
        said.map(|(rule, points)| Points { rule, points: Fixed::thousandths(points) }).collect()
    }

    /// Priority, age, rarity, on-demand and length, in thousandths of points.
    fn parts(&self, aging: &Aging, now: Timestamp, slots_free: u64) -> [i64; 5] {
        let age = now.since(self.ready).0;
        let rarity = match i64::try_from(slots_free) {
            Ok(slots) if slots > 0 => 1_000 * (aging.rarity / slots),
            _ => 0,
        };
        let on_demand = if self.on_demand {
            1_000 * aging.on_demand + aging.on_demand_age * age.min(aging.on_demand_age_max.0)
        } else {
            0
        };
        let (priority, length) = (self.priority_points(aging), self.length_points(aging));
        [priority, aging.age * age, rarity, on_demand, length]
    }

    fn priority_points(&self, aging: &Aging) -> i64 {
        let priority = self.priority.clamp(-PRIORITY_SCORED_MAX, PRIORITY_SCORED_MAX);
        1_000 * aging.priority * i64::from(priority)
    }

    fn length_points(&self, aging: &Aging) -> i64 {
        let estimate = self.estimate.map_or(0, |estimate| estimate.0.min(ESTIMATE_SCORED_MAX));
        -aging.age * (estimate * aging.length.in_thousandths() / 1_000)
    }
}
