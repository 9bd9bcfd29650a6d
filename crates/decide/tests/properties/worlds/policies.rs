//! How to decide in a world: a preset with some things set otherwise, and what its rules know.

use std::collections::BTreeMap;

use model::policy::{Fairness, Order, Preemption, Rule, Sampling, Seat};
use model::{Averages, Cluster, Fixed, Millis, Name, Policy, Preset};
use proptest::bool::weighted as chance;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::Union;

use super::parts::{POOLS, age_of, pool};

/// A policy that started from `preset`, with some things set otherwise.
pub(super) fn policy(preset: Preset) -> impl Strategy<Value = Policy> {
    let choice = (
        select(vec![100_u32, 100, 90, 50, 0]),
        option::weighted(0.5, (1..=4_u32, 1..=3_u32)),
        select(vec![None, Some(0), Some(5_000_i64)]),
        chance(0.3),
        chance(0.15),
    );
    let evictions_max = select(vec![0_u32, 1, 3, 3]);
    let preemption = (any::<bool>(), age_of(&[0, 20_000]), age_of(&[0, 0, 60_000]), evictions_max);
    let guard = (chance(0.7), any::<bool>(), age_of(&[0, 60_000, 3_600_000, 3_600_001]));
    let fairness = (
        age_of(&[0, 1, 60_000, 60_000, 3_600_000]),
        select(vec![0_i64, 500, 500, 1_000]),
        chance(0.8),
    );
    let rest = (any::<bool>(), guard, age_of(&[0, 600_000]), rule_weights(preset));
    (choice, preemption, rest, fairness).prop_map(move |(choice, preemption, rest, fairness)| {
        let (priority_percentage, sampling, backoff, to_capacity, literal) = choice;
        let (enabled, delay, min_run, evictions_max) = preemption;
        let (keeps_guard, (guard, reserve, wait_max), eviction_cooldown, rules) = rest;
        let mut policy = preset.policy();
        policy.priority_percentage = priority_percentage;
        if let (Seat::FirstMatch(_), Some((sample_size, max_attempts))) = (policy.seat, sampling) {
            let sampling = Sampling { max_attempts, ..Sampling::new(sample_size) };
            policy.seat = Seat::FirstMatch(Some(sampling));
        }
        policy.failure_backoff = backoff.map_or(policy.failure_backoff, Millis);
        policy.proactive_fetch_to_capacity = to_capacity;
        policy.proactive_fetch_literal = literal;
        policy.preemption = Preemption { enabled, delay, min_run, evictions_max };
        policy.eviction_cooldown = eviction_cooldown;
        policy.rules.extend(rules);
        let (slack, interactive, is_bounded) = fairness;
        let interactive = Fixed::thousandths(interactive);
        policy.fairness = Fairness { slack, interactive, is_bounded };
        if !keeps_guard {
            policy.guard = guard;
            policy.reserve = reserve;
            policy.reserve_wait_max = wait_max;
        }
        policy
    })
}

/// Some policy.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    Union::new(Preset::ALL.map(|preset| policy(preset).boxed()))
}

/// Policies of some pools.
pub(super) fn of_pools() -> impl Strategy<Value = BTreeMap<Name, Policy>> {
    vec(option::weighted(0.4, any_policy()), POOLS.len()).prop_map(|all| {
        let own = all.into_iter().enumerate();
        own.filter_map(|(at, policy)| Some((pool(at), policy?))).collect()
    })
}

/// Other weights for some rules of `preset`; with `org-share` for those that add rules up.
fn rule_weights(preset: Preset) -> impl Strategy<Value = BTreeMap<Rule, Fixed>> {
    let mut rules = preset.rules();
    if preset.policy().order == Order::Rules {
        rules.push(Rule::OrgShare);
    }
    let weight = select(vec![0_i64, 500, 1_000, 2_000]).prop_map(Fixed::thousandths);
    let n_most = rules.len().min(3);
    (subsequence(rules, 0..=n_most), weight)
        .prop_map(|(rules, weight)| rules.into_iter().map(|rule| (rule, weight)).collect())
}

/// Averages of the fleet; any may be missing.
pub(super) fn cluster() -> impl Strategy<Value = Cluster> {
    vec(averages(), 3).prop_map(|all| Cluster { avg_5m: all[0], avg_1h: all[1], avg_24h: all[2] })
}

fn averages() -> impl Strategy<Value = Averages> {
    let number = option::of(prop_oneof![
        select(vec![0_i64, 1, 1_000, 60_000, 1 << 33]).prop_map(Fixed::thousandths),
    ]);
    vec(number, 9).prop_map(|all| Averages {
        wait_s: all[0],
        duration_s: all[1],
        missing_paths: all[2],
        missing_mib: all[3],
        dependencies: all[4],
        cpu_ms: all[5],
        oom_rate: all[6],
        network_mbps: all[7],
        disk_bytes: all[8],
    })
}
