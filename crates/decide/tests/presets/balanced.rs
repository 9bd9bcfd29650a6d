//! `balanced`: guarantee, quota, deficit; ageing with predicted length; specialists, then fit.

use model::policy::Rule;
use model::{Fixed, Metrics, Preset};

use crate::specs::{JobSpec, WorkerSpec};
use crate::world::{decided, jobs_placed, place_of, points};

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
fn then_the_tenant_furthest_behind_its_share() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("a").completed(1).used(1_000).weight(3);
        world.tenant("b").completed(1).used(500).weight(1);
        world.job("1").tenant("a");
        world.job("2").tenant("b").priority(9).age_s(900).on_demand();
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
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
fn a_step_of_priority_is_worth_64_seconds() {
    let after =
        |millis| first_goes_first(|job| job.priority(1).done(), |job| job.age_ms(millis).done());
    assert!(after(63_999));
    assert!(!after(64_001));
}

fn said(rule: Rule, describe: impl FnOnce(JobSpec<'_>)) -> String {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        describe(world.job("1"));
    });
    points(&decision, "1", rule)
}

#[test]
fn priority_and_age_are_worth_what_they_are_in_aging() {
    assert_eq!(said(Rule::Priority, |job| job.priority(3).done()), "3072");
    assert_eq!(said(Rule::Priority, |job| job.priority(-99).done()), "-16384");
    assert_eq!(said(Rule::Age, |job| job.age_ms(1_001).done()), "16.016");
}

#[test]
fn the_bonus_for_people_ends_after_a_minute() {
    let bonus = |age_s| said(Rule::OnDemand, |job| job.on_demand().age_s(age_s).done());
    assert_eq!(bonus(0), "4096");
    assert_eq!(bonus(30), "5056");
    assert_eq!(bonus(60), "6016");
    assert_eq!(bonus(61), "6016");
    assert_eq!(bonus(6_000), "6016");
}

#[test]
fn a_queued_job_passes_people_however_long_they_wait() {
    let waited = |age_s: i64| {
        first_goes_first(
            |job| job.on_demand().age_s(age_s).done(),
            |job| job.age_s(age_s + 377).done(),
        )
    };
    assert!(!waited(600));
    assert!(!waited(60_000));
}

#[test]
fn a_job_ages_as_if_it_had_become_ready_later_by_four_times_its_length() {
    assert_eq!(said(Rule::Length, |job| job.estimate_s(10).done()), "-640");
    assert_eq!(said(Rule::Length, |job| job.age_s(50).done()), "0");
}

#[test]
fn short_jobs_go_first_but_long_ones_catch_up() {
    let after = |age_s| {
        first_goes_first(
            |job| job.estimate_s(10).done(),
            |job| job.estimate_s(100).age_s(age_s).done(),
        )
    };
    assert!(after(0));
    assert!(after(359));
    assert!(!after(361));
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
fn what_a_tenant_was_lifted_by_counts_as_used() {
    let first = |lift: i64| {
        let decision = decided(PRESET, |world| {
            world.worker("w");
            world.tenant("a").completed(1).used(100);
            world.tenant("b").completed(1).used(10).lift(lift).budget(12);
            world.job("1").tenant("a");
            world.job("2").tenant("b");
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(89), ["2"]);
    assert_eq!(first(91), ["1"]);
    // It is no cost: the budget does not know of it.
    assert_eq!(first(-10), ["2"]);
}
