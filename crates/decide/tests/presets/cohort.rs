//! `cohort`: each pool by itself; tenants below their minimum, then those below their maximum.

use model::{Millis, Preset, Reason};

use crate::world::{
    World, decided, deferred, detail, jobs_placed, pairs, place_of, placed, reason,
};

const PRESET: Preset = Preset::Cohort;

#[test]
fn a_tenant_below_its_minimum_goes_before_a_higher_priority() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("a").min("default", 1);
        world.job("1").tenant("a").priority(-9);
        world.job("2").tenant("b").priority(9).age_s(900);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_tenant_at_its_minimum_goes_like_everybody_else() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").min("default", 1);
        world.attempt("9", "w").tenant("a");
        world.job("1").tenant("a");
        world.job("2").tenant("b").priority(1);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn what_was_placed_in_this_round_counts_towards_the_minimum() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.tenant("a").min("default", 1);
        world.job("1").tenant("a").priority(-9);
        world.job("2").tenant("a").priority(-9);
        world.job("3").tenant("b").priority(9);
    });
    assert_eq!(jobs_placed(&decision), ["1", "3", "2"]);
}

#[test]
fn of_those_below_their_minimum_the_best_job_goes_first() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        for (tenant, job, priority) in [("a", "1", 1), ("b", "2", 3), ("c", "3", 2)] {
            world.tenant(tenant).min("default", 1);
            world.job(job).tenant(tenant).priority(priority);
        }
    });
    assert_eq!(jobs_placed(&decision), ["2", "3", "1"]);
}

#[test]
fn quotas_count_slots_and_not_jobs() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(4);
        world.tenant("a").min("default", 2).max("default", 3);
        world.attempt("9", "w").tenant("a").slots(2);
        world.job("1").tenant("a").slots(2).age_s(60);
        world.job("2").tenant("b").slots(1);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtMax));
}

#[test]
fn a_job_that_would_exceed_the_maximum_waits_and_a_narrower_one_goes() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").max("default", 3);
        world.attempt("9", "w").tenant("a").slots(2);
        world.job("1").tenant("a").slots(2).priority(1);
        world.job("2").tenant("a");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtMax));
}

#[test]
fn the_maximum_holds_within_a_round() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").max("default", 2);
        for job in ["1", "2", "3"] {
            world.job(job).tenant("a");
        }
    });
    assert_eq!(jobs_placed(&decision), ["1", "2"]);
    assert_eq!(reason(&decision, "3"), Some(Reason::TenantAtMax));
    assert_eq!(deferred(&decision), []);
}

#[test]
fn a_tenant_without_a_quota_has_no_maximum() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(50);
        world.tenant("a").max("elsewhere", 0);
        for job in 0..50 {
            world.job(&format!("{job}")).tenant("a");
        }
    });
    assert_eq!(jobs_placed(&decision).len(), 50);
}

#[test]
fn a_maximum_of_zero_allows_nothing_in_its_pool() {
    let decision = decided(PRESET, |world| {
        world.worker("w").pool("red");
        world.tenant("a").max("red", 0);
        world.job("1").tenant("a");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtMax));
}

#[test]
fn each_pool_is_a_lane_of_its_own() {
    let decision = decided(PRESET, |world| {
        world.worker("b1").pool("blue");
        world.worker("r1").pool("red");
        world.tenant("a").min("red", 1);
        for (pool, low, high) in [("blue", "1", "2"), ("red", "3", "4")] {
            world.job(low).tenant("a").pool(pool);
            world.job(high).tenant("b").pool(pool).priority(5);
        }
    });
    assert_eq!(place_of(&decision, "2"), "b1");
    assert_eq!(place_of(&decision, "3"), "r1");
    assert_eq!(jobs_placed(&decision).len(), 2);
}

