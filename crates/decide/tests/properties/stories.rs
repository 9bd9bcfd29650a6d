//! Stories that once went wrong.

use decide::World;
use model::policy::Preemption;
use model::{
    Action, Ask, Attempt, Ended, Event, Eviction, Fixed, Freed, Inputs, Job, JobId, JobType,
    Millis, Name, Preset, Quota, Reason, Resource, Tenant, TenantId, Timestamp, Worker, WorkerId,
};

const NOW: Timestamp = Timestamp(1_000_000);

fn job(id: &str, tenant: &str) -> Job {
    Job::new(JobId::new(id), TenantId::new(tenant), NOW - Millis::from_secs(60))
}

fn worker(id: &str, slots: u32) -> Worker {
    Worker { slots, ..Worker::new(WorkerId::new(id)) }
}

fn world(preset: Preset, events: Vec<Event>) -> World {
    let mut world = World::new(preset.policy(), 0);
    for event in events {
        world.apply(event);
    }
    world
}

fn joined(worker: Worker) -> Event {
    Event::Joined(Box::new(worker))
}

fn queued(job: Job) -> Event {
    Event::Queued(Box::new(job))
}

/// An attempt of a job of `tenant` that started a minute ago.
fn running(id: &str, tenant: &str, worker: &str, slots: u32) -> Attempt {
    let (job, tenant) = (JobId::new(id), TenantId::new(tenant));
    let started = NOW - Millis::from_secs(60);
    Attempt { slots, ..Attempt::new(job, tenant, WorkerId::new(worker), started) }
}

fn started(attempt: Attempt) -> Event {
    Event::Started(Box::new(attempt))
}

fn ended(job: &str) -> Event {
    Event::Ended(Ended { job: JobId::new(job), cost: Fixed::ONE, completed: true, at: NOW })
}

fn placed(actions: &[Action]) -> Vec<String> {
    let placed = actions.iter().filter_map(|action| match action {
        Action::Place(placement) => Some(placement.job.to_string()),
        Action::Preempt(_) | Action::Defer(_) => None,
    });
    placed.collect()
}

fn victims(actions: &[Action]) -> Vec<String> {
    let victims = actions.iter().filter_map(|action| match action {
        Action::Preempt(preempt) => Some(preempt.victim.to_string()),
        Action::Place(_) | Action::Defer(_) => None,
    });
    victims.collect()
}

#[test]
fn a_line_whose_head_is_too_dear_does_not_hide_a_better_line() {
    let dear = Job { priority: 10, cost: Fixed::whole(100), ..job("1", "a") };
    let cheap = job("3", "a");
    let better = Job { priority: 5, ..job("2", "b") };
    let tenant = Tenant { budget: Some(Fixed::whole(5)), ..Tenant::new(TenantId::new("a")) };
    for preset in [Preset::PriorityAge, Preset::Aging] {
        for order in [[&dear, &cheap, &better], [&better, &dear, &cheap]] {
            let mut events = vec![joined(worker("w", 1)), Event::Tenant(tenant.clone())];
            events.extend(order.into_iter().cloned().map(queued));
            assert_eq!(placed(&world(preset, events).decide(NOW)), ["2"], "{preset:?}");
        }
    }
}

#[test]
fn a_job_can_be_explained_before_anything_is_decided() {
    let mut world = world(Preset::Balanced, vec![joined(worker("w", 1)), queued(job("1", "a"))]);
    assert!(world.explain(&JobId::new("1"), NOW).is_some());
    world.apply(Event::Left(WorkerId::new("w")));
    let reason = world.explain(&JobId::new("1"), NOW).map(|hold| hold.reason);
    assert_eq!(reason, Some(Reason::NoWorkerEver));
}

/// The workers of the type `rare` are those that all jobs could run on before `b` came.
#[test]
fn a_new_type_that_only_the_first_worker_runs_starts_there() {
    let of = |kind: &str, id: &str| Job {
        kind: Some(Name::new(kind)),
        rescore_count: 4,
        ..job(id, "a")
    };
    let runs = |kinds: &[&str]| kinds.iter().map(|kind| Name::new(kind)).collect();
    let first = Worker { types: runs(&["exec", "rare"]), ..worker("a", 1) };
    let second = Worker { types: runs(&["exec"]), ..worker("b", 1) };
    for preset in Preset::ALL {
        let mut world = world(preset, vec![joined(first.clone()), queued(of("exec", "1"))]);
        assert_eq!(placed(&world.decide(NOW)), ["1"], "{preset:?}");
        world.apply(joined(second.clone()));
        assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new(), "{preset:?}");
        world.apply(queued(of("rare", "2")));
        world.apply(ended("1"));
        assert_eq!(placed(&world.decide(NOW)), ["2"], "{preset:?}");
    }
}

