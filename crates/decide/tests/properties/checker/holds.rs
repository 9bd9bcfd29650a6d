//! Every reason is true, and the first that applies.

use model::{
    Ask, Attempt, Budget, Fixed, Freed, JobId, JobType, Millis, Name, Quota, Reason, Snapshot,
    WorkerId,
};

use super::stage::{
    assert_only, assert_says, assert_sound, attempt, found, hold, place, resource, room_and_jobs,
    worker,
};
use crate::worlds::NOW;

/// That job 1 waits for `reason`, and that no other reason of a limit is accepted.
#[track_caller]
fn held_as(before: &Snapshot, reason: Reason) {
    for said in Reason::ALL {
        let violations = found(before, &[], &[hold(1, said)]);
        if said == reason {
            assert_sound(&violations);
        } else if !is_on_purpose(said) {
            let (said, first) = (said.name(), reason.name());
            let sentence = format!("job 1 is held as {said}, but the first reason is {first}");
            assert_says(&violations, &sentence);
        }
    }
}

fn is_on_purpose(reason: Reason) -> bool {
    [Reason::Guarded, Reason::Reserved, Reason::Vetoed, Reason::BelowZero].contains(&reason)
}

#[test]
fn reasons_are_looked_for_in_the_order_in_which_they_compare() {
    assert!(Reason::ALL.is_sorted());
}

/// Everything that can keep a job waiting does; one by one it goes away.
#[test]
fn the_first_reason_that_applies_counts() {
    let mut before = room_and_jobs(1, 1);
    before.jobs[0].kind = Some(Name::new("doc"));
    before.jobs[0].resource = Some(Ask::Any);
    before.types = vec![JobType { worker_max: Some(0), ..JobType::new(Name::new("doc")) }];
    before.tenants[0].jobs_max = Some(0);
    before.tenants[0].budget = Some(Fixed::thousandths(999));
    before.budget = Some(Budget { limit: Fixed::thousandths(999), used: Fixed::ZERO });
    before.tenants[0].quotas = vec![Quota { pool: Name::new("default"), min: 0, max: Some(0) }];
    before.tenants[0].active = false;
    before.attempts = vec![attempt(9, "b", "w")];
    before.workers[0].draining = true;
    before.workers[0].types = vec![Name::new("zip")];
    before.jobs[0].not_before = Some(NOW + Millis(1));
    before.jobs[0].ready = NOW + Millis(1);

    held_as(&before, Reason::NoWorkerEver);
    before.workers[0].types.clear();
    held_as(&before, Reason::NoResourceEver);
    before.tenants[0].workspaces = Some(1);
    before.attempts.push(Attempt { holds: Some(Ask::Any), ..attempt(8, "a", "w") });
    held_as(&before, Reason::TenantPaused);
    before.tenants[0].active = true;
    held_as(&before, Reason::BudgetSpent);
    before.tenants[0].budget = None;
    held_as(&before, Reason::BudgetSpentGlobal);
    before.budget = None;
    held_as(&before, Reason::NotReady);
    before.jobs[0].ready = NOW;
    held_as(&before, Reason::NotBefore);
    before.jobs[0].not_before = None;
    before.jobs[0].backoff_until = Some(NOW + Millis(1));
    held_as(&before, Reason::NotBefore);
    before.jobs[0].backoff_until = None;
    held_as(&before, Reason::NoWorkerNow);
    before.workers[0].draining = false;
    held_as(&before, Reason::TenantAtMax);
    before.tenants[0].quotas.clear();
    held_as(&before, Reason::TenantAtJobsMax);
    before.tenants[0].jobs_max = None;
    held_as(&before, Reason::TypeAtMax);
    before.types = vec![JobType { jobs_max: Some(0), ..JobType::new(Name::new("doc")) }];
    held_as(&before, Reason::TypeAtMax);
    before.types.clear();
    held_as(&before, Reason::ResourceHeld);
    before.attempts.pop();
    held_as(&before, Reason::WorkersFull);
    before.attempts.clear();
    assert_sound(&found(&before, &[place(1, "w")], &[]));
}