#[test]
fn usage_in_one_pool_does_not_count_in_another() {
    let decision = decided(PRESET, |world| {
        world.worker("b1").pool("blue").slots(2);
        world.worker("r1").pool("red");
        world.tenant("a").max("blue", 1).max("red", 1);
        world.attempt("9", "b1").tenant("a");
        world.job("1").tenant("a").pool("red");
        world.job("2").tenant("a").pool("blue");
    });
    assert_eq!(placed(&decision), pairs([("1", "r1")]));
    assert_eq!(reason(&decision, "2"), Some(Reason::TenantAtMax));
}

#[test]
fn a_job_of_any_pool_goes_where_its_tenant_is_below_its_maximum() {
    let decision = decided(PRESET, |world| {
        world.worker("b1").pool("blue");
        world.worker("r1").pool("red");
        world.tenant("a").max("blue", 0);
        world.job("1").tenant("a");
    });
    assert_eq!(placed(&decision), pairs([("1", "r1")]));
}

/// Tenant `a` may use two slots, uses one, and was evicted so many seconds ago in `pool`.
fn after_eviction(tenant: &str, pool: &str, seconds_ago: i64) -> Option<Reason> {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.worker("other").pool("other").types(&["none"]);
        world.tenant("a").max("default", 2);
        world.tenant("b");
        world.attempt("9", "w").tenant("a");
        world.evicted(tenant, pool, seconds_ago);
        world.job("1").tenant("a").kind("pdf");
    });
    reason(&decision, "1")
}

#[test]
fn an_eviction_lowers_the_maximum_for_ten_minutes() {
    assert_eq!(after_eviction("a", "default", 0), Some(Reason::TenantAtMax));
    assert_eq!(after_eviction("a", "default", 599), Some(Reason::TenantAtMax));
    assert_eq!(after_eviction("a", "default", 601), None);
}

#[test]
fn an_eviction_counts_for_its_tenant_and_pool_only() {
    assert_eq!(after_eviction("b", "default", 1), None);
    assert_eq!(after_eviction("a", "other", 1), None);
}

/// How many of five jobs go, of a tenant with a minimum of two and a maximum of four.
fn n_placed_after(describe: impl FnOnce(&mut World)) -> usize {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").min("default", 2).max("default", 4);
        for job in ["1", "2", "3", "4", "5"] {
            world.job(job).tenant("a");
        }
        describe(world);
    });
    jobs_placed(&decision).len()
}

#[test]
fn each_eviction_lowers_the_maximum_by_one_but_never_below_the_minimum() {
    let evicted = |times: i64| {
        n_placed_after(|world| (0..times).for_each(|ago| world.evicted("a", "default", ago)))
    };
    assert_eq!(evicted(0), 4);
    assert_eq!(evicted(1), 3);
    assert_eq!(evicted(2), 2);
    assert_eq!(evicted(3), 2);
    assert_eq!(evicted(9), 2);
}

#[test]
fn the_cooldown_is_as_long_as_the_policy_says() {
    let with = |cooldown_s| {
        n_placed_after(|world| {
            world.policy().eviction_cooldown = Millis::from_secs(cooldown_s);
            world.evicted("a", "default", 50);
        })
    };
    assert_eq!(with(0), 4);
    assert_eq!(with(49), 4);
    assert_eq!(with(51), 3);
}

#[test]
fn a_tenant_without_a_maximum_is_not_limited_by_evictions() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").min("default", 1);
        world.evicted("a", "default", 1);
        world.job("1").tenant("a");
        world.job("2").tenant("a");
    });
    assert_eq!(jobs_placed(&decision), ["1", "2"]);
}

#[test]
fn the_detail_tells_the_slots_in_use_and_the_maximum_after_evictions() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").max("default", 2);
        world.attempt("9", "w").tenant("a");
        world.evicted("a", "default", 30);
        world.job("1").tenant("a");
    });
    assert!(detail(&decision, "1").contains("1 of 1"), "{}", detail(&decision, "1"));
}

#[test]
fn jobs_that_found_no_worker_are_deferred_here_too() {
    let decision = decided(PRESET, |world| world.job("1").done());
    assert_eq!(deferred(&decision), [("1".to_owned(), 5_000)]);
}
