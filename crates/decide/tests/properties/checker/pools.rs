//! A pool may have a policy of its own: each job is judged by the policy that decides on it.

use model::{
    Eviction, Fixed, Freed, Job, JobType, Millis, Name, Policy, Preset, Quota, Reason, Snapshot,
    TenantId, WorkerId,
};

use super::stage::{
    assert_only, assert_says, assert_sound, attempt, defer, found, hold, job, place, preempt,
    room_and_jobs, worker,
};
use crate::worlds::NOW;

const BACKOFF: Millis = Millis::from_secs(5);

/// Worker `w` of pool `default` with so many slots, and the policies of that pool and of the site.
/// Jobs with odd numbers name the pool.
fn stage(slots: u32, n_jobs: u64, pool: Policy, site: Policy) -> Snapshot {
    let mut before = room_and_jobs(slots, n_jobs);
    before.policy = site;
    before.pools = [(Name::new("default"), pool)].into();
    for job in before.jobs.iter_mut().step_by(2) {
        job.pool = Some(Name::new("default"));
    }
    before
}

fn plain() -> Policy {
    Preset::Aging.policy()
}

#[test]
fn a_job_without_a_pool_belongs_to_the_pool_of_its_type() {
    let backing_off = Preset::PriorityAge.policy();
    let mut before = stage(1, 2, backing_off, plain());
    let actions = [place(1, "w"), defer(2, BACKOFF)];
    let said = found(&before, &actions, &[hold(2, Reason::WorkersFull)]);
    assert_only(&said, "job 2 is deferred to 1000005000 ms, which its policy does not do");

    let kind = Name::new("doc");
    before.jobs[1].kind = Some(kind.clone());
    before.types = vec![JobType { pool: Some(Name::new("default")), ..JobType::new(kind) }];
    assert_sound(&found(&before, &actions, &[hold(2, Reason::WorkersFull)]));
}

#[test]
fn evictions_lower_the_maximum_for_jobs_of_a_cohort_alone() {
    let mut before = stage(9, 2, Preset::Cohort.policy(), plain());
    before.tenants[0].quotas = vec![Quota { pool: Name::new("default"), min: 0, max: Some(2) }];
    let (tenant, pool) = (TenantId::new("a"), Name::new("default"));
    before.evictions = vec![Eviction { at: NOW - BACKOFF, tenant, pool }];
    let both = [place(1, "w"), place(2, "w")];
    // Job 1 may have been placed before job 2, which has a higher maximum.
    assert_sound(&found(&before, &both, &[]));

    before.jobs[1].pool = Some(Name::new("default"));
    let said = found(&before, &both, &[]);
    assert_only(&said, "slots of tenant a in pool default would be 2, at most 1");

    let cohort = before.pools.get_mut(&Name::new("default")).expect("it has a policy");
    cohort.eviction_cooldown = BACKOFF;
    assert_sound(&found(&before, &both, &[]));
}

#[test]
fn jobs_of_the_rest_of_a_cohort_site_stay_within_the_lowered_maximum() {
    let mut before = stage(9, 3, plain(), Preset::Cohort.policy());
    before.jobs[0].pool = None;
    before.tenants[0].quotas = vec![Quota { pool: Name::new("default"), min: 0, max: Some(3) }];
    let (tenant, pool) = (TenantId::new("a"), Name::new("default"));
    before.evictions = vec![Eviction { at: NOW, tenant, pool }; 2];
    let said = found(&before, &[place(1, "w"), place(2, "w"), place(3, "w")], &[]);
    assert_only(&said, "slots of tenant a in pool default would be 2, at most 1");
}

#[test]
fn a_worker_that_asks_is_filled_up_with_jobs_of_policies_that_fill_up() {
    let mut fills_up = plain();
    fills_up.proactive_fetch_to_capacity = true;
    let mut before = stage(4, 4, fills_up, plain());
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 1 });
    let held = [hold(4, Reason::Outranked)];
    let three = [place(1, "w"), place(2, "w"), place(3, "w")];
    assert_sound(&found(&before, &three, &held));
    let said = found(&before, &[place(1, "w"), place(2, "w"), place(3, "w"), place(4, "w")], &[]);
    assert_only(&said, "worker w completed 1 jobs and gets 2");
    // The policy of job 3 could have placed it.
    let held = [hold(3, Reason::Outranked), hold(4, Reason::Outranked)];
    let said = found(&before, &[place(1, "w"), place(2, "w")], &held);
    assert_only(&said, "job 3 is held as outranked, but worker w has room for it");
}

