//! `fair-share`: tenants with nothing done in the window, then the one furthest behind its share.

use model::{Decision, Preset, Reason};

use crate::world::{World, decided, jobs_placed, pairs, placed, reason};

const PRESET: Preset = Preset::FairShare;

/// So many one-slot workers ask one after the other.
fn workers(world: &mut World, n_workers: u32) {
    (1..=n_workers).for_each(|id| world.worker(&format!("w{id}")).done());
}

/// So many jobs `a1`, `a2`, … of tenant `a`.
fn jobs(world: &mut World, tenant: &str, n_jobs: u32) {
    (1..=n_jobs).for_each(|ix| world.job(&format!("{tenant}{ix}")).tenant(tenant).done());
}

#[test]
fn a_tenant_with_nothing_done_goes_first_whatever_its_share() {
    let decision = decided(PRESET, |world| {
        workers(world, 1);
        world.tenant("a").weight(100).completed(1);
        world.tenant("b").weight(1).used(9_000);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
}

#[test]
fn the_guarantee_counts_what_is_in_flight() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.attempt("9", "w").tenant("b").cost(50);
        world.tenant("a").completed(1);
        world.tenant("b").completed(0);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["a1"]);
}

#[test]
fn the_guarantee_counts_what_was_granted_in_this_round() {
    let decision = decided(PRESET, |world| {
        workers(world, 3);
        world.tenant("a").completed(1);
        world.tenant("b").used(100);
        jobs(world, "a", 3);
        jobs(world, "b", 3);
    });
    assert_eq!(jobs_placed(&decision), ["b1", "a1", "a2"]);
}

#[test]
fn every_tenant_gets_one_job_before_any_gets_two() {
    let decision = decided(PRESET, |world| {
        workers(world, 3);
        world.tenant("a").weight(1_000);
        world.tenant("b");
        world.tenant("c").used(500);
        for tenant in ["a", "b", "c"] {
            jobs(world, tenant, 3);
        }
    });
    let mut placed = jobs_placed(&decision);
    placed.sort();
    assert_eq!(placed, ["a1", "b1", "c1"]);
}

/// Who goes first, of tenants with a weight and a usage each, all with something done.
fn first_of<const N: usize>(tenants: [(&str, i64, i64); N]) -> Vec<String> {
    let decision = decided(PRESET, |world| {
        workers(world, 1);
        for (tenant, weight, used) in tenants {
            world.tenant(tenant).weight(weight).used(used).completed(1);
            jobs(world, tenant, 1);
        }
    });
    jobs_placed(&decision)
}

#[test]
fn the_tenant_furthest_behind_its_share_goes_first() {
    assert_eq!(first_of([("a", 3, 1_000), ("b", 1, 500)]), ["a1"]);
    assert_eq!(first_of([("a", 3, 1_600), ("b", 1, 500)]), ["b1"]);
    assert_eq!(first_of([("a", 1, 10), ("b", 1, 9), ("c", 1, 11)]), ["b1"]);
}

#[test]
fn before_anything_is_used_the_heaviest_goes_first() {
    assert_eq!(first_of([("a", 1, 0), ("b", 2, 0)]), ["b1"]);
}

#[test]
fn weights_that_are_all_zero_count_as_equal() {
    assert_eq!(first_of([("a", 0, 10), ("b", 0, 0)]), ["b1"]);
    assert_eq!(first_of([("a", 0, 0), ("b", 0, 10)]), ["a1"]);
}

#[test]
fn a_tenant_of_weight_zero_is_due_nothing_while_others_are() {
    assert_eq!(first_of([("a", 0, 1), ("b", 1, 99)]), ["b1"]);
}

#[test]
fn a_tenant_of_weight_zero_still_goes_when_nobody_else_can() {
    assert_eq!(first_of([("a", 0, 1_000)]), ["a1"]);
}

#[test]
fn equal_deficits_go_by_id() {
    assert_eq!(first_of([("a", 1, 5), ("b", 1, 5)]), ["a1"]);
}

#[test]
fn sums_cover_tenants_with_queued_or_running_jobs_only() {
    let decision = decided(PRESET, |world| {
        workers(world, 1);
        world.tenant("a").weight(1).used(9).completed(1);
        world.tenant("b").weight(9).used(91).completed(1);
        world.tenant("gone").weight(10).used(900).completed(1);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["a1"]);
}

#[test]
fn a_tenant_that_only_runs_is_in_both_sums() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").weight(1).used(9).completed(1);
        world.tenant("b").weight(9).used(91).completed(1);
        world.tenant("running").weight(10).used(900).completed(1);
        world.attempt("9", "w").tenant("running").cost(0);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
}

#[test]
fn what_runs_counts_as_used() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").used(10).completed(1);
        world.tenant("b").used(9).completed(1);
        world.attempt("9", "w").tenant("b").cost(2);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["a1"]);
}

fn shared_out(weights: [i64; 2], n_workers: u32) -> Decision {
    decided(PRESET, |world| {
        workers(world, n_workers);
        for (tenant, weight) in ["a", "b"].into_iter().zip(weights) {
            world.tenant(tenant).weight(weight).completed(1);
            jobs(world, tenant, n_workers);
        }
    })
}

#[test]
fn each_grant_moves_the_deficit_within_a_round() {
    assert_eq!(jobs_placed(&shared_out([1, 1], 4)), ["a1", "b1", "a2", "b2"]);
}

#[test]
fn a_round_shares_slots_out_by_weight() {
    let placed = jobs_placed(&shared_out([3, 1], 40));
    assert_eq!(placed.iter().filter(|job| job.starts_with('a')).count(), 30);
}

