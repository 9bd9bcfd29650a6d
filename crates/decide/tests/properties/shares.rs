//! Tenants that have work get their due, at every moment, and nothing for when they had none.

use decide::World;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Millis, Preset, Snapshot, Tenant, TenantId, Timestamp,
    Worker, WorkerId,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::worlds::any_snapshot;

/// More jobs than can run here.
const MANY: u64 = 400;

/// One worker that tenants share, and what runs on it.
struct Shop {
    world: World,
    now: Timestamp,
    running: Vec<JobId>,
    n_jobs: u64,
    /// The longest that anything has run.
    longest: Millis,
}

/// So far apart jobs end.
const STEP: Millis = Millis::from_secs(60);

impl Shop {
    /// Tenants 0, 1, … of these weights, without jobs.
    fn new(preset: Preset, weights: &[i64], n_slots: u32) -> Self {
        let mut world = World::new(preset.policy(), 0);
        let worker = Worker { slots: n_slots, ..Worker::new(WorkerId::new("w")) };
        world.apply(Event::Joined(Box::new(worker)));
        let (now, longest) = (Timestamp(1_000), Millis::ZERO);
        let mut shop = Self { world, now, running: Vec::new(), n_jobs: 0, longest };
        for (tenant, weight) in (0..).zip(weights) {
            shop.weigh(tenant, *weight);
        }
        shop
    }

    /// Sets a tenant's weight, and its usage to what it is.
    fn weigh(&mut self, tenant: u64, weight: i64) {
        let id = TenantId::number(tenant);
        let known = self.world.snapshot().tenants.into_iter().find(|own| own.id == id);
        let tenant = known.unwrap_or_else(|| Tenant::new(id));
        self.world.apply(Event::Tenant(Tenant { weight: Fixed::whole(weight), ..tenant }));
    }

    fn submit(&mut self, tenant: u64, n_jobs: u64) {
        for _ in 0..n_jobs {
            self.n_jobs += 1;
            let id = JobId::number(self.n_jobs);
            let job = Job::new(id, TenantId::number(tenant), self.now);
            self.world.apply(Event::Queued(Box::new(job)));
        }
    }

    fn decide(&mut self) {
        self.running.extend(placed(&self.world.decide(self.now)));
    }

    /// One of the jobs that run ends, and others start.
    fn end(&mut self, which: usize) {
        self.now = self.now + STEP;
        let ran = self.world.snapshot().attempts.into_iter().map(|own| self.now.since(own.started));
        self.longest = self.longest.max(ran.max().unwrap_or_default());
        let job = self.running.swap_remove(which % self.running.len());
        self.world.apply(Event::Ended(Ended {
            job,
            cost: Fixed::ONE,
            completed: true,
            at: self.now,
        }));
        self.decide();
    }

    /// Half of what everybody used leaves the window.
    fn age(&mut self) {
        for Tenant { id, used, completed, .. } in self.world.snapshot().tenants {
            self.world.apply(Event::Usage { tenant: id, used: used.scale(1, 2), completed });
        }
    }

    /// What shares are shares of: jobs that were started, or slot-time where shares are live.
    fn had(&self, preset: Preset, n_tenants: usize) -> Vec<i64> {
        if preset != Preset::Balanced {
            return self.started(n_tenants);
        }
        let Snapshot { tenants, attempts, .. } = self.world.snapshot();
        let had = |id: TenantId| {
            let settled =
                tenants.iter().find(|own| own.id == id).map_or(Fixed::ZERO, |own| own.lift);
            let running = attempts.iter().filter(|own| own.tenant == id);
            let running: i64 = running.map(|own| self.now.since(own.started).0).sum();
            settled.in_thousandths() + running
        };
        (0..).take(n_tenants).map(|at| had(TenantId::number(at))).collect()
    }

    /// How many jobs of each tenant were started.
    fn started(&self, n_tenants: usize) -> Vec<i64> {
        let Snapshot { tenants, attempts, .. } = self.world.snapshot();
        let started = |id: &TenantId| {
            let done = tenants.iter().find(|own| own.id == *id).map_or(0, |own| own.completed);
            let now = attempts.iter().filter(|own| own.tenant == *id).count();
            i64::try_from(done).expect("few jobs") + i64::try_from(now).expect("few jobs")
        };
        (0..).take(n_tenants).map(|at| started(&TenantId::number(at))).collect()
    }
}

fn placed(actions: &[Action]) -> impl Iterator<Item = JobId> {
    actions.iter().filter_map(|action| match action {
        Action::Place(placement) => Some(placement.job.clone()),
        Action::Preempt(_) | Action::Defer(_) => None,
    })
}

