//! A slot that is kept free on purpose is kept for so long only, whatever comes.

use decide::World;
use model::{
    Action, Attempt, Event, Job, JobId, Millis, Name, Preset, TenantId, Timestamp, Worker, WorkerId,
};
use proptest::prelude::*;

const START: Timestamp = Timestamp(1_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

fn worker(id: &str, slots: u32, types: &[&str]) -> Event {
    let types = types.iter().map(|text| Name::new(text)).collect();
    Event::Joined(Box::new(Worker { slots, types, ..Worker::new(WorkerId::new(id)) }))
}

/// An attempt that never ends, whatever was predicted.
fn stuck(id: &str, worker: &str, slots: u32, estimate: Option<Millis>) -> Event {
    let (job, worker) = (JobId::new(id), WorkerId::new(worker));
    let attempt = Attempt::new(job, TenantId::new("a"), worker, START);
    Event::Started(Box::new(Attempt { slots, estimate, ..attempt }))
}

fn job(id: &str, at: Timestamp) -> Job {
    Job::new(JobId::new(id), TenantId::new("a"), at)
}

fn is_placed(actions: &[Action], id: &str) -> bool {
    actions.iter().any(|action| match action {
        Action::Place(placement) => placement.job == JobId::new(id),
        Action::Preempt(_) | Action::Defer(_) => false,
    })
}

proptest! {
    #[test]
    fn slots_beside_an_attempt_that_does_not_end_are_used_again(
        estimate_s in proptest::option::of(0..7_200_i64),
        wide_each in 1..20_usize,
        lent_at in 0..200_usize,
        lent_s in 0..7_200_i64,
    ) {
        let mut world = World::new(Preset::Balanced.policy(), 0);
        let estimate = estimate_s.map(Millis::from_secs);
        world.apply(worker("w", 4, &[]));
        world.apply(stuck("stuck", "w", 2, estimate));
        world.apply(Event::Queued(Box::new(job("narrow", START))));
        let end = START + estimate.unwrap_or(Millis::ZERO);
        let latest = end + Millis::from_secs(3_600) + MINUTE;
        let mut now = START;
        for at in 0.. {
            prop_assert!(now <= latest, "nobody may use the slot for ever");
            if at % wide_each == 0 {
                let wide = Job { slots: 4, priority: 16, ..job(&format!("wide{at}"), now) };
                world.apply(Event::Queued(Box::new(wide)));
            }
            if at == lent_at {
                // It may borrow a slot, and does not end either.
                let estimate = Some(Millis::from_secs(lent_s));
                let lent = Job { estimate, priority: 8, ..job("lent", now) };
                world.apply(Event::Queued(Box::new(lent)));
            }
            if is_placed(&world.decide(now), "narrow") {
                break;
            }
            now = now + MINUTE;
        }
    }

    #[test]
    fn a_job_is_kept_from_a_guarded_slot_for_twice_its_patience_and_no_longer(
        rare_each in 1..5_usize,
        step_ms in 1_000..9_000_i64,
    ) {
        let mut world = World::new(Preset::Balanced.policy(), 0);
        world.apply(worker("full", 15, &["common"]));
        world.apply(stuck("stuck", "full", 15, None));
        world.apply(worker("special", 1, &["common", "rare"]));
        let rare = Name::new("rare");
        let common = Job { kind: Some(Name::new("common")), ..job("common", START) };
        world.apply(Event::Queued(Box::new(common)));
        // The fleet of sixteen slots needs less than four seconds for all that waits.
        let patience = Preset::Balanced.policy().shortest.patience_min;
        let (least, most) = (START + patience + patience, START + patience + patience + MINUTE);
        let mut now = START;
        for at in 0..100_000 {
            if at % rare_each == 0 {
                // So much rare work comes and goes that one job is nothing to it.
                for id in 0..200 {
                    let id = format!("rare{at}-{id}");
                    let job = Job { kind: Some(rare.clone()), ..job(&id, now) };
                    world.apply(Event::Queued(Box::new(job)));
                    world.apply(Event::Withdrawn(JobId::new(&id)));
                }
            }
            let is_placed = is_placed(&world.decide(now), "common");
            prop_assert!(now < most, "nobody may use the slot for ever");
            prop_assert!(!is_placed || now >= least, "placed after {:?}", now.since(START));
            if is_placed {
                break;
            }
            now = now + Millis(step_ms);
        }
    }
}