#[test]
fn a_worker_that_comes_back_with_another_amount_counts_its_attempts_once() {
    let gpu = |count: u64| {
        let amounts = [(Name::new("gpu"), count)].into_iter().collect();
        Worker { amounts, ..worker("w", 4) }
    };
    let mut attempt = running("1", "a", "w", 1);
    attempt.amounts.insert(Name::new("gpu"), 1);
    let mut asks = job("2", "a");
    asks.amounts.insert(Name::new("gpu"), 2);
    let mut world = world(
        Preset::Aging,
        vec![joined(worker("w", 4)), started(attempt), joined(gpu(2)), queued(asks)],
    );
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
    world.apply(ended("1"));
    assert_eq!(placed(&world.decide(NOW)), ["2"]);
}

#[test]
fn a_worker_that_comes_back_in_another_pool_takes_its_attempts_along() {
    let pool = Name::new("gpu");
    let quota = Quota { pool: pool.clone(), min: 0, max: Some(1) };
    let tenant = Tenant { quotas: vec![quota], ..Tenant::new(TenantId::new("a")) };
    let moved = Worker { pool, ..worker("w", 4) };
    let events = vec![
        Event::Tenant(tenant),
        joined(worker("w", 4)),
        started(running("1", "a", "w", 1)),
        joined(moved),
        queued(job("2", "a")),
    ];
    let mut world = world(Preset::Cohort, events);
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
    world.apply(ended("1"));
    assert_eq!(placed(&world.decide(NOW)), ["2"]);
}

#[test]
fn a_type_that_moves_to_another_pool_takes_its_inputs_along() {
    let kind = Name::new("t");
    let inputs = Inputs { missing_paths: Some(0), missing_bytes: Some(0) };
    let mut knows = Job { kind: Some(kind.clone()), ..job("1", "a") };
    knows.inputs.insert(WorkerId::new("w"), inputs);
    let settings = JobType { pool: Some(Name::new("default")), ..JobType::new(kind) };
    let events = vec![joined(worker("w", 1)), queued(knows), Event::Type(settings)];
    let world = world(Preset::Simple, events);
    assert_eq!(world.snapshot().jobs[0].inputs.get(&WorkerId::new("w")), Some(&inputs));
}

#[test]
fn a_resource_that_is_declared_again_stays_held() {
    let resource = Resource { name: Name::new("db"), tenant: None, holder: None };
    let asks = |id: &str| Job { resource: Some(Ask::Named(Name::new("db"))), ..job(id, "a") };
    let events = vec![joined(worker("w", 4)), queued(asks("1")), queued(asks("2"))];
    let mut world = world(Preset::Aging, events);
    assert_eq!(placed(&world.decide(NOW)), ["1"]);
    world.apply(Event::Resource(resource));
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
}

#[test]
fn a_placed_job_whose_worker_left_and_then_reports_it_is_not_lost() {
    let mut world = world(Preset::Aging, vec![joined(worker("w", 1)), queued(job("1", "a"))]);
    world.decide(NOW);
    world.apply(Event::Left(WorkerId::new("w")));
    world.apply(started(running("1", "a", "w", 1)));
    assert_eq!(world.n_running(), 1);
}

#[test]
fn an_attempt_that_stops_for_another_job_stops_for_the_first_no_longer() {
    let events = vec![
        joined(worker("w", 1)),
        started(running("v", "a", "w", 1)),
        queued(job("1", "b")),
        queued(job("2", "b")),
    ];
    let mut world = world(Preset::Aging, events);
    for preemptor in ["1", "2"] {
        let (victim, preemptor) = (JobId::new("v"), JobId::new(preemptor));
        world.apply(Event::Stopping { victim, preemptor });
    }
    let reasons: Vec<Reason> = world.holds(None, NOW).into_iter().map(|hold| hold.reason).collect();
    assert_eq!(reasons, [Reason::WorkersFull, Reason::Preempting]);
    let spare = |preemptor| {
        let (victim, preemptor) = (JobId::new("v"), JobId::new(preemptor));
        Event::Spared { victim, preemptor }
    };
    world.apply(spare("1"));
    assert_eq!(world.holds(None, NOW)[1].reason, Reason::Preempting, "not for that one");
    world.apply(spare("2"));
    assert_eq!(world.holds(None, NOW)[1].reason, Reason::WorkersFull);
}

