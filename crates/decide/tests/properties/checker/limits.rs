//! All placements together exceed no limit.

use model::{Budget, Eviction, Fixed, JobType, Millis, Name, Preset, Quota, Snapshot, TenantId};

use super::stage::{assert_only, assert_sound, attempt, found, place, room_and_jobs, worker};
use crate::worlds::NOW;

/// A world of two jobs where there is room for both, and what is said if both are placed.
#[track_caller]
fn both_placed(before: &Snapshot, sentence: &str) {
    assert_only(&found(before, &[place(1, "w"), place(2, "w")], &[]), sentence);
}

#[test]
fn slots_that_attempts_take_are_not_free() {
    let mut before = room_and_jobs(2, 2);
    before.attempts = vec![attempt(9, "b", "w")];
    both_placed(&before, "new slots on worker w would be 2, at most 1");
}

#[test]
fn slots_that_a_worker_says_are_not_free_are_not() {
    let mut before = room_and_jobs(4, 2);
    before.workers[0].slots_free = Some(1);
    both_placed(&before, "new slots on worker w would be 2, at most 1");
}

#[test]
fn a_wide_job_takes_all_its_slots() {
    let mut before = room_and_jobs(3, 2);
    before.jobs[1].slots = 3;
    both_placed(&before, "new slots on worker w would be 4, at most 3");
}

#[test]
fn amounts_are_taken_by_attempts_and_placements() {
    let mut before = room_and_jobs(9, 2);
    let gpu = |amount| [(Name::new("gpu"), amount)].into();
    before.workers[0].amounts = gpu(5);
    before.attempts = vec![attempt(9, "b", "w")];
    before.attempts[0].amounts = gpu(2);
    before.jobs[0].amounts = gpu(1);
    before.jobs[1].amounts = gpu(3);
    both_placed(&before, "new gpu on worker w would be 4, at most 3");
}

#[test]
fn an_amount_that_a_worker_does_not_name_is_not_there() {
    let mut before = room_and_jobs(9, 2);
    before.jobs[0].amounts = [(Name::new("gpu"), 1)].into();
    before.jobs[1].amounts = [(Name::new("ram_mb"), 0)].into();
    both_placed(&before, "new gpu on worker w would be 1, at most 0");
}

#[test]
fn a_tenants_slots_in_a_pool_stay_within_its_maximum() {
    let mut before = room_and_jobs(9, 2);
    let quota = |pool| Quota { pool: Name::new(pool), min: 0, max: Some(2) };
    before.tenants[0].quotas = vec![quota("default"), quota("east")];
    before.workers.push(worker("v", 1));
    before.workers[1].pool = Name::new("east");
    before.attempts = vec![attempt(8, "a", "v"), attempt(9, "b", "w")];
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));
    before.attempts.push(attempt(10, "a", "w"));
    both_placed(&before, "slots of tenant a in pool default would be 3, at most 2");
}

#[test]
fn recent_evictions_lower_the_maximum_in_cohorts_only() {
    let mut before = room_and_jobs(9, 2);
    before.tenants[0].quotas = vec![Quota { pool: Name::new("default"), min: 1, max: Some(2) }];
    let eviction = |tenant, pool, age| Eviction {
        at: NOW - Millis(age),
        tenant: TenantId::new(tenant),
        pool: Name::new(pool),
    };
    before.evictions = vec![
        eviction("a", "default", 600_000),
        eviction("b", "default", 0),
        eviction("a", "east", 0),
    ];
    before.policy = Preset::Cohort.policy();
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));

    before.evictions.push(eviction("a", "default", 599_999));
    both_placed(&before, "slots of tenant a in pool default would be 2, at most 1");
    before.evictions.push(eviction("a", "default", 1));
    both_placed(&before, "slots of tenant a in pool default would be 2, at most 1");

    before.tenants[0].quotas[0].max = Some(4);
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));
    before.tenants[0].quotas[0].max = Some(2);
    before.policy = Preset::Balanced.policy();
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));
}

#[test]
fn a_tenant_runs_no_more_jobs_than_it_may() {
    let mut before = room_and_jobs(9, 2);
    before.tenants[0].jobs_max = Some(2);
    before.attempts = vec![attempt(9, "a", "w")];
    both_placed(&before, "jobs of tenant a would be 3, at most 2");
}

#[test]
fn a_type_runs_no_more_jobs_than_it_may() {
    let mut before = room_and_jobs(9, 2);
    let doc = Some(Name::new("doc"));
    before.types = vec![JobType { jobs_max: Some(2), ..JobType::new(Name::new("doc")) }];
    before.attempts = vec![attempt(9, "b", "w")];
    before.attempts[0].kind = doc.clone();
    before.jobs[0].kind = doc.clone();
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));
    before.jobs[1].kind = doc;
    both_placed(&before, "jobs of type doc would be 3, at most 2");
}

#[test]
fn a_type_runs_no_more_jobs_on_a_worker_than_it_may() {
    let mut before = room_and_jobs(9, 2);
    before.types = vec![JobType { worker_max: Some(1), ..JobType::new(Name::new("doc")) }];
    for job in &mut before.jobs {
        job.kind = Some(Name::new("doc"));
    }
    both_placed(&before, "jobs of type doc on w would be 2, at most 1");
}

#[test]
fn a_worker_runs_no_more_jobs_of_a_type_than_it_said() {
    let mut before = room_and_jobs(9, 2);
    before.workers[0].type_max = [(Name::new("doc"), 1)].into();
    for job in &mut before.jobs {
        job.kind = Some(Name::new("doc"));
    }
    both_placed(&before, "jobs that worker w runs of type doc would be 2, at most 1");
}

#[test]
fn a_tenants_budget_covers_what_is_settled_what_runs_and_what_starts() {
    let mut before = room_and_jobs(9, 2);
    before.tenants[0].used = Fixed::whole(2);
    before.tenants[0].budget = Some(Fixed::thousandths(5_499));
    before.attempts = vec![attempt(9, "a", "w")];
    before.jobs[1].cost = Fixed::thousandths(1_500);
    both_placed(&before, "cost of tenant a would be 5.5, at most 5.499");
}

#[test]
fn the_budget_of_all_covers_everybody() {
    let mut before = room_and_jobs(9, 2);
    before.budget = Some(Budget { limit: Fixed::whole(4), used: Fixed::ONE });
    before.attempts = vec![attempt(8, "a", "w"), attempt(9, "b", "w")];
    both_placed(&before, "cost of all tenants together would be 5, at most 4");
}

#[test]
fn a_limit_that_was_exceeded_before_is_nobodys_fault_until_more_is_placed() {
    let mut before = room_and_jobs(9, 0);
    before.tenants[0].jobs_max = Some(0);
    before.attempts = vec![attempt(9, "a", "w")];
    assert_sound(&found(&before, &[], &[]));
}
