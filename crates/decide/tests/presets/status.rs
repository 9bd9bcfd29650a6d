//! What a world says of itself: how many jobs go before one, and what it remembers.

use decide::World;
use model::{
    Event, Fixed, Job, JobId, Millis, Name, Preset, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

const NOW: Timestamp = Timestamp(1_000_000);

/// A world with a worker for `pdf` and one for `png`, both without room.
fn full(preset: Preset) -> World {
    let mut world = World::new(preset.policy(), 0);
    for kind in ["pdf", "png"] {
        let mut worker = Worker::new(WorkerId::new(kind));
        worker.types = vec![Name::new(kind)];
        world.apply(Event::Joined(Box::new(worker)));
        wait(&mut world, &format!("running-{kind}"), "a", kind, 0);
    }
    assert_eq!(world.decide(NOW).len(), 2);
    world
}

fn wait(world: &mut World, id: &str, tenant: &str, kind: &str, priority: i32) {
    let job = Job {
        kind: Some(Name::new(kind)),
        priority,
        ..Job::new(JobId::new(id), TenantId::new(tenant), NOW - Millis(1_000))
    };
    world.apply(Event::Queued(Box::new(job)));
}

fn ahead(world: &mut World, id: &str) -> Option<usize> {
    world.ahead(&JobId::new(id), NOW)
}

#[test]
fn jobs_that_go_first_to_the_same_workers_are_counted() {
    for preset in [Preset::PriorityAge, Preset::Aging, Preset::Cohort] {
        let mut world = full(preset);
        for (id, priority) in [("1", 0), ("2", 5), ("3", 0), ("4", -5)] {
            wait(&mut world, id, "a", "pdf", priority);
        }
        wait(&mut world, "5", "a", "png", 9);
        let counted = ["2", "1", "3", "4", "5"].map(|id| ahead(&mut world, id));
        assert_eq!(counted, [Some(0), Some(1), Some(2), Some(3), Some(0)], "{preset:?}");
        assert_eq!(ahead(&mut world, "running-pdf"), None);
    }
}

#[test]
fn jobs_that_cannot_start_do_not_go_first() {
    let mut world = full(Preset::Balanced);
    let tenant = |id| Tenant::new(TenantId::new(id));
    world.apply(Event::Tenant(Tenant { active: false, ..tenant("paused") }));
    world.apply(Event::Tenant(Tenant { jobs_max: Some(0), ..tenant("none") }));
    for id in 0..20 {
        wait(&mut world, &format!("paused{id}"), "paused", "pdf", 0);
        wait(&mut world, &format!("none{id}"), "none", "pdf", 0);
        let job = Job::new(JobId::number(id), TenantId::new("a"), NOW - Millis(2_000));
        let job = Job { kind: Some(Name::new("pdf")), slots: 50, ..job };
        world.apply(Event::Queued(Box::new(job)));
    }
    wait(&mut world, "first", "a", "pdf", 0);
    wait(&mut world, "second", "a", "pdf", 0);
    assert_eq!(ahead(&mut world, "second"), Some(1));
    assert_eq!(ahead(&mut world, "paused1"), Some(1 + 2), "behind its own and those that start");
}

#[test]
fn where_tenants_take_turns_others_count_by_their_weights() {
    let mut world = full(Preset::Balanced);
    let heavy = Tenant { weight: Fixed::whole(3), ..Tenant::new(TenantId::new("b")) };
    world.apply(Event::Tenant(heavy));
    for id in 0..100 {
        wait(&mut world, &format!("a{id:03}"), "a", "pdf", 0);
        wait(&mut world, &format!("b{id:03}"), "b", "pdf", 0);
    }
    assert_eq!(ahead(&mut world, "a009"), Some(9 + 30));
    assert_eq!(ahead(&mut world, "a099"), Some(99 + 100));
}

#[test]
fn the_count_is_how_many_are_placed_before_it() {
    let mut world = full(Preset::Aging);
    for (id, priority) in (0..30).zip((0..7).cycle()) {
        wait(&mut world, &id.to_string(), ["a", "b"][id % 2], "pdf", priority);
    }
    let mut expected: Vec<(usize, String)> =
        (0..30).map(|id| (ahead(&mut world, &id.to_string()).unwrap(), id.to_string())).collect();
    expected.sort_by_key(|(n_before, _)| *n_before);
    let mut running = "running-pdf".to_owned();
    for (n_before, (counted, job)) in expected.into_iter().enumerate() {
        assert_eq!(counted, n_before);
        let ended = model::Ended {
            job: JobId::new(&running),
            cost: Fixed::ZERO,
            completed: true,
            at: Timestamp::default(),
        };
        world.apply(Event::Ended(ended));
        let actions = world.decide(NOW);
        let [model::Action::Place(placement)] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(placement.job, JobId::new(&job));
        running = job;
    }
}

#[test]
fn names_that_nobody_uses_are_forgotten_and_nothing_else_changes() {
    let mut world = full(Preset::Balanced);
    let late = NOW + Millis::from_secs(2 * 24 * 3600);
    for made_up in 0..1_000 {
        wait(&mut world, "x", &format!("tenant-{made_up}"), &format!("type-{made_up}"), 0);
    }
    world.apply(Event::Withdrawn(JobId::new("x")));
    wait(&mut world, "1", "b", "pdf", 3);
    assert!(world.decide(late).is_empty());
    let before = (world.snapshot(), world.n_names());
    world.forget_unused();
    assert!(before.1 > 2_000 && world.n_names() < 100, "{} of {}", world.n_names(), before.1);
    let after = world.snapshot();
    assert_eq!((after.jobs, after.attempts), (before.0.jobs, before.0.attempts));
    assert_eq!(ahead(&mut world, "1"), Some(0));
}