#[test]
fn workers_that_are_all_unhealthy_are_told_from_workers_that_go() {
    let mut before = room_and_jobs(1, 1);
    before.workers[0].healthy = false;
    held_as(&before, Reason::WorkerUnhealthy);
    before.workers.push(worker("v", 1));
    before.workers[1].healthy = false;
    held_as(&before, Reason::WorkerUnhealthy);
    before.workers[1].draining = true;
    held_as(&before, Reason::NoWorkerNow);
}

#[test]
fn a_job_that_is_too_wide_for_every_worker_never_runs() {
    let mut before = room_and_jobs(1, 1);
    before.jobs[0].slots = 2;
    held_as(&before, Reason::NoWorkerEver);
    before.jobs[0].slots = 1;
    before.jobs[0].amounts = [(Name::new("gpu"), 1)].into();
    held_as(&before, Reason::NoWorkerEver);
    before.workers[0].amounts = [(Name::new("gpu"), 1)].into();
    before.attempts = vec![attempt(9, "b", "w")];
    before.attempts[0].amounts = [(Name::new("gpu"), 1)].into();
    before.workers[0].slots = 2;
    held_as(&before, Reason::WorkersFull);
}

#[test]
fn a_job_whose_victim_stops_is_preempting() {
    let mut before = room_and_jobs(1, 1);
    before.attempts = vec![attempt(9, "b", "w")];
    before.attempts[0].stopping_for = Some(JobId::number(1));
    held_as(&before, Reason::Preempting);
    before.workers.push(worker("v", 1));
    held_as(&before, Reason::Preempting);
    before.tenants[0].active = false;
    held_as(&before, Reason::TenantPaused);
    before.tenants[0].active = true;
    before.jobs[0].not_before = Some(NOW + Millis(1));
    held_as(&before, Reason::NotBefore);
}

#[test]
fn reasons_are_judged_after_all_placements() {
    let mut before = room_and_jobs(3, 2);
    before.resources = vec![resource("db", "")];
    for job in &mut before.jobs {
        job.resource = Some(Ask::Named(Name::new("db")));
    }
    assert_sound(&found(&before, &[place(1, "w")], &[hold(2, Reason::ResourceHeld)]));
    before.tenants[0].jobs_max = Some(1);
    assert_sound(&found(&before, &[place(1, "w")], &[hold(2, Reason::TenantAtJobsMax)]));
    before.workers[0].slots = 1;
    assert_sound(&found(&before, &[place(1, "w")], &[hold(2, Reason::TenantAtJobsMax)]));
}

#[test]
fn a_worker_does_not_idle_while_a_job_waits_for_room() {
    let before = room_and_jobs(2, 2);
    let said = found(&before, &[place(1, "w")], &[hold(2, Reason::Outranked)]);
    assert_only(&said, "job 2 is held as outranked, but worker w has room for it");
    for reason in
        [Reason::WorkersFull, Reason::NoWorkerNow, Reason::WorkerUnhealthy, Reason::NoWorkerEver]
    {
        let said = found(&before, &[place(1, "w")], &[hold(2, reason)]);
        let reason = reason.name();
        let sentence = format!("job 2 is held as {reason}, but worker w has room for it");
        assert_says(&said, &sentence);
    }
}

#[test]
fn a_worker_that_asks_does_not_idle_while_it_is_due_more() {
    let mut before = room_and_jobs(3, 3);
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 2 });
    let holds = [hold(2, Reason::Outranked), hold(3, Reason::Outranked)];
    let said = found(&before, &[place(1, "w")], &holds);
    assert_says(&said, "job 2 is held as outranked, but worker w has room for it");
    assert_says(&said, "job 3 is held as outranked, but worker w has room for it");

    let holds = [hold(3, Reason::Outranked)];
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &holds));
    before.policy.proactive_fetch_to_capacity = true;
    let said = found(&before, &[place(1, "w"), place(2, "w")], &holds);
    assert_only(&said, "job 3 is held as outranked, but worker w has room for it");
}
