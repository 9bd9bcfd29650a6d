//! `balanced`, within a tenant: interactive jobs and the shortest first, with a starvation bound.

use model::policy::Rule;
use model::tenant::Peak;
use model::{Fixed, Millis, Preset};

use crate::specs::JobSpec;
use crate::world::{NOW, decided, jobs_placed, points};

const PRESET: Preset = Preset::Balanced;

/// How many of the jobs that were placed start with this letter.
fn count(placed: &[String], letter: &str) -> usize {
    placed.iter().filter(|job| job.starts_with(letter)).count()
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
fn within_a_tenant_the_shortest_job_goes_first() {
    let against = |length_s| {
        first_goes_first(|job| job.estimate_s(100).done(), |job| job.estimate_s(length_s).done())
    };
    assert!(against(101));
    assert!(!against(99));
}

#[test]
fn jobs_of_unknown_length_go_by_age() {
    assert!(first_goes_first(|job| job.age_s(2).done(), |job| job.age_s(1).done()));
    assert!(!first_goes_first(|job| job.age_s(1).done(), |job| job.age_s(2).done()));
}

#[test]
fn a_job_of_unknown_length_counts_as_what_ended_lately() {
    let against = |length_s: i64| {
        let decision = decided(PRESET, |world| {
            world.snapshot.usual = Some(Millis::from_secs(100));
            world.worker("w");
            world.job("1");
            world.job("2").estimate_s(length_s);
        });
        jobs_placed(&decision) == ["1"]
    };
    assert!(against(101));
    assert!(!against(99));
}

#[test]
fn sixteen_steps_of_priority_go_before_any_length_and_after_any() {
    let long_of = |priority: i32| {
        first_goes_first(
            |job| job.priority(priority).estimate_s(86_400).done(),
            |job| job.estimate_s(1).done(),
        )
    };
    assert!(long_of(16));
    assert!(!long_of(15));
    let short_of = |priority: i32| {
        first_goes_first(
            |job| job.priority(priority).estimate_s(1).done(),
            |job| job.estimate_s(86_400).done(),
        )
    };
    assert!(!short_of(-16));
    assert!(short_of(-15));
}

#[test]
fn eight_steps_of_priority_make_a_job_count_less_long_by_a_third() {
    let against = |length_s| {
        first_goes_first(
            |job| job.priority(8).estimate_s(1_000).done(),
            |job| job.estimate_s(length_s).done(),
        )
    };
    assert!(against(708));
    assert!(!against(706));
}

/// Eight interactive jobs and eight others of one tenant on four slots: which are placed.
fn interactive(part: i64) -> Vec<String> {
    let decision = decided(PRESET, |world| {
        world.policy().fairness.interactive = Fixed::thousandths(part);
        world.worker("w").slots(4);
        for at in 1..=8 {
            world.job(&format!("i{at}")).on_demand().estimate_s(900);
            world.job(&format!("b{at}")).estimate_s(1);
        }
    });
    jobs_placed(&decision)
}

#[test]
fn interactive_jobs_go_first_within_their_part_of_the_slots() {
    assert_eq!(count(&interactive(500), "i"), 2);
    assert_eq!(interactive(500)[0], "i1");
    assert_eq!(count(&interactive(250), "i"), 1);
    assert_eq!(count(&interactive(0), "i"), 0);
    assert_eq!(count(&interactive(1_000), "i"), 4);
}

#[test]
fn interactive_jobs_that_run_count_against_their_part() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(4);
        world.attempt("8", "w").on_demand();
        world.attempt("9", "w").on_demand();
        world.job("1").on_demand().estimate_s(900);
        world.job("2").estimate_s(1);
    });
    assert_eq!(jobs_placed(&decision), ["2", "1"]);
}

#[test]
fn interactive_jobs_of_one_tenant_take_nothing_from_another() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("a").ahead_s(10);
        world.tenant("b").ahead_s(-10);
        world.job("1").tenant("a").on_demand();
        world.job("2").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

/// Whether the long job 1 goes before the short job 2 of its tenant, of which 100 s of work waited
/// at most, once the tenant was served so much since job 1 came.
fn is_overdue(served_s: i64, is_trusted: bool) -> bool {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.snapshot.usual = Some(Millis::from_secs(60));
        let spec = world.tenant("default");
        let tenant = if is_trusted { spec.trusted().0 } else { spec.0 };
        tenant.account.served = served_s * 1_000;
        let marks = vec![(NOW - Millis::from_secs(5), 0)];
        tenant.account.queue = Peak { now: 100_000, before: 0, since: 0, marks };
        world.job("1").estimate_s(60).age_s(5);
        world.job("2").estimate_s(1);
    });
    jobs_placed(&decision) == ["1"]
}

#[test]
fn without_skill_a_job_is_overdue_after_an_eighth_of_its_tenants_longest_queue() {
    assert!(!is_overdue(12, false));
    assert!(is_overdue(13, false));
}

#[test]
fn with_full_skill_a_job_is_overdue_after_its_tenants_longest_queue() {
    // A thousandth is doubted: a run is worth as much.
    assert!(!is_overdue(99, true));
    assert!(is_overdue(100, true));
}

#[test]
fn an_overdue_job_goes_first_among_the_jobs_of_its_tenant_only() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        let tenant = world.tenant("a").ahead_s(100).0;
        tenant.account.served = 1_000_000;
        let marks = vec![(NOW, 0)];
        tenant.account.queue = Peak { now: 1_000, before: 0, since: 0, marks };
        world.tenant("b").ahead_s(-100);
        world.job("1").tenant("a").age_s(9_999);
        world.job("2").tenant("b").estimate_s(900);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

fn said(rule: Rule, describe: impl FnOnce(JobSpec<'_>)) -> String {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        describe(world.job("1"));
    });
    points(&decision, "1", rule)
}

#[test]
fn points_say_what_length_is_worth() {
    assert_eq!(said(Rule::Length, |job| job.estimate_s(10).done()), "-10");
}
