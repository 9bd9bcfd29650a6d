//! `balanced`: guarantee, quota, live share; shortest first with patience; specialists, then fit.

use model::policy::{ASKED_SPAN, Rule, Shortest};
use model::{Fixed, Metrics, Millis, Preset, Recent, Timestamp};

use crate::specs::{JobSpec, WorkerSpec};
use crate::world::{NOW, decided, jobs_placed, place_of, points};

const PRESET: Preset = Preset::Balanced;

#[test]
fn a_tenant_with_nothing_done_goes_first() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.tenant("a").completed(1).min("default", 9).weight(99);
        world.tenant("b").used(500);
        world.job("1").tenant("a").priority(9).age_s(600);
        world.job("2").tenant("b").priority(-9);
        world.job("3").tenant("b").priority(-9);
    });
    assert_eq!(jobs_placed(&decision), ["2", "1", "3"]);
}

#[test]
fn the_guarantee_counts_what_is_in_flight() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").completed(1);
        world.tenant("b").used(500);
        world.attempt("9", "w").tenant("b");
        world.job("1").tenant("a");
        world.job("2").tenant("b").priority(9);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn then_tenants_below_their_minimum() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.tenant("a").completed(1).weight(99);
        world.tenant("b").completed(1).used(500).min("default", 1);
        world.job("1").tenant("a").priority(9);
        world.job("2").tenant("b");
        world.job("3").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2", "1", "3"]);
}

#[test]
fn then_the_tenant_that_has_had_least_for_its_weight() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("a").completed(1).lift(1_000).weight(3);
        world.tenant("b").completed(1).lift(500).weight(1);
        world.job("1").tenant("a");
        world.job("2").tenant("b").priority(9).age_s(100).on_demand();
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn what_runs_counts_for_as_long_as_it_has_run() {
    let first = |ran_s: i64| {
        let decision = decided(PRESET, |world| {
            world.worker("w").slots(2);
            world.tenant("a").completed(1);
            world.tenant("b").completed(1).lift(100);
            world.attempt("9", "w").tenant("a").started_s_ago(ran_s);
            world.job("1").tenant("a");
            world.job("2").tenant("b");
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(90), ["1"]);
    assert_eq!(first(140), ["2"]);
}

/// Tenant `b` has had more than its share. Job 1 is its short one, job 2 is long and of `a`, which
/// asks for so many slot-milliseconds in 20 minutes.
fn rivals(asked_ms: i64) -> Vec<String> {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        let since = Timestamp(NOW.0 - NOW.0 % ASKED_SPAN.0);
        let asked = |amount| Some(Recent { since, amount, before: amount });
        world.tenant("a").completed(1).asked(asked(asked_ms));
        world.tenant("b").completed(1).lift(1_000).asked(asked(3_600_000));
        world.snapshot.began = Some(NOW - Millis::from_secs(7_200));
        world.job("1").tenant("b").estimate_s(1);
        world.job("2").tenant("a").estimate_s(100);
    });
    jobs_placed(&decision)
}

#[test]
fn a_tenant_that_asks_for_less_than_its_share_stands_in_the_common_order() {
    assert_eq!(rivals(0), ["1"]);
}

#[test]
fn a_tenant_that_asks_for_more_than_its_share_has_its_turn() {
    assert_eq!(rivals(2_400_000), ["2"]);
}

#[test]
fn each_grant_moves_the_deficit_within_a_round() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(4);
        for tenant in ["a", "b"] {
            world.tenant(tenant).completed(1);
            for ix in 1..=4 {
                world.job(&format!("{tenant}{ix}")).tenant(tenant);
            }
        }
    });
    assert_eq!(jobs_placed(&decision), ["a1", "b1", "a2", "b2"]);
}

#[test]
fn the_maximum_of_a_tenant_holds() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").max("default", 2);
        for job in ["1", "2", "3"] {
            world.job(job).tenant("a");
        }
    });
    assert_eq!(jobs_placed(&decision), ["1", "2"]);
}