#[test]
fn one_that_was_spared_may_be_stopped_for_the_next() {
    let events = vec![joined(worker("w", 1)), started(running("8", "a", "w", 1))];
    let mut world = owed(job("1", "b"), events);
    assert_eq!(victims(&world.decide(NOW)), ["8"]);
    assert_eq!(victims(&world.decide(NOW)), Vec::<String>::new(), "it is told already");
    let (victim, preemptor) = (JobId::new("8"), JobId::new("1"));
    world.apply(Event::Spared { victim, preemptor });
    assert_eq!(victims(&world.decide(NOW)), ["8"]);
}

/// Tenant `b` is owed slots, and its job 1 asks for some.
fn owed(asks: Job, events: Vec<Event>) -> World {
    let mut policy = Preset::Cohort.policy();
    policy.preemption = Preemption { enabled: true, ..policy.preemption };
    let quotas = vec![Quota { pool: Name::new("default"), min: 4, max: None }];
    let tenant = Tenant { quotas, ..Tenant::new(TenantId::new("b")) };
    let mut world = World::new(policy, 0);
    world.apply(Event::Tenant(tenant));
    for event in events {
        world.apply(event);
    }
    world.apply(queued(Job { priority: 5, ..asks }));
    world
}

#[test]
fn nobody_stops_on_a_worker_that_is_too_small() {
    let events = vec![
        joined(worker("small", 1)),
        joined(worker("large", 2)),
        started(running("8", "a", "small", 1)),
        started(running("9", "a", "large", 2)),
    ];
    let mut world = owed(Job { slots: 2, ..job("1", "b") }, events);
    assert_eq!(victims(&world.decide(NOW)), ["9"]);
}

#[test]
fn nobody_stops_in_vain_on_a_worker_that_runs_more_than_it_has_slots_for() {
    let events = vec![
        joined(worker("w", 1)),
        started(running("8", "a", "w", 1)),
        started(running("9", "a", "w", 1)),
    ];
    let mut world = owed(job("1", "b"), events);
    assert_eq!(victims(&world.decide(NOW)).len(), 2);
}

#[test]
fn nobody_stops_who_is_not_needed() {
    let events = vec![
        joined(worker("w", 3)),
        started(running("8", "a", "w", 1)),
        started(running("9", "a", "w", 2)),
    ];
    let mut world = owed(Job { slots: 2, ..job("1", "b") }, events);
    assert_eq!(victims(&world.decide(NOW)), ["9"]);
}

#[test]
fn room_is_not_made_for_two_jobs_that_need_the_same_resource() {
    let asks =
        |id: &str| Job { priority: 5, resource: Some(Ask::Named(Name::new("db"))), ..job(id, "b") };
    let events = vec![
        joined(worker("w", 2)),
        started(running("8", "a", "w", 1)),
        started(running("9", "a", "w", 1)),
        queued(asks("2")),
    ];
    assert_eq!(victims(&owed(asks("1"), events).decide(NOW)).len(), 1);
}

#[test]
fn room_that_several_victims_make_is_not_taken_by_others_in_between() {
    let events = vec![
        joined(worker("w", 2)),
        started(running("8", "a", "w", 1)),
        started(running("9", "a", "w", 1)),
    ];
    let mut world = owed(Job { slots: 2, ..job("1", "b") }, events);
    assert_eq!(victims(&world.decide(NOW)).len(), 2);
    world.apply(ended("8"));
    world.apply(queued(job("2", "a")));
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
    let reason = world.explain(&JobId::new("2"), NOW).map(|hold| hold.reason);
    assert_eq!(reason, Some(Reason::Reserved));
    world.apply(ended("9"));
    assert_eq!(placed(&world.decide(NOW)), ["1"]);
}

/// The same world, written down and read again.
fn read_again(world: &World) -> World {
    World::from_snapshot(&world.snapshot())
}

