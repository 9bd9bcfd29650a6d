//! Tenants that always have work get their due, at every moment.

use decide::World;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Millis, Preset, Tenant, TenantId, Timestamp, Worker,
    WorkerId,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Jobs of every tenant wait from the start, more than can run.
const JOBS_PER_TENANT: u64 = 400;

fn crowded(preset: Preset, weights: &[i64], n_slots: u32) -> World {
    let mut world = World::new(preset.policy(), 0);
    world.apply(Event::Joined(Box::new(Worker {
        slots: n_slots,
        ..Worker::new(WorkerId::new("w"))
    })));
    for (tenant, weight) in (0..).zip(weights) {
        let id = TenantId::number(tenant);
        world.apply(Event::Tenant(Tenant { weight: Fixed::whole(*weight), ..Tenant::new(id) }));
        for at in 0..JOBS_PER_TENANT {
            let id = JobId::number(tenant * JOBS_PER_TENANT + at);
            let job = Job::new(id, TenantId::number(tenant), Timestamp(0));
            world.apply(Event::Queued(Box::new(job)));
        }
    }
    world
}

fn placed(actions: &[Action]) -> impl Iterator<Item = JobId> {
    actions.iter().filter_map(|action| match action {
        Action::Place(placement) => Some(placement.job.clone()),
        Action::Preempt(_) | Action::Defer(_) => None,
    })
}

/// No tenant is ever behind its share of all that was started by more than one job for each slot,
/// and the one job that is guaranteed to each of the others before shares count.
fn lag_is_bounded(
    preset: Preset,
    weights: &[i64],
    n_slots: u32,
    ends: &[usize],
) -> Result<(), TestCaseError> {
    let mut world = crowded(preset, weights, n_slots);
    let mut now = Timestamp(1_000);
    let mut running: Vec<JobId> = placed(&world.decide(now)).collect();
    for end in ends {
        now = now + Millis(10);
        let job = running.swap_remove(end % running.len());
        world.apply(Event::Ended(Ended { job, cost: Fixed::ONE, completed: true }));
        running.extend(placed(&world.decide(now)));
        let seen = world.snapshot();
        let started = |id: &TenantId| {
            let done = seen.tenants.iter().find(|own| own.id == *id).map_or(0, |own| own.completed);
            let now = seen.attempts.iter().filter(|own| own.tenant == *id).count();
            i64::try_from(done).expect("few jobs") + i64::try_from(now).expect("few jobs")
        };
        let started: Vec<i64> =
            (0..).zip(weights).map(|(at, _)| started(&TenantId::number(at))).collect();
        let n_others = i64::try_from(weights.len() - 1).expect("few tenants");
        let lag_max = i64::from(n_slots) + n_others;
        let (all, sum) = (started.iter().sum::<i64>(), weights.iter().sum::<i64>());
        for (own, weight) in started.iter().zip(weights) {
            let lag_times_sum = weight * all - own * sum;
            prop_assert!(lag_times_sum <= lag_max * sum, "{started:?} of {weights:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_tenant_lags_by_more_than_one_job_for_each_slot(
        weights in proptest::collection::vec(1..6_i64, 2..5),
        n_slots in 1..6_u32,
        ends in proptest::collection::vec(any::<usize>(), 100..300),
    ) {
        for preset in [Preset::Balanced, Preset::FairShare] {
            lag_is_bounded(preset, &weights, n_slots, &ends)?;
        }
    }
}