/// By how much each tenant is behind its share of what all have had, times the sum of all weights.
fn lags(had: &[i64], weights: &[i64]) -> Vec<i64> {
    let (all, sum) = (had.iter().sum::<i64>(), weights.iter().sum::<i64>());
    had.iter().zip(weights).map(|(own, weight)| weight * all - own * sum).collect()
}

/// One job for each slot, and the one job that is guaranteed to each of the others before shares
/// count; of the longest jobs, where time counts.
fn lag_max(shop: &Shop, preset: Preset, weights: &[i64], n_slots: u32) -> i64 {
    let n_jobs = i64::from(n_slots) + i64::try_from(weights.len() - 1).expect("few tenants");
    if preset == Preset::Balanced { n_jobs * (shop.longest.0 + STEP.0) } else { n_jobs }
}

/// No tenant is ever behind its share of all that was started by more than that.
fn lag_is_bounded(
    preset: Preset,
    weights: &[i64],
    n_slots: u32,
    ends: &[usize],
) -> Result<(), TestCaseError> {
    let mut shop = Shop::new(preset, weights, n_slots);
    (0..).take(weights.len()).for_each(|tenant| shop.submit(tenant, MANY));
    shop.decide();
    for end in ends {
        shop.end(*end);
        let lags = lags(&shop.had(preset, weights.len()), weights);
        let most = lag_max(&shop, preset, weights, n_slots) * weights.iter().sum::<i64>();
        prop_assert!(lags.iter().all(|lag| *lag <= most), "{lags:?} of {weights:?}");
    }
    Ok(())
}

/// From when the first tenant is back, it never gets more than its due and one job for each slot,
/// and it is never behind by more than tenants are that were there all the time.
fn return_is_bounded(
    weights: &[i64],
    n_slots: u32,
    n_early: u64,
    ends: [&[usize]; 2],
) -> Result<(), TestCaseError> {
    let n_tenants = weights.len();
    let mut shop = Shop::new(Preset::Balanced, weights, n_slots);
    shop.submit(0, n_early);
    (1..).take(n_tenants - 1).for_each(|tenant| shop.submit(tenant, MANY));
    shop.decide();
    for end in ends[0] {
        shop.end(*end);
        if end % 7 == 0 {
            shop.age();
        }
    }
    let is_idle = {
        let seen = shop.world.snapshot();
        let has_jobs = seen.jobs.iter().any(|own| own.tenant == TenantId::number(0));
        !has_jobs && seen.attempts.iter().all(|own| own.tenant != TenantId::number(0))
    };
    if !is_idle {
        return Ok(());
    }
    shop.submit(0, MANY);
    // The next decision lifts it.
    shop.decide();
    let before = shop.had(Preset::Balanced, n_tenants);
    for end in ends[1] {
        shop.end(*end);
        if end % 7 == 0 {
            shop.age();
        }
        let had = shop.had(Preset::Balanced, n_tenants);
        let since: Vec<i64> = had.iter().zip(&before).map(|(now, then)| now - then).collect();
        let (lags, sum) = (lags(&since, weights), weights.iter().sum::<i64>());
        let most = lag_max(&shop, Preset::Balanced, weights, n_slots) * sum;
        prop_assert!(lags[0].abs() <= most, "{since:?} of {weights:?}");
    }
    Ok(())
}