#[test]
fn a_worker_that_asks_is_not_idle_for_a_job_of_another_part() {
    let mut before = stage(1, 2, plain(), plain());
    before.jobs.remove(0);
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 1 });
    let said = found(&before, &[], &[hold(2, Reason::Outranked)]);
    assert_only(&said, "job 2 is held as outranked, but worker w has room for it");
}

#[test]
fn a_job_is_passed_over_by_a_worker_that_asks_as_its_policy_says() {
    let mut literal = plain();
    literal.proactive_fetch_literal = true;
    let mut before = stage(2, 2, literal, plain());
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 2 });
    assert_sound(&found(&before, &[place(2, "w")], &[hold(1, Reason::NotBefore)]));
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_says(
        &said,
        "job 1 is placed at 1000000000 ms, but its backoff ended at 999940000 ms and a worker \
         that asks passes over it",
    );
}

#[test]
fn slots_are_kept_from_jobs_of_all_parts_for_a_wide_job() {
    let mut keeps = plain();
    keeps.reserve = true;
    let wide = |pool: Policy, site: Policy| {
        let mut before = stage(2, 2, pool, site);
        before.attempts = vec![attempt(9, "a", "w")];
        before.attempts[0].estimate = Some(Millis::from_secs(120));
        before.jobs[1].slots = 2;
        before
    };
    let holds = [hold(1, Reason::Reserved), hold(2, Reason::WorkersFull)];
    assert_sound(&found(&wide(plain(), keeps.clone()), &[], &holds));
    let said = found(&wide(keeps, plain()), &[], &holds);
    assert_only(&said, "job 1 is held as reserved, but nothing keeps it off worker w");
}

#[test]
fn only_a_policy_with_rules_vetoes() {
    let before = stage(2, 2, Preset::Simple.policy(), plain());
    assert_sound(&found(&before, &[place(2, "w")], &[hold(1, Reason::Vetoed)]));
    let said = found(&before, &[place(1, "w")], &[hold(2, Reason::Vetoed)]);
    assert_says(&said, "job 2 is held as vetoed, which this policy does not do");
}

/// Job 1 of tenant `a` below its minimum of 1, beside job 9 of tenant `b`, which runs.
fn contest(pool: Policy, site: Policy) -> Snapshot {
    let mut before = stage(1, 1, pool, site);
    before.jobs[0].priority = 1;
    before.attempts = vec![attempt(9, "b", "w")];
    before.tenants[0].quotas = vec![Quota { pool: Name::new("default"), min: 1, max: None }];
    before
}

#[test]
fn the_policy_of_the_preemptor_says_whether_a_victim_stops() {
    let mut preempts = Preset::Cohort.policy();
    preempts.preemption.enabled = true;
    let stops =
        |before: &Snapshot| found(before, &[preempt(9, "w", 1)], &[hold(1, Reason::Preempting)]);
    assert_sound(&stops(&contest(preempts.clone(), plain())));
    let said = stops(&contest(plain(), preempts.clone()));
    assert_only(&said, "job 9 on worker w is told to stop for 1, but preemption is off");

    let mut patient = preempts.clone();
    patient.preemption.min_run = Millis::from_secs(61);
    assert_sound(&stops(&contest(preempts.clone(), patient.clone())));
    let said = stops(&contest(patient, preempts));
    assert_only(
        &said,
        "job 9 on worker w is told to stop for 1, but it has run for 60000 ms only, of 61000 ms",
    );
}

#[test]
fn a_later_part_does_not_take_the_room_that_victims_make() {
    let mut preempts = Preset::Cohort.policy();
    preempts.preemption.enabled = true;
    let mut before = contest(preempts, plain());
    before.workers[0].slots = 2;
    before.jobs[0].slots = 2;
    before.tenants[0].quotas[0].min = 2;
    before.jobs.push(Job { cost: Fixed::ONE, ..job(2, "b") });
    let held = [hold(1, Reason::Preempting)];
    let said = found(&before, &[preempt(9, "w", 1), place(2, "w")], &held);
    assert_only(
        &said,
        "job 9 on worker w is told to stop for 1, but that makes no room: 1 too many new slots on \
         worker w",
    );
}

#[test]
fn a_guard_counts_for_jobs_of_its_part_alone() {
    let mut guards = plain();
    guards.guard = true;
    let mut before = stage(1, 2, guards, plain());
    before.workers.push(worker("v", 1));
    let said = found(&before, &[place(1, "w")], &[hold(2, Reason::Guarded)]);
    assert_says(&said, "job 2 is held as guarded, which this policy does not do");
    let said = found(&before, &[place(2, "w")], &[hold(1, Reason::Guarded)]);
    assert_only(&said, "job 1 is held as guarded, but nothing keeps it off worker v");
}
