//! Nobody is told to stop without need, without use, or below what they are due.

use model::{
    Ask, Eviction, Fixed, Job, JobId, JobType, Millis, Name, Preset, Quota, Reason, Snapshot,
};

use super::stage::{
    assert_only, assert_says, assert_sound, attempt, found, hold, job, place, preempt, resource,
    room_and_jobs, worker,
};
use crate::worlds::NOW;

/// Job 1 of tenant `a`, which is below its minimum of 2, may preempt job 9 of tenant `b` on `w`.
fn stage() -> Snapshot {
    let mut before = room_and_jobs(1, 1);
    before.policy = Preset::Cohort.policy();
    before.policy.preemption.enabled = true;
    before.jobs[0].priority = 1;
    before.attempts = vec![attempt(9, "b", "w")];
    before.tenants[0].quotas = vec![quota("default", 2, None)];
    before
}

fn quota(pool: &str, min: u32, max: Option<u32>) -> Quota {
    Quota { pool: Name::new(pool), min, max }
}

/// What is said if job 9 is told to stop on `w` for job 1.
#[track_caller]
fn told(before: &Snapshot, flaw: &str) {
    let said = found(before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]);
    assert_only(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
}

/// The same, where the hold of job 1 is wrong as well.
#[track_caller]
fn told_among_others(before: &Snapshot, flaw: &str) {
    let said = found(before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]);
    assert_says(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
}

#[test]
fn a_tenant_below_its_minimum_gets_a_slot_back() {
    let said = found(&stage(), &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]);
    assert_sound(&said);
    assert_sound(&found(&stage(), &[], &[hold(1, Reason::WorkersFull)]));
}

#[test]
fn a_policy_without_preemption_tells_nobody_to_stop() {
    let mut before = stage();
    before.policy.preemption.enabled = false;
    told(&before, "but preemption is off");
}

#[test]
fn a_preemptor_has_waited_long_enough() {
    let mut before = stage();
    before.jobs[0].ready = NOW - Millis(20_000);
    let said = found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]);
    assert_sound(&said);
    before.jobs[0].ready = NOW - Millis(19_999);
    told(&before, "which has been ready for 19999 ms only, of 20000 ms");
}

#[test]
fn a_preemptor_could_start_if_there_were_room() {
    let mut before = stage();
    before.tenants[0].jobs_max = Some(0);
    told(&before, "which could not start with room either: tenant-at-jobs-max");

    let mut before = stage();
    before.tenants[0].active = false;
    told_among_others(&before, "which could not start with room either: tenant-paused");

    let mut before = stage();
    before.tenants[0].budget = Some(Fixed::ZERO);
    told_among_others(&before, "which could not start with room either: budget-spent");

    let mut before = stage();
    before.resources = vec![resource("db", "b")];
    before.jobs[0].resource = Some(Ask::Named(Name::new("db")));
    told_among_others(&before, "which could not start with room either: no-resource-ever");

    let mut before = stage();
    before.jobs[0].backoff_until = Some(NOW + Millis(1));
    told_among_others(&before, "which could not start with room either: not-before");
}

#[test]
fn a_preemptor_stays_within_its_own_maximum() {
    let mut before = stage();
    before.workers[0].slots = 2;
    before.attempts.push(attempt(8, "a", "w"));
    before.tenants[0].quotas = vec![quota("default", 2, Some(2))];
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.jobs[0].slots = 2;
    told_among_others(&before, "which could not start with room either: tenant-at-max");
}

#[test]
fn a_preemptor_that_waits_for_a_victim_gets_no_second_one() {
    let mut before = stage();
    before.workers[0].slots = 2;
    before.attempts.push(attempt(8, "b", "w"));
    before.attempts[1].stopping_for = Some(JobId::number(1));
    told(&before, "which waits for job 8 already");
}

#[test]
fn a_tenant_at_its_minimum_preempts_nobody() {
    let mut before = stage();
    before.workers[0].slots = 3;
    before.attempts.extend([attempt(7, "a", "w"), attempt(8, "a", "w")]);
    told(&before, "whose tenant has 2 slots in the pool and a minimum of 2");
    before.tenants[0].quotas.clear();
    told(&before, "whose tenant has 2 slots in the pool and a minimum of 0");
}

