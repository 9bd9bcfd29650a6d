//! Every reason to wait, with evidence in words.

use model::{Decision, Fixed, Metrics, Preset, Reason};

use crate::world::{World, decided, deferred, detail, jobs_placed, reason};

/// Job 1 waits for this reason, and the detail has these words in it.
fn waits(decision: &Decision, expected: Reason, words: &[&str]) {
    assert_eq!(reason(decision, "1"), Some(expected));
    let detail = detail(decision, "1");
    for word in words {
        assert!(detail.contains(word), "no {word:?} in {detail:?}");
    }
    assert!(detail.len() > 10, "{detail:?} says too little");
}

#[test]
fn not_ready_tells_when_it_will_be() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w");
        world.job("1").age_ms(-1_500);
    });
    waits(&decision, Reason::NotReady, &["1.5 s"]);
}

#[test]
fn not_before_tells_how_long_the_submitter_asked_for() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w");
        world.job("1").not_before_ms(90_000);
    });
    waits(&decision, Reason::NotBefore, &["90 s"]);
}

#[test]
fn not_before_tells_how_long_the_backoff_lasts() {
    let decision = decided(Preset::PriorityAge, |world| {
        world.worker("w");
        world.job("1").backoff_ms(3_250);
    });
    waits(&decision, Reason::NotBefore, &["3.25 s"]);
}

#[test]
fn no_worker_ever_tells_what_was_asked_for() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").types(&["pdf"]);
        world.worker("x").types(&["pdf"]).offers("os", &["linux"]);
        world.job("1").kind("pdf").needs("os", &["bsd", "plan9"]);
    });
    waits(&decision, Reason::NoWorkerEver, &["2 workers", "pdf", "os", "bsd", "plan9"]);
}

#[test]
fn no_worker_ever_is_also_said_of_an_empty_fleet() {
    let decision = decided(Preset::Aging, |world| world.job("1").done());
    waits(&decision, Reason::NoWorkerEver, &[]);
}

#[test]
fn no_worker_now_tells_that_they_drain() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").draining();
        world.job("1");
    });
    waits(&decision, Reason::NoWorkerNow, &["1 worker", "drain"]);
}

#[test]
fn workers_full_names_the_workers_and_their_jobs() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.worker("x");
        world.attempt("8", "w");
        world.attempt("9", "x");
        world.job("1");
    });
    let words = ["a slot", "2 of 2 in use on w by job 8 and on x by job 9"];
    waits(&decision, Reason::WorkersFull, &words);
}

#[test]
fn worker_unhealthy_tells_how_many_could_run_it() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").unhealthy();
        world.job("1");
    });
    waits(&decision, Reason::WorkerUnhealthy, &["1 worker", "healthy"]);
}

#[test]
fn tenant_paused_names_the_tenant() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.tenant("acme").paused();
        world.job("1").tenant("acme");
    });
    waits(&decision, Reason::TenantPaused, &["acme"]);
}

#[test]
fn tenant_at_max_tells_pool_use_and_maximum() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").pool("red").slots(9);
        world.tenant("acme").max("red", 4);
        world.attempt("9", "w").tenant("acme").slots(3);
        world.job("1").tenant("acme").slots(2);
    });
    waits(&decision, Reason::TenantAtMax, &["acme", "3 of 4", "red", "2"]);
}

#[test]
fn preempting_names_the_victim() {
    let decision = decided(Preset::Cohort, |world| {
        world.policy().preemption.enabled = true;
        world.tenant("a").min("default", 1);
        world.worker("w");
        world.attempt("victim", "w").tenant("b");
        world.job("1").tenant("a").priority(1).age_s(60);
    });
    waits(&decision, Reason::Preempting, &["victim"]);
    assert_eq!(deferred(&decision), []);
}

#[test]
fn tenant_at_jobs_max_tells_the_maximum() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(9);
        world.tenant("acme").jobs_max(1);
        world.attempt("9", "w").tenant("acme");
        world.job("1").tenant("acme");
    });
    waits(&decision, Reason::TenantAtJobsMax, &["acme", "1 job"]);
}

