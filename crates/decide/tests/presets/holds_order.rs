//! Of several reasons to wait, the first in the order of the list is told.

use model::{Fixed, JobId, Preset, Reason, Timestamp};

use crate::world::{NOW, World, decided, reason};

/// A reason, and how to put it in the way of job 1.
type Obstacle = (Reason, fn(&mut World));

/// What can stand in the way, each behind the one before: what lasts comes first.
const OBSTACLES: [Obstacle; 14] = [
    (Reason::NoWorkerEver, |world| world.snapshot.workers[0].types = vec![model::Name::new("xls")]),
    (Reason::NoResourceEver, |world| {
        world.snapshot.resources[0].tenant = Some(model::TenantId::new("b"));
    }),
    (Reason::TenantPaused, |world| world.snapshot.tenants[0].active = false),
    (Reason::BudgetSpent, |world| world.snapshot.tenants[0].budget = Some(Fixed::ONE)),
    (Reason::BudgetSpentGlobal, |world| world.budget(1, 1)),
    (Reason::NotReady, |world| world.snapshot.jobs[0].ready = Timestamp(NOW.0 + 5)),
    (Reason::NotBefore, |world| world.snapshot.jobs[0].not_before = Some(Timestamp(NOW.0 + 1))),
    (Reason::NoWorkerNow, |world| world.snapshot.workers[0].draining = true),
    (Reason::TenantAtMax, |world| world.snapshot.tenants[0].quotas[0].max = Some(1)),
    (Reason::TenantAtJobsMax, |world| world.snapshot.tenants[0].jobs_max = Some(1)),
    (Reason::TypeAtMax, |world| world.job_type("pdf").jobs_max(1).done()),
    (Reason::ResourceHeld, |world| world.snapshot.resources[0].holder = Some(JobId::new("other"))),
    (Reason::WorkersFull, |world| world.snapshot.workers[0].slots_free = Some(0)),
    (Reason::Vetoed, |world| world.snapshot.jobs[0].rescore_count = 0),
];

fn scene(world: &mut World) {
    world.worker("w").slots(9);
    world.tenant("a").max("default", 9);
    world.tenant("b");
    world.attempt("9", "w").tenant("a").kind("pdf");
    world.resource("repo");
    world.job("1").tenant("a").kind("pdf").holding("repo").rescored(4);
}

#[test]
fn the_first_of_all_that_apply_is_told() {
    for first in 0..OBSTACLES.len() {
        let decision = decided(Preset::Simple, |world| {
            scene(world);
            OBSTACLES[first..].iter().for_each(|(_, obstruct)| obstruct(world));
        });
        assert_eq!(reason(&decision, "1"), Some(OBSTACLES[first].0));
    }
}

#[test]
fn each_reason_is_told_when_it_alone_applies() {
    for (expected, obstruct) in OBSTACLES {
        let decision = decided(Preset::Simple, |world| {
            scene(world);
            obstruct(world);
        });
        assert_eq!(reason(&decision, "1"), Some(expected));
    }
}

#[test]
fn the_obstacles_are_in_the_order_of_all_reasons() {
    assert!(OBSTACLES.is_sorted_by_key(|(reason, _)| *reason));
    assert!(Reason::ALL.is_sorted());
}

#[test]
fn workers_that_are_full_come_before_workers_that_are_unhealthy() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("full");
        world.attempt("9", "full");
        world.worker("ill").unhealthy();
        world.worker("going").draining();
        world.job("1");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::WorkersFull));
}

#[test]
fn a_paused_tenant_comes_before_workers_that_are_unhealthy() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("ill").unhealthy();
        world.tenant("a").paused();
        world.job("1").tenant("a");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantPaused));
}

#[test]
fn a_worker_that_drains_and_is_unhealthy_is_told_as_draining() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("both").unhealthy().draining();
        world.job("1");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::NoWorkerNow));
}

#[test]
fn preempting_is_told_even_though_workers_are_full() {
    for preset in [Preset::PriorityAge, Preset::Cohort] {
        let decision = decided(preset, |world| {
            world.policy().preemption.enabled = true;
            world.tenant("a").min("default", 1);
            world.worker("w");
            world.attempt("9", "w").tenant("b").stopping_for("1");
            world.job("1").tenant("a").priority(1).age_s(60);
            world.job("2").tenant("c").age_s(60);
        });
        assert_eq!(reason(&decision, "1"), Some(Reason::Preempting), "{preset:?}");
        assert_eq!(reason(&decision, "2"), Some(Reason::WorkersFull), "{preset:?}");
    }
}

#[test]
fn preempting_is_not_told_of_a_job_that_its_submitter_put_off() {
    let decision = decided(Preset::Cohort, |world| {
        world.worker("w");
        world.attempt("9", "w").stopping_for("1");
        world.job("1").not_before_ms(5);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::NotBefore));
}

#[test]
fn a_spent_budget_comes_before_guarded() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("full").slots(15).types(&["common"]);
        world.attempt("9", "full").kind("common").slots(15);
        world.worker("special").types(&["common", "rare"]);
        world.job("expected").kind("rare").age_s(60).not_before_ms(60_000);
        world.budget(1, 1);
        world.job("1").kind("common").estimate_s(120);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::BudgetSpentGlobal));
}

#[test]
fn a_maximum_comes_before_guarded() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("full").slots(15).types(&["common"]);
        world.attempt("9", "full").kind("common").slots(15);
        world.worker("special").types(&["common", "rare"]);
        world.job("expected").kind("rare").age_s(60).not_before_ms(60_000);
        world.tenant("a").max("default", 0);
        world.job("1").tenant("a").kind("common").estimate_s(120);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtMax));
}

#[test]
fn a_spent_budget_comes_before_reserved() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w").slots(2);
        world.attempt("9", "w").started_s_ago(40).estimate_s(100);
        world.job("wide").slots(2).priority(9).age_s(30);
        world.tenant("a").completed(1).budget(0);
        world.job("1").tenant("a");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::BudgetSpent));
}

#[test]
fn limits_are_judged_as_the_round_left_them() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(2);
        world.tenant("a").jobs_max(1);
        world.job("1").tenant("a");
        world.job("2").tenant("a").age_s(9);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtJobsMax));
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.tenant("a").jobs_max(1);
        world.job("1").tenant("a");
        world.job("2").tenant("a").age_s(9);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::TenantAtJobsMax));
}