#[test]
fn room_that_was_made_for_a_job_survives_being_written_down() {
    let events = vec![joined(worker("w", 1)), started(running("9", "a", "w", 1))];
    let mut world = owed(job("1", "b"), events);
    assert_eq!(victims(&world.decide(NOW)), ["9"]);
    world.apply(ended("9"));
    // More important and longer ready: it would go first if nothing were promised.
    world.apply(queued(Job { priority: 9, ..job("0", "b") }));
    assert_eq!(placed(&read_again(&world).decide(NOW)), ["1"]);
    assert_eq!(placed(&world.decide(NOW)), ["1"]);
}

#[test]
fn a_job_that_starts_elsewhere_is_promised_nothing_when_it_comes_back() {
    let events = vec![joined(worker("w", 1)), started(running("9", "a", "w", 1))];
    let mut world = owed(job("1", "b"), events);
    world.decide(NOW);
    world.apply(ended("9"));
    world.apply(joined(worker("x", 1)));
    world.apply(started(running("1", "b", "x", 1)));
    world.apply(queued(Job { priority: 5, ..job("1", "b") }));
    world.apply(queued(Job { priority: 9, ..job("0", "b") }));
    world.apply(Event::Left(WorkerId::new("x")));
    assert_eq!(placed(&world.decide(NOW)), ["0"]);
}

#[test]
fn a_promise_is_not_kept_before_the_moment_of_the_job_has_come() {
    let events = vec![joined(worker("w", 1)), started(running("9", "a", "w", 1))];
    let mut world = owed(job("1", "b"), events);
    world.decide(NOW);
    world.apply(ended("9"));
    let backoff_until = Some(NOW + Millis(1));
    world.apply(queued(Job { priority: 5, backoff_until, ..job("1", "b") }));
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
}

#[test]
fn a_worker_that_asks_for_nothing_is_given_nothing_that_was_promised() {
    let events = vec![joined(worker("w", 1)), started(running("9", "a", "w", 1))];
    let mut world = owed(job("1", "b"), events);
    world.decide(NOW);
    world.apply(ended("9"));
    let freed = |completed| Freed { worker: WorkerId::new("w"), completed };
    assert_eq!(placed(&world.fetch(&freed(0), NOW)), Vec::<String>::new());
    assert_eq!(placed(&world.fetch(&freed(1), NOW)), ["1"]);
}

#[test]
fn what_runs_counts_in_the_pool_that_its_worker_moved_to() {
    let in_pool = |pool: &str| Worker { pool: Name::new(pool), ..worker("w", 4) };
    let quotas = vec![Quota { pool: Name::new("east"), min: 0, max: Some(1) }];
    let tenant = Tenant { quotas, ..Tenant::new(TenantId::new("a")) };
    let events = vec![
        Event::Tenant(tenant),
        joined(in_pool("west")),
        started(running("9", "a", "w", 1)),
        joined(in_pool("east")),
        queued(job("1", "a")),
    ];
    let mut world = world(Preset::Aging, events);
    assert_eq!(placed(&read_again(&world).decide(NOW)), Vec::<String>::new());
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
    world.apply(joined(in_pool("west")));
    assert_eq!(placed(&read_again(&world).decide(NOW)), ["1"]);
    assert_eq!(placed(&world.decide(NOW)), ["1"]);
}

#[test]
fn what_a_worker_said_about_inputs_goes_with_it() {
    let said = Event::Inputs {
        worker: WorkerId::new("gone"),
        job: JobId::new("1"),
        inputs: Inputs { missing_paths: None, missing_bytes: Some(7) },
    };
    let events = vec![joined(worker("w", 1)), joined(worker("gone", 1)), queued(job("1", "a"))];
    let mut world = world(Preset::Simple, events);
    world.apply(said);
    world.apply(Event::Left(WorkerId::new("gone")));
    let reason = |world: &mut World| world.explain(&JobId::new("1"), NOW).map(|hold| hold.reason);
    assert_eq!(reason(&mut read_again(&world)), Some(Reason::Vetoed));
    assert_eq!(reason(&mut world), Some(Reason::Vetoed));
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
}

#[test]
fn a_worker_that_takes_back_how_much_it_lacks_has_said_nothing() {
    let said = |missing_bytes| Event::Inputs {
        worker: WorkerId::new("w"),
        job: JobId::new("1"),
        inputs: Inputs { missing_paths: None, missing_bytes },
    };
    let events = vec![joined(worker("w", 1)), queued(job("1", "a")), said(Some(7)), said(None)];
    let mut world = world(Preset::Simple, events);
    assert_eq!(placed(&read_again(&world).decide(NOW)), Vec::<String>::new());
    assert_eq!(placed(&world.decide(NOW)), Vec::<String>::new());
}

