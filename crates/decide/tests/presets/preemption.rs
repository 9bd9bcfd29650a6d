//! Preemption in `cohort`: for whom, of whom, and when not.

use model::{Action, Decision, Millis, Preset, Reason, WorkerId};

use crate::world::{World, decided, pairs, place_of, placed, preempted, reason};

/// Tenant `a` is below its minimum of one; its job 1 is of priority 1 and a minute old. Worker `w`
/// has one slot, and there `b` runs job 9.
fn scene(world: &mut World) {
    world.policy().preemption.enabled = true;
    world.tenant("a").min("default", 1);
    world.tenant("b");
    world.worker("w");
    world.attempt("9", "w").tenant("b").ready_s_ago(600).started_s_ago(500);
    world.job("1").tenant("a").priority(1).age_s(60);
}

fn in_scene(change: impl FnOnce(&mut World)) -> Decision {
    decided(Preset::Cohort, |world| {
        scene(world);
        change(world);
    })
}

fn none_is_preempted(change: impl FnOnce(&mut World)) {
    let decision = in_scene(change);
    assert_eq!(preempted(&decision), []);
    assert_eq!(reason(&decision, "1"), Some(Reason::WorkersFull));
}

#[test]
fn a_tenant_below_its_minimum_takes_a_slot_back() {
    let decision = in_scene(|_| ());
    assert_eq!(preempted(&decision), pairs([("9", "1")]));
    assert_eq!(placed(&decision), []);
    assert_eq!(reason(&decision, "1"), Some(Reason::Preempting));
    let Some(Action::Preempt(preempt)) = decision.actions.first() else { panic!("{decision:?}") };
    assert_eq!(preempt.worker, WorkerId::new("w"));
}

#[test]
fn preemption_is_off_by_default() {
    assert!(Preset::ALL.into_iter().all(|preset| !preset.policy().preemption.enabled));
    none_is_preempted(|world| world.policy().preemption = Preset::Cohort.policy().preemption);
}

#[test]
fn none_is_preempted_while_a_slot_is_free() {
    let decision = in_scene(|world| world.worker("x").done());
    assert_eq!(preempted(&decision), []);
    assert_eq!(place_of(&decision, "1"), "x");
}

#[test]
fn the_job_must_have_waited_for_the_delay() {
    none_is_preempted(|world| {
        world.snapshot.jobs[0].ready = crate::world::NOW - Millis(19_999);
    });
    let decision = in_scene(|world| {
        world.snapshot.jobs[0].ready = crate::world::NOW - Millis(20_000);
    });
    assert_eq!(preempted(&decision).len(), 1);
}

#[test]
fn the_delay_is_as_long_as_the_policy_says() {
    none_is_preempted(|world| world.policy().preemption.delay = Millis::from_secs(61));
    let decision = in_scene(|world| world.policy().preemption.delay = Millis::from_secs(59));
    assert_eq!(preempted(&decision).len(), 1);
}

#[test]
fn the_victim_must_have_a_strictly_lower_priority() {
    none_is_preempted(|world| world.snapshot.attempts[0].priority = 1);
    none_is_preempted(|world| world.snapshot.attempts[0].priority = 2);
    none_is_preempted(|world| world.snapshot.jobs[0].priority = 0);
}

#[test]
fn priorities_are_compared_as_they_were_asked_for() {
    let decision = in_scene(|world| {
        world.snapshot.jobs[0].priority = 101;
        world.snapshot.attempts[0].priority = 100;
    });
    assert_eq!(preempted(&decision).len(), 1);
}

#[test]
fn a_tenant_that_is_not_below_its_minimum_takes_nothing_back() {
    none_is_preempted(|world| world.snapshot.tenants[0].quotas.clear());
    none_is_preempted(|world| {
        world.worker("x");
        world.attempt("8", "x").tenant("a").priority(5);
    });
}

#[test]
fn a_victims_tenant_keeps_its_minimum() {
    none_is_preempted(|world| {
        world.snapshot.tenants.pop();
        world.tenant("b").min("default", 1);
    });
}

#[test]
fn a_tenant_above_its_minimum_loses_only_what_is_above() {
    let decision = in_scene(|world| {
        world.snapshot.tenants.clear();
        world.tenant("a").min("default", 2);
        world.tenant("b").min("default", 1);
        world.worker("x");
        world.attempt("8", "x").tenant("b").ready_s_ago(600);
        world.job("2").tenant("a").priority(1).age_s(60);
    });
    assert_eq!(preempted(&decision).len(), 1);
    assert_eq!(reason(&decision, "2"), Some(Reason::WorkersFull));
}

#[test]
fn the_minimum_is_reached_by_what_was_taken_back_in_this_round() {
    let decision = in_scene(|world| {
        world.worker("x");
        world.attempt("8", "x").tenant("b").ready_s_ago(900).started_s_ago(800);
        world.job("2").tenant("a").priority(1).age_s(60);
    });
    assert_eq!(preempted(&decision), pairs([("9", "1")]));
    assert_eq!(reason(&decision, "2"), Some(Reason::WorkersFull));
}

