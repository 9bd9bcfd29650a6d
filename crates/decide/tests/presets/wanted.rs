//! What whoever adds and removes workers is told, and who waits longest.

use decide::World;
use model::{
    Event, Job, JobId, JobType, Name, Preset, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

const NOW: Timestamp = Timestamp(1_000_000);

fn world() -> World {
    World::new(Preset::Balanced.policy(), 0)
}

fn job(id: u64, tenant: &str, kind: &str) -> Job {
    let kind = Some(Name::new(kind));
    Job { kind, ..Job::new(JobId::number(id), TenantId::new(tenant), NOW) }
}

fn queue(world: &mut World, jobs: impl IntoIterator<Item = Job>) {
    for job in jobs {
        world.apply(Event::Queued(Box::new(job)));
    }
}

/// Type, jobs, slots wanted and slots that fit, after a decision.
fn wanted(world: &mut World) -> Vec<(String, u64, u64, u64)> {
    world.decide(NOW);
    let shown = |wanted: decide::Wanted| {
        let kind = wanted.kind.map(|kind| kind.to_string()).unwrap_or_default();
        (kind, wanted.n_jobs, wanted.slots_wanted, wanted.slots_fitting)
    };
    world.wanted().into_iter().map(shown).collect()
}

#[test]
fn what_finds_no_free_slot_is_wanted_and_what_is_placed_is_not() {
    let mut world = world();
    let mut worker = Worker::new(WorkerId::new("w"));
    (worker.slots, worker.types) = (2, vec![Name::new("a")]);
    world.apply(Event::Joined(Box::new(worker)));
    queue(&mut world, (1..=3).map(|id| job(id, "t", "a")));
    queue(&mut world, (4..=5).map(|id| Job { slots: 4, ..job(id, "t", "b") }));
    assert_eq!(wanted(&mut world), [("b".to_owned(), 2, 8, 0), ("a".to_owned(), 1, 1, 2)]);
}

#[test]
fn what_no_worker_is_large_enough_for_is_wanted_though_slots_are_free() {
    let mut world = world();
    let mut worker = Worker::new(WorkerId::new("w"));
    (worker.slots, worker.amounts) = (4, [(Name::new("gpu"), 3)].into());
    world.apply(Event::Joined(Box::new(worker)));
    let gpus = |n| [(Name::new("gpu"), n)].into();
    queue(&mut world, [Job { slots: 9, ..job(1, "t", "wide") }]);
    queue(&mut world, [Job { amounts: gpus(8), ..job(2, "t", "gpus") }]);
    queue(&mut world, (3..=7).map(|id| Job { amounts: gpus(2), ..job(id, "t", "gpu") }));
    let all = [("wide", 1, 9, 0), ("gpu", 4, 4, 4), ("gpus", 1, 1, 0)];
    let all = all.map(|(kind, n_jobs, wanted, fitting)| (kind.to_owned(), n_jobs, wanted, fitting));
    assert_eq!(wanted(&mut world), all);
}

#[test]
fn what_a_limit_holds_back_is_not_wanted() {
    let mut world = world();
    let paused = Tenant { active: false, ..Tenant::new(TenantId::new("paused")) };
    let few = Tenant { jobs_max: Some(2), ..Tenant::new(TenantId::new("few")) };
    let rare = JobType { jobs_max: Some(1), ..JobType::new(Name::new("rare")) };
    world.apply(Event::Tenant(paused));
    world.apply(Event::Tenant(few));
    world.apply(Event::Type(rare));
    queue(&mut world, [job(1, "paused", "a")]);
    queue(&mut world, (2..=5).map(|id| job(id, "few", "a")));
    queue(&mut world, (6..=9).map(|id| job(id, "t", "rare")));
    assert_eq!(wanted(&mut world), [("a".to_owned(), 2, 2, 0), ("rare".to_owned(), 1, 1, 0)]);
}

#[test]
fn work_that_needs_different_things_is_told_apart() {
    let mut world = world();
    let needs = [(Name::new("gpu"), vec![Name::new("a100")])].into();
    queue(&mut world, [Job { needs, ..job(1, "t", "a") }]);
    let pool = || Some(Name::new("p"));
    queue(&mut world, (2..=3).map(|id| Job { pool: pool(), ..job(id, "t", "a") }));
    wanted(&mut world);
    let all = world.wanted();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].pool.clone(), all[0].slots_wanted), (pool(), 2));
    assert_eq!((all[1].needs.len(), all[1].slots_wanted), (1, 1));
}

#[test]
fn of_each_line_the_oldest_is_named_and_how_many_are_like_it() {
    let mut world = world();
    let at = |id, tenant, ready| Job { ready: Timestamp(ready), ..job(id, tenant, "a") };
    // The oldest came last, and is not the next of its line.
    queue(&mut world, (1..=5_000).map(|id| at(id, "many", 500_000)));
    queue(
        &mut world,
        [Job { priority: 9, ..at(5_001, "few", 700_000) }, at(5_002, "few", 600_000)],
    );
    queue(&mut world, [at(5_003, "many", 400_000), at(5_004, "one", 650_000)]);
    world.decide(NOW);
    let waits = |max| {
        let waits = world.longest_waits(max).into_iter();
        waits.map(|wait| (wait.job, wait.ready, wait.n_alike)).collect::<Vec<_>>()
    };
    let all = [
        (JobId::number(5_003), Timestamp(400_000), 5_000),
        (JobId::number(5_002), Timestamp(600_000), 1),
        (JobId::number(5_004), Timestamp(650_000), 0),
    ];
    assert_eq!(waits(9), all);
    assert_eq!(waits(1), all[..1]);
}