#[test]
fn a_worker_that_asks_goes_by_age_as_often_as_the_policy_says() {
    let placed_with = |priority_percentage: u32| {
        let mut policy = Preset::PriorityAge.policy();
        policy.priority_percentage = priority_percentage;
        let mut world = World::new(policy, 0);
        let old = Job { ready: NOW - Millis::from_secs(90), ..job("old", "a") };
        let urgent = Job { priority: 5, ..job("urgent", "a") };
        for event in [joined(worker("w", 1)), queued(old), queued(urgent)] {
            world.apply(event);
        }
        placed(&world.fetch(&Freed { worker: WorkerId::new("w"), completed: 1 }, NOW))
    };
    assert_eq!(placed_with(100), ["urgent"]);
    assert_eq!(placed_with(0), ["old"]);
}

#[test]
fn an_eviction_of_a_tenant_that_nobody_named_survives_being_written_down() {
    let (tenant, pool) = (TenantId::new("t"), Name::new("default"));
    let evicted = Event::Evicted(Eviction { at: NOW, tenant: tenant.clone(), pool });
    let world = world(Preset::Cohort, vec![evicted]);
    assert_eq!(world.snapshot().tenants, [Tenant::new(tenant)]);
}

#[test]
fn an_eviction_lowers_a_maximum_until_the_cooldown_is_over() {
    let pool = Name::new("default");
    let quotas = vec![Quota { pool: pool.clone(), min: 0, max: Some(1) }];
    let tenant = TenantId::new("a");
    let evicted = |at| Event::Evicted(Eviction { at, tenant: tenant.clone(), pool: pool.clone() });
    let events = vec![
        Event::Tenant(Tenant { quotas, ..Tenant::new(tenant.clone()) }),
        joined(worker("w", 1)),
        queued(job("1", "a")),
        evicted(NOW),
        evicted(NOW - Millis::from_secs(1)),
    ];
    let mut world = world(Preset::Cohort, events);
    let cooldown = Millis::from_secs(600);
    assert_eq!(placed(&world.decide(NOW + cooldown - Millis(1))), Vec::<String>::new());
    assert_eq!(placed(&read_again(&world).decide(NOW + cooldown)), ["1"]);
    assert_eq!(placed(&world.decide(NOW + cooldown)), ["1"]);
}

#[test]
fn a_new_kind_of_job_reaches_a_worker_that_moved_to_another_pool() {
    let arm = || [(Name::new("arch"), vec![Name::new("arm")])].into();
    let in_pool = |id: &str, pool: &str| Worker { pool: Name::new(pool), ..worker(id, 1) };
    let east = Worker { healthy: false, ..in_pool("e", "east") };
    let events = vec![
        joined(east),
        joined(Worker { has: arm(), ..in_pool("m", "default") }),
        joined(Worker { has: arm(), ..in_pool("s", "default") }),
        queued(Job { pool: Some(Name::new("east")), ..job("1", "a") }),
        queued(Job { pool: Some(Name::new("default")), needs: arm(), ..job("2", "a") }),
        joined(Worker { has: arm(), ..in_pool("m", "east") }),
    ];
    let mut world = world(Preset::PriorityAge, events);
    assert_eq!(placed(&world.decide(NOW)), ["1", "2"]);
    world.apply(ended("1"));
    world.apply(queued(job("1", "a")));
    world.apply(ended("2"));
    world.apply(queued(Job { priority: 1, needs: arm(), ..job("2", "a") }));
    assert_eq!(placed(&read_again(&world).decide(NOW)), ["2", "1"]);
    assert_eq!(placed(&world.decide(NOW)), ["2", "1"]);
}

#[test]
fn a_tenant_competes_again_once_its_maximum_is_gone() {
    let tenant = Tenant::new(TenantId::new("a"));
    let at_max = Quota { pool: Name::new("default"), min: 0, max: Some(0) };
    let at_max = Tenant { quotas: vec![at_max], ..tenant.clone() };
    let events = vec![
        joined(worker("w", 1)),
        Event::Tenant(at_max),
        queued(job("1", "a")),
        queued(job("2", "b")),
    ];
    let mut world = world(Preset::Balanced, events);
    assert_eq!(placed(&world.decide(NOW)), ["2"]);
    world.apply(Event::Tenant(tenant.clone()));
    world.decide(NOW);
    assert!(world.share_of(&tenant.id).expect("it is known").competes);
}
