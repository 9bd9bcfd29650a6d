//! The presets: each a [`Policy`] with its documented numbers.

use std::collections::BTreeMap;

use crate::policy::{Aging, Entry, Fairness, Order, Policy, Preemption, Preset, Rule, Seat, Turn};
use crate::{Fixed, Millis};

/// The rules of `simple`.
const SIMPLE: &[Rule] = &[
    Rule::MissingPaths,
    Rule::MissingBytes,
    Rule::RescoreWait,
    Rule::Dependents,
    Rule::Wait,
    Rule::Light,
    Rule::ReserveFetch,
];

/// The rules that `resource-aware` adds to `simple`. A policy can add `org-share`.
const RESOURCES: &[Rule] =
    &[Rule::ResourceFit, Rule::Saturation, Rule::PreferLocal, Rule::Network, Rule::Disk];

/// The rules of `aging`.
const AGING: &[Rule] = &[Rule::Priority, Rule::Age, Rule::Rarity, Rule::OnDemand];

/// The rules of `balanced`.
const BALANCED: &[Rule] =
    &[Rule::Length, Rule::Specialist, Rule::Hint, Rule::MissingBytes, Rule::Headroom, Rule::Load];

/// The rules of samples of workers.
const SAMPLED: &[Rule] = &[Rule::Rank, Rule::Free, Rule::Hint];

impl Policy {
    /// The same without every preference that does not shorten the mean wait: shares, age,
    /// priority, interactive jobs and rare work.
    #[must_use]
    pub fn unfair(mut self) -> Self {
        self.turn = Turn::FirstCome;
        self.fairness.is_bounded = false;
        self.fairness.interactive = Fixed::ZERO;
        self.guard = false;
        self
    }
}

impl Preset {
    /// The policy of this preset.
    pub fn policy(self) -> Policy {
        let (entry, turn, order, seat) = match self {
            Self::PriorityAge => {
                (Entry::JobFirst, Turn::FirstCome, Order::PriorityAge, Seat::FirstMatch(None))
            }
            Self::Cohort => {
                (Entry::JobFirst, Turn::QuotaFirst, Order::PriorityAge, Seat::FirstMatch(None))
            }
            Self::Simple | Self::ResourceAware => {
                (Entry::WorkerFirst, Turn::FirstCome, Order::Rules, Seat::Asking)
            }
            Self::FairShare => {
                (Entry::WorkerFirst, Turn::Deficit, Order::PriorityAge, Seat::Asking)
            }
            Self::Aging => (Entry::JobFirst, Turn::FirstCome, Order::Aging, Seat::FewestTypes),
            Self::Detected => (Entry::JobFirst, Turn::TypeGroups, Order::Proposal, Seat::MostFree),
            Self::Balanced => (Entry::JobFirst, Turn::FairQueue, Order::Shortest, Seat::Fit),
        };
        let is_assigner = matches!(self, Self::PriorityAge | Self::Cohort);
        let is_balanced = self == Self::Balanced;
        Policy {
            preset: self,
            entry,
            turn,
            order,
            seat,
            priority_percentage: 100,
            failure_backoff: if is_assigner { Millis::from_secs(5) } else { Millis::ZERO },
            proactive_fetch_to_capacity: false,
            proactive_fetch_literal: false,
            literal: false,
            preemption: Preemption {
                enabled: false,
                delay: Millis::from_secs(20),
                min_run: Millis::ZERO,
                evictions_max: 3,
            },
            eviction_cooldown: Millis::from_secs(600),
            aging: Aging::DOCUMENTED,
            fairness: Fairness::BALANCED,
            rules: self.rules().iter().map(|rule| (*rule, Fixed::ONE)).collect::<BTreeMap<_, _>>(),
            guard: is_balanced,
            reserve: is_balanced,
            reserve_wait_max: Millis::from_secs(3_600),
        }
    }

    /// The rules that count, unless their weight is zero.
    pub fn rules(self) -> Vec<Rule> {
        match self {
            Self::PriorityAge | Self::Cohort => SAMPLED.to_vec(),
            Self::Simple => SIMPLE.to_vec(),
            Self::ResourceAware => [SIMPLE, RESOURCES].concat(),
            Self::FairShare | Self::Detected => Vec::new(),
            Self::Aging => AGING.to_vec(),
            Self::Balanced => BALANCED.to_vec(),
        }
    }
}

impl Aging {
    /// The numbers of the source text: a step of priority is worth 64 seconds of waiting. The extra
    /// slope of on-demand ends after an hour, and has no end in the text.
    pub const DOCUMENTED: Self = Self {
        priority: 1_024,
        age: 16,
        rarity: 500,
        on_demand: 4_096,
        on_demand_age: 32,
        on_demand_age_max: Millis::from_secs(3_600),
        length: Fixed::ZERO,
    };
}

impl Fairness {
    /// The numbers of `balanced`: decision 42 derives them.
    pub const BALANCED: Self = Self {
        slack: Millis::from_secs(60),
        interactive: Fixed::thousandths(500),
        is_bounded: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_based_presets_have_the_documented_number_of_rules() {
        assert_eq!(Preset::Simple.policy().rules.len(), 7);
        assert_eq!(Preset::ResourceAware.policy().rules.len(), 12);
        assert!(!Preset::ResourceAware.policy().rules.contains_key(&Rule::OrgShare));
    }

    #[test]
    fn a_preset_is_found_by_its_name() {
        for preset in Preset::ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
        assert_eq!(Preset::from_name("fastest"), None);
    }
}
