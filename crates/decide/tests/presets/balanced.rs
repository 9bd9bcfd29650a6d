//! `balanced`: whose turn it is, by quota and by slot time for each weight; specialists, then fit.

use model::tenant::Trust;
use model::{Fixed, Metrics, Millis, Name, Preset};

use crate::specs::{JobSpec, WorkerSpec};
use crate::world::{World, decided, jobs_placed, place_of};

const PRESET: Preset = Preset::Balanced;

/// So many jobs of the tenant, each of its own id.
fn jobs(world: &mut World, tenant: &str, count: usize) {
    for at in 1..=count {
        world.job(&format!("{tenant}{at}")).tenant(tenant);
    }
}

/// How many of the jobs that were placed are of the tenant.
fn count(placed: &[String], tenant: &str) -> usize {
    placed.iter().filter(|job| job.starts_with(tenant)).count()
}

#[test]
fn tenants_below_their_minimum_go_first() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.tenant("a").ahead_s(-900).weight(99);
        world.tenant("b").ahead_s(900).min("default", 1);
        world.job("1").tenant("a").priority(9);
        world.job("2").tenant("b");
        world.job("3").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2", "1", "3"]);
}

#[test]
fn empty_slots_go_by_weight() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(8);
        world.tenant("a").weight(3);
        world.tenant("b").weight(1);
        jobs(world, "a", 9);
        jobs(world, "b", 9);
    });
    let placed = jobs_placed(&decision);
    assert_eq!((count(&placed, "a"), count(&placed, "b")), (6, 2));
}

#[test]
fn slots_that_others_do_not_want_go_to_the_tenant_that_does() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(8);
        world.tenant("a").weight(3);
        world.tenant("b").weight(1);
        jobs(world, "a", 1);
        jobs(world, "b", 9);
    });
    assert_eq!(count(&jobs_placed(&decision), "b"), 7);
}

#[test]
fn the_tenant_that_is_furthest_behind_its_share_goes_first() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("a").ahead_s(100).weight(3);
        world.tenant("b").ahead_s(-300).weight(1);
        world.job("1").tenant("a").priority(99).age_s(900).on_demand();
        world.job("2").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

/// The job that goes first of a short one of a tenant that is so far ahead and a long one of a
/// tenant that is as far behind. Each is due half of two slots.
fn short_or_long(seconds: i64, change: impl FnOnce(&mut World)) -> Vec<String> {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.attempt("9", "w").tenant("other");
        world.tenant("a").ahead_s(seconds).trusted();
        world.tenant("b").ahead_s(-seconds).trusted();
        world.job("short").tenant("a").estimate_s(1);
        world.job("long").tenant("b").estimate_s(900);
        change(world);
    });
    jobs_placed(&decision)
}

#[test]
fn a_shorter_job_goes_before_one_that_is_behind_by_less_than_the_slack() {
    // Of 60 s of a share of one slot, a thousandth is doubted.
    assert_eq!(short_or_long(29, |_| ()), ["short"]);
    assert_eq!(short_or_long(31, |_| ()), ["long"]);
}

#[test]
fn the_slack_can_be_set() {
    let slack = |seconds: i64| {
        move |world: &mut World| world.policy().fairness.slack = Millis::from_secs(seconds)
    };
    assert_eq!(short_or_long(29, slack(0)), ["long"]);
    assert_eq!(short_or_long(100, slack(300)), ["short"]);
}

#[test]
fn a_tenant_falls_behind_by_no_more_than_its_own_next_job_takes() {
    let beside = |length_s: i64| {
        short_or_long(10, |world| {
            world.snapshot.jobs[1].estimate = Some(Millis::from_secs(length_s));
        })
    };
    assert_eq!(beside(21), ["short"]);
    assert_eq!(beside(19), ["long"]);
}

#[test]
fn where_lengths_are_not_known_to_be_right_there_is_no_slack() {
    let forget = |world: &mut World| {
        for tenant in &mut world.snapshot.tenants {
            tenant.account.trust = Trust::default();
        }
    };
    assert_eq!(short_or_long(1, forget), ["long"]);
}

#[test]
fn the_maximum_of_a_tenant_holds() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.tenant("a").max("default", 2);
        jobs(world, "a", 3);
    });
    assert_eq!(jobs_placed(&decision), ["a1", "a2"]);
}

/// How many of four slots `a` and `b` get beside a tenant that has jobs but is changed so.
fn beside_idle(change: impl FnOnce(&mut World)) -> (usize, usize) {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(4);
        world.tenant("idle").weight(98).ahead_s(-9_999);
        for tenant in ["idle", "a", "b"] {
            jobs(world, tenant, 9);
        }
        change(world);
    });
    let placed = jobs_placed(&decision);
    (count(&placed, "a"), count(&placed, "b"))
}

#[test]
fn tenants_that_cannot_start_anything_take_no_part() {
    assert_eq!(beside_idle(|_| ()), (0, 0), "it would have all of them");
    assert_eq!(beside_idle(|world| world.snapshot.tenants[0].active = false), (2, 2));
    assert_eq!(beside_idle(|world| world.snapshot.tenants[0].jobs_max = Some(0)), (2, 2));
    let spent = |world: &mut World| world.snapshot.tenants[0].budget = Some(Fixed::ZERO);
    assert_eq!(beside_idle(spent), (2, 2));
    let never = |world: &mut World| {
        for job in world.snapshot.jobs.iter_mut().filter(|job| job.id.to_string().len() > 2) {
            job.needs.insert(Name::new("os"), vec![Name::new("plan9")]);
        }
    };
    assert_eq!(beside_idle(never), (2, 2));
}

#[test]
fn a_tenant_that_comes_back_is_at_most_the_slack_behind() {
    // It was owed much when it went; each of two slots of slack counts for both tenants.
    let first = |ahead_s: i64| {
        let decision = decided(PRESET, |world| {
            world.worker("w").slots(2);
            world.attempt("9", "w").tenant("a").started_s_ago(0);
            world.tenant("a").ahead_s(ahead_s);
            world.tenant("b").ahead_s(-9_999);
            world.snapshot.tenants[1].account.competes = false;
            world.job("1").tenant("a").priority(1);
            world.job("2").tenant("b");
        });
        jobs_placed(&decision)
    };
    assert_eq!(first(-59), ["2"]);
    assert_eq!(first(-61), ["1"]);
}

#[test]
fn a_tenant_goes_first_on_the_slots_that_others_cannot_use() {
    let decision = decided(PRESET, |world| {
        world.worker("gpu").offers("gpu", &["h200"]).slots(2);
        world.worker("any").slots(2);
        world.tenant("a").ahead_s(500);
        world.tenant("b").ahead_s(-500);
        for id in ["a1", "a2", "a3"] {
            world.job(id).tenant("a").needs("gpu", &["h200"]);
        }
        jobs(world, "b", 9);
    });
    let placed = jobs_placed(&decision);
    assert_eq!((count(&placed, "a"), count(&placed, "b")), (0, 4), "`b` is behind on all slots");
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
fn what_slot_time_says_is_no_cost() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("b").used(10).ahead_s(1_000).budget(12);
        world.job("2").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}