/// Whether job 1 goes before job 2, which has the larger id.
fn first_goes_first(one: impl FnOnce(JobSpec<'_>), two: impl FnOnce(JobSpec<'_>)) -> bool {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        one(world.job("1"));
        two(world.job("2"));
    });
    jobs_placed(&decision) == ["1"]
}

#[test]
fn sixteen_steps_of_priority_make_a_job_count_half_as_long() {
    let against = |length_s| {
        first_goes_first(
            |job| job.priority(16).estimate_s(100).done(),
            |job| job.estimate_s(length_s).done(),
        )
    };
    assert!(against(51));
    assert!(!against(49));
}

#[test]
fn a_job_that_a_person_waits_for_counts_as_a_fifth_as_long() {
    let against = |length_s| {
        first_goes_first(
            |job| job.on_demand().estimate_s(100).done(),
            |job| job.estimate_s(length_s).done(),
        )
    };
    assert!(against(21));
    assert!(!against(19));
}

fn said(rule: Rule, describe: impl FnOnce(JobSpec<'_>)) -> String {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        describe(world.job("1"));
    });
    points(&decision, "1", rule)
}

#[test]
fn points_say_what_age_and_length_are_worth() {
    let length = PRESET.policy().shortest.length;
    assert_eq!(said(Rule::Age, |job| job.age_ms(1_001).done()), "1.001");
    assert_eq!(said(Rule::Length, |job| job.estimate_s(10).done()), (-10 * length).to_string());
    assert_eq!(said(Rule::Length, |_| ()), (-60 * length).to_string());
}

#[test]
fn points_say_what_a_person_and_a_priority_give_back() {
    let length = PRESET.policy().shortest.length;
    let person = said(Rule::OnDemand, |job| job.on_demand().estimate_s(20).done());
    assert_eq!(person, (16 * length).to_string());
    let urgent = said(Rule::Priority, |job| job.priority(16).estimate_s(10).done());
    assert_eq!(urgent, (5 * length).to_string());
    let humble = said(Rule::Priority, |job| job.priority(-99).estimate_s(10).done());
    assert_eq!(humble, (-10 * length).to_string());
}

#[test]
fn short_jobs_go_first_until_a_long_one_has_lost_its_patience() {
    let after = |age_s| {
        first_goes_first(
            |job| job.estimate_s(1).done(),
            |job| job.estimate_s(100).age_s(age_s).done(),
        )
    };
    // The fleet of one slot needs 101 seconds for both, and two wait for it.
    let shortest = PRESET.policy().shortest;
    let crowd = 2_000_000 / shortest.patience_crowd.in_thousandths();
    let drain_ms = 101 * (shortest.patience_drain.in_thousandths() + crowd);
    let patience = (shortest.patience_min.0 + drain_ms) / 1_000;
    assert!(after(0));
    assert!(after(patience - 1));
    assert!(!after(patience + 1));
}

/// Tenant `b` has had far more than its share. Jobs 2 and 3 have waited for so long.
fn waiting_for(age_s: i64) -> Vec<String> {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("a").completed(1).competes();
        world.tenant("b").completed(1).competes().lift(100_000);
        world.job("1").tenant("a").estimate_s(1);
        world.job("2").tenant("a").estimate_s(900).age_s(age_s);
        world.job("3").tenant("b").estimate_s(1).age_s(age_s + 1);
    });
    jobs_placed(&decision)
}

#[test]
fn whoever_has_lost_patience_goes_first_but_not_at_the_cost_of_another_tenants_share() {
    // The two slots need 451 seconds for all three.
    let Shortest { patience_min, patience_drain, patience_crowd, .. } = PRESET.policy().shortest;
    let crowd = 3_000_000 / (2 * patience_crowd.in_thousandths());
    let patience_ms = patience_min.0 + 451 * (patience_drain.in_thousandths() + crowd);
    assert_eq!(waiting_for(patience_ms / 1_000 + 2), ["2", "1"]);
}

#[test]
fn whoever_has_waited_for_twice_its_patience_goes_first_whatever_the_shares() {
    assert_eq!(waiting_for(100_000), ["3", "2"]);
}