#[test]
fn what_is_placed_or_promised_counts_towards_the_minimum() {
    let mut before = stage();
    before.workers[0].slots = 2;
    before.attempts.push(attempt(8, "b", "w"));
    before.jobs.push(Job { priority: 1, ..job(2, "a") });
    let both = [preempt(9, "w", 1), preempt(8, "w", 2)];
    let holds = [hold(1, Reason::Preempting), hold(2, Reason::Preempting)];
    assert_sound(&found(&before, &both, &holds));

    before.tenants[0].quotas = vec![quota("default", 1, None)];
    let said = found(&before, &both, &holds);
    let flaw = "whose tenant has 1 slots in the pool and a minimum of 1";
    assert_says(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
    assert_says(&said, &format!("job 8 on worker w is told to stop for 2, {flaw}"));

    before.attempts[1].stopping_for = Some(JobId::number(2));
    let said = found(&before, &both[..1], &holds);
    assert_only(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));

    before.attempts.truncate(1);
    before.workers[0].slots = 1;
    before.workers.push(worker("v", 1));
    let said = found(&before, &[preempt(9, "w", 1), place(2, "v")], &holds[..1]);
    assert_only(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
}

#[test]
fn a_job_that_was_promised_a_slot_and_gets_one_counts_once() {
    let mut before = stage();
    before.workers[0].slots = 2;
    before.workers.push(worker("v", 1));
    before.attempts.push(attempt(8, "b", "w"));
    before.attempts[1].stopping_for = Some(JobId::number(2));
    before.jobs.push(job(2, "a"));
    let actions = [preempt(9, "w", 1), place(2, "v")];
    assert_sound(&found(&before, &actions, &[hold(1, Reason::Preempting)]));
}

#[test]
fn of_several_preemptors_the_widest_may_be_the_last() {
    let mut before = stage();
    before.workers[0].slots = 3;
    before.attempts.push(attempt(8, "b", "w"));
    before.attempts[1].slots = 2;
    before.jobs.push(Job { priority: 1, slots: 2, ..job(2, "a") });
    let both = [preempt(8, "w", 2), preempt(9, "w", 1)];
    let holds = [hold(1, Reason::Preempting), hold(2, Reason::Preempting)];
    assert_sound(&found(&before, &both, &holds));
}

#[test]
fn a_worker_that_does_not_fit_is_not_cleared() {
    let mut before = stage();
    before.jobs[0].pool = Some(Name::new("east"));
    told_among_others(&before, "but that worker is not in pool east");

    let mut before = stage();
    before.workers[0].draining = true;
    told_among_others(&before, "but that worker is draining");

    let mut before = stage();
    before.jobs[0].slots = 2;
    told_among_others(&before, "but that worker is too small for it");
}

#[test]
fn victims_and_what_is_free_make_room_together() {
    let mut before = stage();
    before.workers[0].slots = 3;
    before.attempts.push(attempt(8, "b", "w"));
    before.jobs[0].slots = 2;
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.jobs[0].slots = 3;
    told(&before, "but that makes no room: 1 too many new slots on worker w");
    before.workers[0].slots_free = Some(0);
    told(&before, "but that makes no room: 2 too many new slots on worker w");
}

#[test]
fn what_is_free_is_promised_once() {
    let mut before = stage();
    before.workers[0].slots = 3;
    before.attempts.push(attempt(8, "b", "w"));
    before.tenants[0].quotas = vec![quota("default", 3, None)];
    before.jobs.push(Job { priority: 1, slots: 2, ..job(2, "a") });
    before.jobs[0].slots = 2;
    let both = [preempt(9, "w", 1), preempt(8, "w", 2)];
    let said = found(&before, &both, &[hold(1, Reason::Preempting), hold(2, Reason::Preempting)]);
    let flaw = "but that makes no room: 1 too many new slots on worker w";
    assert_says(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
    assert_says(&said, &format!("job 8 on worker w is told to stop for 2, {flaw}"));
}

#[test]
fn victims_make_room_for_amounts_and_types_too() {
    let mut before = stage();
    before.workers[0].slots = 2;
    before.workers[0].amounts = [(Name::new("gpu"), 1)].into();
    before.jobs[0].amounts = [(Name::new("gpu"), 1)].into();
    before.attempts[0].amounts = [(Name::new("gpu"), 1)].into();
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.attempts.push(attempt(8, "b", "w"));
    before.attempts.swap(0, 1);
    (before.attempts[0].job, before.attempts[1].job) = (JobId::number(9), JobId::number(8));
    told(&before, "but that makes no room: 1 too many new gpu on worker w");

    let mut before = stage();
    let doc = Some(Name::new("doc"));
    before.types = vec![JobType { worker_max: Some(1), ..JobType::new(Name::new("doc")) }];
    before.jobs[0].kind = doc.clone();
    before.attempts[0].kind = doc.clone();
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.workers[0].slots = 2;
    before.attempts.push(attempt(8, "b", "w"));
    before.attempts[1].kind = doc;
    told(&before, "but that makes no room: 1 too many jobs of type doc on w");
    before.attempts[0].kind = None;
    told(&before, "but that makes no room: 1 too many jobs of type doc on w");
}

#[test]
fn nobody_stops_while_a_slot_that_fits_is_free() {
    let mut before = stage();
    before.workers.push(worker("v", 1));
    told(&before, "but worker v has room for it");

    before.workers[1].pool = Name::new("east");
    told(&before, "but worker v has room for it");
    before.tenants[0].quotas.push(quota("east", 0, Some(0)));
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
}

#[test]
fn all_victims_of_a_job_are_on_one_worker() {
    let mut before = stage();
    before.workers.push(worker("v", 1));
    before.attempts.push(attempt(8, "b", "v"));
    let actions = [preempt(9, "w", 1), preempt(8, "v", 1)];
    let said = found(&before, &actions, &[hold(1, Reason::Preempting)]);
    assert_says(
        &said,
        "job 9 on worker w is told to stop for 1, which has victims on worker v too",
    );
    assert_says(
        &said,
        "job 8 on worker v is told to stop for 1, which has victims on worker w too",
    );
    assert_eq!(said.len(), 2);
}

#[test]
fn a_tenant_does_not_preempt_itself() {
    let mut before = stage();
    before.attempts[0] = attempt(9, "a", "w");
    told_among_others(&before, "which is of the same tenant");
}

#[test]
fn a_victim_has_strictly_lower_priority() {
    let mut before = stage();
    before.attempts[0].priority = 1;
    told(&before, "whose priority 1 is not above 1");
}

#[test]
fn a_victim_has_run_long_enough() {
    let mut before = stage();
    before.policy.preemption.min_run = Millis(60_000);
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.policy.preemption.min_run = Millis(60_001);
    told(&before, "but it has run for 60000 ms only, of 60001 ms");
}

#[test]
fn a_victim_was_not_one_too_often() {
    let mut before = stage();
    before.attempts[0].evictions = 2;
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.attempts[0].evictions = 3;
    told(&before, "but it was preempted 3 times before, at most 3");
}

#[test]
fn a_victim_that_stops_already_is_not_told_again() {
    let mut before = stage();
    before.jobs.push(job(2, "b"));
    before.attempts[0].stopping_for = Some(JobId::number(2));
    let holds = [hold(1, Reason::Preempting), hold(2, Reason::Preempting)];
    let said = found(&before, &[preempt(9, "w", 1)], &holds);
    assert_only(&said, "job 9 on worker w is told to stop for 1, but it stops for job 2 already");
}

#[test]
fn a_victims_tenant_keeps_its_own_minimum() {
    let mut before = stage();
    before.tenants[1].quotas = vec![quota("default", 1, None)];
    told(&before, "but that leaves its tenant 0 slots of its minimum of 1");

    before.workers[0].slots = 2;
    before.attempts.push(attempt(8, "b", "w"));
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
    before.attempts[1].stopping_for = Some(JobId::number(77));
    told(&before, "but that leaves its tenant 0 slots of its minimum of 1");
}

#[test]
fn all_victims_of_a_tenant_count_and_nobody_elses() {
    let mut before = stage();
    before.workers[0].slots = 5;
    before.workers.push(worker("v", 1));
    before.workers[1].pool = Name::new("east");
    before.attempts.extend([attempt(8, "b", "w"), attempt(7, "b", "w")]);
    before.attempts.extend([attempt(6, "a", "w"), attempt(5, "b", "v"), attempt(4, "b", "w")]);
    before.attempts[3].stopping_for = Some(JobId::number(77));
    before.attempts[4].stopping_for = Some(JobId::number(77));
    before.jobs[0].slots = 2;
    before.workers[0].slots_free = Some(0);
    let actions = [preempt(9, "w", 1), preempt(8, "w", 1)];
    before.tenants[1].quotas = vec![quota("default", 2, None)];
    assert_sound(&found(&before, &actions, &[hold(1, Reason::Preempting)]));

    before.tenants[1].quotas = vec![quota("default", 3, None)];
    let said = found(&before, &actions, &[hold(1, Reason::Preempting)]);
    let flaw = "but that leaves its tenant 2 slots of its minimum of 3";
    assert_says(&said, &format!("job 9 on worker w is told to stop for 1, {flaw}"));
    assert_says(&said, &format!("job 8 on worker w is told to stop for 1, {flaw}"));
}

#[test]
fn evictions_do_not_lower_a_maximum_below_the_minimum() {
    let mut before = stage();
    before.tenants[0].quotas = vec![quota("default", 1, Some(2))];
    let eviction =
        Eviction { at: NOW, tenant: before.tenants[0].id.clone(), pool: Name::new("default") };
    before.evictions = vec![eviction; 5];
    assert_sound(&found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]));
}