#[test]
fn type_at_max_names_the_type_and_its_maximum() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(9);
        world.job_type("vacuum").jobs_max(1);
        world.attempt("9", "w").kind("vacuum");
        world.job("1").kind("vacuum");
    });
    waits(&decision, Reason::TypeAtMax, &["vacuum", "1"]);
}

#[test]
fn type_at_max_tells_what_the_worker_itself_declared() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(9).type_max("vacuum", 1);
        world.attempt("9", "w").kind("vacuum");
        world.job("1").kind("vacuum");
    });
    waits(&decision, Reason::TypeAtMax, &["vacuum", "worker"]);
}

#[test]
fn budget_spent_tells_what_is_left() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.tenant("acme").budget(10).used(6);
        world.job("1").tenant("acme").cost(5);
    });
    waits(&decision, Reason::BudgetSpent, &["acme", "4", "5"]);
}

#[test]
fn budget_spent_global_tells_what_is_left() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.budget(10, 6);
        world.job("1").cost(5);
    });
    waits(&decision, Reason::BudgetSpentGlobal, &["4", "5"]);
}

#[test]
fn resource_held_names_the_resource_and_its_holder() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.resource("repo").held_by("holder");
        world.job("1").holding("repo");
    });
    waits(&decision, Reason::ResourceHeld, &["repo", "holder"]);
}

#[test]
fn resource_held_names_the_tenant_that_has_no_workspace_left() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.tenant("acme").workspaces(1);
        world.attempt("9", "w").tenant("acme").holding_any();
        world.job("1").tenant("acme").holding_any();
    });
    waits(&decision, Reason::ResourceHeld, &["acme", "1 of 1 in use"]);
}

#[test]
fn vetoed_tells_the_round() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").rescored(2);
    });
    waits(&decision, Reason::Vetoed, &["2 of 4"]);
}

#[test]
fn below_zero_tells_how_many_workers_have_room() {
    let decision = decided(Preset::ResourceAware, |world| {
        let busy = Metrics { cpu_pct: Some(Fixed::whole(99)), ..Metrics::default() };
        world.worker("w").metrics(busy);
        world.job("1").rescored(4);
    });
    waits(&decision, Reason::BelowZero, &["1 worker"]);
}

#[test]
fn outranked_tells_that_others_went_first() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(2);
        world.freed("w", 1);
        world.job("1");
        world.job("2").priority(1);
    });
    waits(&decision, Reason::Outranked, &["first"]);
}

/// A world in which some jobs go, some are put off and some wait for all kinds of reasons.
fn mixed(world: &mut World) {
    world.worker("a").slots(2).types(&["pdf"]);
    world.worker("b").types(&["xls"]).unhealthy();
    world.tenant("paused").paused();
    for job in 0..5 {
        world.job(&format!("{job}")).kind("pdf").rescored(4);
    }
    world.job("10").kind("xls");
    world.job("11").kind("zip");
    world.job("12").kind("pdf").tenant("paused");
    world.job("13").kind("pdf").age_s(-60);
    world.job("9").kind("pdf").not_before_ms(1);
}

#[test]
fn every_job_is_placed_or_held_exactly_once() {
    for preset in Preset::ALL {
        let decision = decided(preset, mixed);
        let held = decision.holds.iter().map(|hold| hold.job.to_string());
        let mut jobs: Vec<String> = jobs_placed(&decision).into_iter().chain(held).collect();
        jobs.sort_by_key(|job| model::JobId::new(job));
        let all = ["0", "1", "2", "3", "4", "9", "10", "11", "12", "13"];
        assert_eq!(jobs, all, "{preset:?}");
    }
}

#[test]
fn holds_are_listed_by_job_id() {
    for preset in Preset::ALL {
        let decision = decided(preset, mixed);
        assert!(decision.holds.is_sorted_by_key(|hold| hold.job.clone()), "{preset:?}");
    }
}

#[test]
fn a_deferred_job_appears_in_holds_too() {
    let decision = decided(Preset::PriorityAge, mixed);
    for (job, _) in deferred(&decision) {
        assert!(reason(&decision, &job).is_some(), "{job}");
    }
    assert!(!deferred(&decision).is_empty());
}