/// Where a job goes, of workers `a` and `b`; equal ones would leave it to `a`.
fn seat(
    a: impl FnOnce(WorkerSpec<'_>),
    b: impl FnOnce(WorkerSpec<'_>),
    job: impl FnOnce(JobSpec<'_>),
) -> String {
    let decision = decided(PRESET, |world| {
        a(world.worker("a"));
        b(world.worker("b"));
        job(world.job("1").kind("pdf"));
    });
    place_of(&decision, "1")
}

#[test]
fn equal_workers_leave_the_job_to_the_smaller_id() {
    assert_eq!(seat(|_| (), |_| (), |_| ()), "a");
}

#[test]
fn the_specialist_goes_before_locality_and_headroom() {
    let place = seat(
        |worker| worker.types(&["pdf", "xls"]).slots(9).hints(&["h"]).done(),
        |worker| worker.types(&["pdf"]).slots(9).slots_free(1).done(),
        |job| job.hint("h").done(),
    );
    assert_eq!(place, "b");
}

#[test]
fn any_list_of_types_is_more_special_than_none() {
    assert_eq!(seat(|_| (), |worker| worker.types(&["pdf", "xls", "zip"]).done(), |_| ()), "b");
}

#[test]
fn of_equal_specialists_the_one_with_the_hint_gets_the_job() {
    let hinted = |worker: WorkerSpec<'_>| worker.hints(&["g", "h"]).done();
    assert_eq!(seat(|_| (), hinted, |job| job.hint("h").done()), "b");
    assert_eq!(seat(|_| (), hinted, |job| job.hint("other").done()), "a");
    assert_eq!(seat(|_| (), hinted, |_| ()), "a");
}

#[test]
fn of_equal_specialists_the_one_that_lacks_fewest_bytes_gets_the_job() {
    let inputs =
        |job: JobSpec<'_>| job.missing_bytes("a", 1 << 30).missing_bytes("b", 1 << 20).done();
    assert_eq!(seat(|_| (), |_| (), inputs), "b");
}

#[test]
fn of_equal_specialists_the_one_that_is_emptier_gets_the_job() {
    let place = seat(
        |worker| worker.slots(10).slots_free(4).done(),
        |worker| worker.slots(2).slots_free(2).done(),
        |_| (),
    );
    assert_eq!(place, "b");
}

#[test]
fn of_equal_specialists_the_one_with_less_load_gets_the_job() {
    let load = |cpu_pct| Metrics { cpu_pct: Some(Fixed::whole(cpu_pct)), ..Metrics::default() };
    let place = seat(
        |worker| worker.metrics(load(95)).done(),
        |worker| worker.metrics(load(5)).done(),
        |_| (),
    );
    assert_eq!(place, "b");
}

#[test]
fn locality_goes_before_headroom() {
    let place = seat(
        |worker| worker.slots(10).done(),
        |worker| worker.slots(10).slots_free(1).hints(&["h"]).done(),
        |job| job.hint("h").done(),
    );
    assert_eq!(place, "b");
}

#[test]
fn a_vetoed_or_negative_sum_does_not_exist_here() {
    let load = Metrics { cpu_pct: Some(Fixed::whole(100)), ..Metrics::default() };
    let decision = decided(PRESET, |world| {
        world.worker("w").metrics(load);
        world.job("1").priority(-16).estimate_s(9_000);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_lift_is_no_cost() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("b").completed(1).used(10).lift(1_000).budget(12);
        world.job("2").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn a_slot_that_could_serve_several_kinds_serves_the_one_where_most_wait_for_each_slot() {
    let first = |n_scans: usize| {
        let decision = decided(PRESET, |world| {
            world.worker("any").types(&["pdf", "scan"]);
            world.worker("full").types(&["pdf", "scan"]);
            world.worker("pdf").types(&["pdf"]);
            world.worker("mail").types(&["mail"]);
            world.attempt("8", "full");
            world.attempt("9", "pdf");
            world.job("page").kind("pdf").estimate_s(10);
            for scan in 0..n_scans {
                world.job(&format!("scan-{scan}")).kind("scan").estimate_s(30);
            }
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(1), ["page"]);
    assert_eq!(first(9), ["scan-0"]);
}