#[test]
fn a_dear_grant_moves_the_deficit_further() {
    let decision = decided(PRESET, |world| {
        workers(world, 4);
        for tenant in ["a", "b"] {
            world.tenant(tenant).completed(1);
            jobs(world, tenant, 4);
        }
        world.snapshot.jobs[0].cost = model::Fixed::whole(3);
    });
    assert_eq!(jobs_placed(&decision), ["a1", "b1", "b2", "b3"]);
}

#[test]
fn of_one_tenant_priority_then_age_decides() {
    let decision = decided(PRESET, |world| {
        workers(world, 3);
        world.job("1").age_s(1);
        world.job("2").age_s(2);
        world.job("3").priority(1);
    });
    assert_eq!(jobs_placed(&decision), ["3", "2", "1"]);
}

#[test]
fn workers_ask_by_rank_then_id_and_any_that_is_free_will_do() {
    let decision = decided(PRESET, |world| {
        world.worker("a").rank(2);
        world.worker("b").rank(1);
        world.worker("c").rank(1);
        for job in ["1", "2", "3"] {
            world.job(job);
        }
    });
    assert_eq!(placed(&decision), pairs([("1", "b"), ("2", "c"), ("3", "a")]));
}

#[test]
fn a_tenant_whose_jobs_do_not_fit_leaves_the_worker_to_the_next() {
    let decision = decided(PRESET, |world| {
        world.worker("w").types(&["pdf"]);
        world.tenant("b").completed(3).used(99);
        world.job("a1").tenant("a").kind("xls");
        world.job("b1").tenant("b").kind("pdf");
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
}

#[test]
fn a_paused_tenant_gets_nothing() {
    let decision = decided(PRESET, |world| {
        workers(world, 2);
        world.tenant("a").paused();
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
    assert_eq!(reason(&decision, "a1"), Some(Reason::TenantPaused));
}

#[test]
fn a_tenant_runs_at_most_its_maximum_of_jobs() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").jobs_max(3);
        world.attempt("9", "w").tenant("a").slots(2);
        jobs(world, "a", 3);
    });
    assert_eq!(jobs_placed(&decision), ["a1", "a2"]);
    assert_eq!(reason(&decision, "a3"), Some(Reason::TenantAtJobsMax));
}

#[test]
fn a_tenant_at_its_maximum_leaves_the_worker_to_the_next() {
    let decision = decided(PRESET, |world| {
        workers(world, 3);
        world.tenant("a").weight(1_000).jobs_max(1).completed(1);
        world.tenant("b").completed(1);
        jobs(world, "a", 3);
        jobs(world, "b", 2);
    });
    assert_eq!(jobs_placed(&decision), ["a1", "b1", "b2"]);
}

#[test]
fn what_slot_time_says_counts_for_nothing() {
    let decision = decided(PRESET, |world| {
        workers(world, 1);
        world.tenant("a").completed(1).used(100);
        world.tenant("b").completed(1).used(10).ahead_s(1_000);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
}

#[test]
fn a_paused_tenant_of_any_weight_changes_no_choice() {
    let first = |has_paused: bool| {
        let decision = decided(PRESET, |world| {
            workers(world, 1);
            world.tenant("a").weight(3).used(1_600).completed(1);
            world.tenant("b").weight(1).used(500).completed(1);
            jobs(world, "a", 1);
            jobs(world, "b", 1);
            if has_paused {
                world.tenant("paused").weight(10).paused();
                jobs(world, "paused", 1);
            }
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(false), ["b1"]);
    assert_eq!(first(true), ["b1"]);
}

#[test]
fn a_literal_round_gives_all_slots_to_the_tenant_furthest_behind() {
    let round = |is_literal: bool| {
        let decision = decided(PRESET, |world| {
            world.policy().literal = is_literal;
            workers(world, 3);
            world.tenant("a").used(100).completed(1);
            world.tenant("b").used(99).completed(1);
            jobs(world, "a", 3);
            jobs(world, "b", 3);
        });
        jobs_placed(&decision)
    };
    assert_eq!(round(true), ["b1", "b2", "b3"]);
    assert_ne!(round(false), round(true));
}

#[test]
fn a_literal_round_does_not_count_attempts() {
    let first = |is_literal: bool| {
        let decision = decided(PRESET, |world| {
            world.policy().literal = is_literal;
            world.worker("w").slots(2);
            world.attempt("9", "w").tenant("b").cost(50);
            world.tenant("a").used(20).completed(1);
            world.tenant("b").used(10).completed(1);
            jobs(world, "a", 1);
            jobs(world, "b", 1);
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(true), ["b1"]);
    assert_eq!(first(false), ["a1"]);
}

#[test]
fn a_literal_guarantee_counts_completions_alone() {
    let decision = decided(PRESET, |world| {
        world.policy().literal = true;
        workers(world, 3);
        world.tenant("a").completed(1);
        world.tenant("b").used(100);
        jobs(world, "a", 3);
        jobs(world, "b", 2);
    });
    assert_eq!(jobs_placed(&decision), ["b1", "b2", "a1"]);
}

#[test]
fn literal_sums_cover_the_cost_of_all_and_the_weights_of_those_in_line() {
    // Of all cost, `a` had 9 of 1,000 and `b` 91: both are behind, `b` is furthest behind.
    let decision = decided(PRESET, |world| {
        world.policy().literal = true;
        workers(world, 1);
        world.tenant("a").weight(1).used(9).completed(1);
        world.tenant("b").weight(9).used(91).completed(1);
        world.tenant("gone").weight(10).used(900).completed(1);
        jobs(world, "a", 1);
        jobs(world, "b", 1);
    });
    assert_eq!(jobs_placed(&decision), ["b1"]);
}