#[test]
fn two_jobs_below_the_minimum_take_two_victims() {
    let decision = in_scene(|world| {
        world.snapshot.tenants[0].quotas[0].min = 2;
        world.worker("x");
        world.attempt("8", "x").tenant("b").ready_s_ago(900).started_s_ago(800);
        world.job("2").tenant("a").priority(1).age_s(50);
    });
    assert_eq!(preempted(&decision), pairs([("9", "1"), ("8", "2")]));
}

#[test]
fn a_victim_must_have_run_for_a_while() {
    none_is_preempted(|world| world.policy().preemption.min_run = Millis::from_secs(501));
    let decision = in_scene(|world| world.policy().preemption.min_run = Millis::from_secs(500));
    assert_eq!(preempted(&decision).len(), 1);
}

#[test]
fn a_job_is_a_victim_only_so_often() {
    none_is_preempted(|world| world.snapshot.attempts[0].evictions = 3);
    let decision = in_scene(|world| world.snapshot.attempts[0].evictions = 2);
    assert_eq!(preempted(&decision).len(), 1);
}

/// Two more jobs of `b` run on two more workers; the victim of three is chosen.
fn victim_of(jobs: [(&str, i32, i64); 2]) -> Vec<(String, String)> {
    let decision = in_scene(|world| {
        world.snapshot.jobs[0].priority = 9;
        world.snapshot.attempts[0].priority = 3;
        for (job, priority, started_s_ago) in jobs {
            world.worker(&format!("w{job}"));
            let attempt = world.attempt(job, &format!("w{job}")).tenant("b").priority(priority);
            attempt.started_s_ago(started_s_ago);
        }
    });
    preempted(&decision)
}

#[test]
fn the_victim_is_the_least_important() {
    assert_eq!(victim_of([("7", 2, 9_000), ("8", 4, 1)]), pairs([("7", "1")]));
}

#[test]
fn of_equally_important_victims_the_most_recently_started_stops() {
    assert_eq!(victim_of([("7", 3, 501), ("8", 3, 499)]), pairs([("8", "1")]));
    assert_eq!(victim_of([("7", 3, 501), ("8", 3, 502)]), pairs([("9", "1")]));
}

#[test]
fn another_tenant_that_is_above_its_minimum_may_be_the_victim() {
    let decision = in_scene(|world| {
        world.snapshot.tenants.pop();
        world.tenant("b").min("default", 1);
        world.worker("x");
        world.attempt("8", "x").tenant("c");
    });
    assert_eq!(preempted(&decision), pairs([("8", "1")]));
}

#[test]
fn a_victim_is_of_the_same_pool() {
    none_is_preempted(|world| {
        world.snapshot.attempts[0].priority = 5;
        world.worker("x").pool("other");
        world.attempt("8", "x").tenant("b");
        world.snapshot.jobs[0].pool = Some(model::Name::new("default"));
    });
}

#[test]
fn a_victim_is_on_a_worker_that_could_run_the_job() {
    none_is_preempted(|world| {
        world.snapshot.attempts[0].priority = 5;
        world.worker("x").types(&["xls"]);
        world.attempt("8", "x").tenant("b").kind("xls");
        world.snapshot.jobs[0].kind = Some(model::Name::new("pdf"));
    });
}

#[test]
fn a_victim_is_on_a_worker_that_takes_work() {
    none_is_preempted(|world| {
        world.snapshot.attempts[0].priority = 5;
        world.worker("x").unhealthy();
        world.attempt("7", "x").tenant("b");
        world.worker("y").draining();
        world.attempt("8", "y").tenant("b");
    });
}

#[test]
fn a_job_whose_victim_is_stopping_waits_and_takes_no_other() {
    let decision = in_scene(|world| {
        world.snapshot.attempts[0].stopping_for = Some(model::JobId::new("1"));
        world.worker("x");
        world.attempt("8", "x").tenant("b");
    });
    assert_eq!(preempted(&decision), []);
    assert_eq!(reason(&decision, "1"), Some(Reason::Preempting));
}

#[test]
fn a_victim_that_stops_for_one_job_does_not_stop_for_another() {
    let decision = in_scene(|world| {
        world.snapshot.tenants[0].quotas[0].min = 2;
        world.job("2").tenant("a").priority(1).age_s(60);
        world.snapshot.attempts[0].stopping_for = Some(model::JobId::new("1"));
    });
    assert_eq!(preempted(&decision), []);
    assert_eq!(reason(&decision, "1"), Some(Reason::Preempting));
    assert_eq!(reason(&decision, "2"), Some(Reason::WorkersFull));
}

#[test]
fn nobody_stops_in_vain() {
    none_is_preempted(|world| {
        world.snapshot.workers[0].slots = 2;
        world.snapshot.jobs[0].slots = 2;
        world.snapshot.tenants[0].quotas[0].min = 2;
        world.attempt("8", "w").tenant("b").priority(5);
    });
}

#[test]
fn a_tenant_above_its_maximum_or_paused_preempts_nobody() {
    let paused = in_scene(|world| world.snapshot.tenants[0].active = false);
    assert_eq!(preempted(&paused), []);
    let no_budget = in_scene(|world| world.snapshot.tenants[0].budget = Some(model::Fixed::ZERO));
    assert_eq!(preempted(&no_budget), []);
}
