//! Small worlds by hand, and decisions about them.

use decide::check::{Violation, check};
use model::{
    Action, Attempt, Decision, Defer, Fixed, Hold, Job, JobId, Millis, Name, Placement, Preempt,
    Preset, Reason, Resource, Snapshot, Tenant, TenantId, Worker, WorkerId,
};

use crate::worlds::NOW;

/// A full round of `preset` in a world with tenants `a` and `b` and nothing else.
pub(super) fn world(preset: Preset) -> Snapshot {
    Snapshot {
        usual: None,
        now: NOW,
        seed: 0,
        policy: preset.policy(),
        pools: std::collections::BTreeMap::new(),
        budget: None,
        tenants: vec![Tenant::new(TenantId::new("a")), Tenant::new(TenantId::new("b"))],
        resources: Vec::new(),
        types: Vec::new(),
        workers: Vec::new(),
        jobs: Vec::new(),
        attempts: Vec::new(),
        evictions: Vec::new(),
        freed: None,
        cluster: model::Cluster::default(),
    }
}

/// A world with worker `w` of so many slots, and jobs `1`, `2`, … of tenant `a`.
pub(super) fn room_and_jobs(slots: u32, n_jobs: u64) -> Snapshot {
    let mut world = world(Preset::Aging);
    world.workers = vec![worker("w", slots)];
    world.jobs = (1..=n_jobs).map(|id| job(id, "a")).collect();
    world
}

/// A healthy worker of so many slots that runs anything.
pub(super) fn worker(id: &str, slots: u32) -> Worker {
    Worker { slots, ..Worker::new(WorkerId::new(id)) }
}

/// A job of `tenant` that has been ready for a minute.
pub(super) fn job(id: u64, tenant: &str) -> Job {
    Job::new(JobId::number(id), TenantId::new(tenant), NOW - Millis::from_secs(60))
}

/// An attempt of one slot on `worker` that has run for a minute.
pub(super) fn attempt(id: u64, tenant: &str, worker: &str) -> Attempt {
    let (job, tenant) = (JobId::number(id), TenantId::new(tenant));
    Attempt::new(job, tenant, WorkerId::new(worker), NOW - Millis::from_secs(60))
}

/// A free resource of `tenant`; of anybody's if it is `""`.
pub(super) fn resource(name: &str, tenant: &str) -> Resource {
    let tenant = (!tenant.is_empty()).then(|| TenantId::new(tenant));
    Resource { name: Name::new(name), tenant, holder: None }
}

/// Run job `id` on `worker`.
pub(super) fn place(id: u64, worker: &str) -> Action {
    Action::Place(placement(id, worker))
}

/// Run job `id` on `worker` with `resource`.
pub(super) fn place_with(id: u64, worker: &str, resource: &str) -> Action {
    Action::Place(Placement { resource: Some(Name::new(resource)), ..placement(id, worker) })
}

/// Job `id` on `worker`, without points.
pub(super) fn placement(id: u64, worker: &str) -> Placement {
    Placement {
        job: JobId::number(id),
        worker: WorkerId::new(worker),
        score: Fixed::ZERO,
        points: Vec::new(),
        resource: None,
    }
}

/// Stop job `victim` on `worker` for job `preemptor`.
pub(super) fn preempt(victim: u64, worker: &str, preemptor: u64) -> Action {
    Action::Preempt(Preempt {
        victim: JobId::number(victim),
        worker: WorkerId::new(worker),
        preemptor: JobId::number(preemptor),
    })
}

/// Leave job `id` alone for so long.
pub(super) fn defer(id: u64, length: Millis) -> Action {
    Action::Defer(Defer { job: JobId::number(id), until: NOW + length })
}

/// Job `id` waits for `reason`.
pub(super) fn hold(id: u64, reason: Reason) -> Hold {
    Hold { job: JobId::number(id), reason, detail: String::new() }
}

/// What the checker says.
pub(super) fn found(before: &Snapshot, actions: &[Action], holds: &[Hold]) -> Vec<Violation> {
    check(before, &Decision { actions: actions.to_vec(), holds: holds.to_vec() })
}

/// That this is all that the checker says.
#[track_caller]
pub(super) fn assert_only(found: &[Violation], sentence: &str) {
    let sentences: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(sentences, [sentence]);
}

/// That the checker says this, among other things.
#[track_caller]
pub(super) fn assert_says(found: &[Violation], sentence: &str) {
    let sentences: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(sentences.iter().any(|one| one == sentence), "{sentence:?} is not in {sentences:#?}");
}

/// That the checker has nothing to say.
#[track_caller]
pub(super) fn assert_sound(found: &[Violation]) {
    assert_eq!(found, []);
}