fn any_ends(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(any::<usize>(), count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_tenant_lags_by_more_than_one_job_for_each_slot(
        weights in proptest::collection::vec(1..6_i64, 2..5),
        n_slots in 1..6_u32,
        ends in any_ends(100..300),
    ) {
        for preset in [Preset::Balanced, Preset::FairShare] {
            lag_is_bounded(preset, &weights, n_slots, &ends)?;
        }
    }

    #[test]
    fn a_tenant_that_comes_back_gets_its_due_from_then_on_and_no_more(
        weights in proptest::collection::vec(1..6_i64, 2..5),
        n_slots in 1..6_u32,
        n_early in 0..20_u64,
        away in any_ends(50..150),
        back in any_ends(50..150),
    ) {
        return_is_bounded(&weights, n_slots, n_early, [&away, &back])?;
    }

    #[test]
    fn the_order_in_which_tenants_come_back_does_not_matter(
        snapshot in any_snapshot(Preset::Balanced),
        who in proptest::collection::vec(0..7_u64, 1..10),
    ) {
        let queued = |(at, tenant): (u64, &u64)| {
            // Those of the snapshot are 3, 10, 17 and 24, if ids are numbers.
            let tenant = TenantId::number(3 + 7 * tenant);
            let job = Job::new(JobId::number(1_000 + at), tenant, snapshot.now);
            Event::Queued(Box::new(job))
        };
        let events: Vec<Event> = (0..).zip(&who).map(queued).collect();
        let lived = |events: &mut dyn Iterator<Item = &Event>| {
            let mut world = World::from_snapshot(&snapshot);
            world.decide(snapshot.now);
            events.for_each(|event| world.apply(event.clone()));
            world.decide(snapshot.now);
            world.snapshot()
        };
        prop_assert_eq!(lived(&mut events.iter()), lived(&mut events.iter().rev()));
    }
}

/// How many of the next `count` jobs that start are of tenant 0.
fn share_of_first(shop: &mut Shop, n_tenants: usize, count: usize) -> i64 {
    let before = shop.started(n_tenants)[0];
    (0..count).for_each(|_| shop.end(0));
    shop.started(n_tenants)[0] - before
}

#[test]
fn a_tenant_that_was_away_does_not_get_the_fleet_to_itself() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1], 1);
    shop.submit(1, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    shop.submit(0, MANY);
    assert_eq!(share_of_first(&mut shop, 2, 20), 10);
}

#[test]
fn fair_share_pays_out_what_a_tenant_was_due_while_it_was_away() {
    let mut shop = Shop::new(Preset::FairShare, &[1, 1], 1);
    shop.submit(1, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    shop.submit(0, MANY);
    assert_eq!(share_of_first(&mut shop, 2, 20), 20);
}

#[test]
fn a_tenant_at_its_limit_is_no_measure_for_one_that_comes_back() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1, 1], 1);
    let paused = Tenant { active: false, ..Tenant::new(TenantId::number(2)) };
    shop.world.apply(Event::Tenant(paused));
    shop.submit(1, MANY);
    shop.submit(2, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    shop.submit(0, MANY);
    assert_eq!(share_of_first(&mut shop, 3, 20), 10);
}

#[test]
fn going_away_does_not_make_up_for_being_ahead() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 9], 1);
    shop.submit(1, MANY);
    shop.decide();
    for _ in 0..200 {
        // One job at a time: in between, it has nothing to do.
        let seen = shop.world.snapshot();
        let is_away = seen.jobs.iter().all(|own| own.tenant != TenantId::number(0))
            && seen.attempts.iter().all(|own| own.tenant != TenantId::number(0));
        shop.submit(0, u64::from(is_away));
        shop.end(0);
    }
    let started = shop.started(2)[0];
    assert!((15..=22).contains(&started), "{started} of 200");
}

#[test]
fn when_nobody_had_anything_to_do_all_start_anew() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1], 1);
    shop.submit(1, 100);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    assert_eq!(shop.running, []);
    shop.submit(0, MANY);
    shop.submit(1, MANY);
    shop.decide();
    assert_eq!(share_of_first(&mut shop, 2, 20), 10);
}

#[test]
fn usage_that_leaves_the_window_gives_nobody_a_new_due() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1], 1);
    shop.submit(0, MANY);
    shop.submit(1, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    let tenant = TenantId::number(0);
    shop.world.apply(Event::Usage { tenant, used: Fixed::ZERO, completed: 50 });
    assert_eq!(share_of_first(&mut shop, 2, 20), 10);
}

#[test]
fn a_new_weight_counts_from_now_on() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1], 1);
    shop.submit(0, MANY);
    shop.submit(1, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    shop.weigh(0, 3);
    assert!((29..=31).contains(&share_of_first(&mut shop, 2, 40)));
    shop.weigh(0, 1);
    assert!((19..=21).contains(&share_of_first(&mut shop, 2, 40)));
}

#[test]
fn accounts_are_lowered_alike_before_they_grow_too_large() {
    let mut shop = Shop::new(Preset::Balanced, &[1, 1, 2], 1);
    (0..3).for_each(|tenant| shop.submit(tenant, MANY));
    shop.decide();
    (0..40).for_each(|_| shop.end(0));
    // Years pass while something runs.
    for _ in 0..50 {
        shop.now = shop.now + Millis::from_secs(100_000_000);
        (0..8).for_each(|_| shop.end(0));
        // Somebody comes back: accounts are looked at then.
        shop.submit(3, 1);
        shop.decide();
    }
    let seen = shop.world.snapshot();
    let lifts: Vec<Fixed> = seen.tenants.iter().map(|own| own.lift).collect();
    assert!(lifts.iter().all(|lift| *lift < Fixed::whole(5_000_000_000)), "{lifts:?}");
}
