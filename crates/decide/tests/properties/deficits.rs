//! `fair-share`: no tenant is behind its share of all jobs that were started by more than a few.

use decide::World;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Millis, Preset, Snapshot, Tenant, TenantId, Timestamp,
    Worker, WorkerId,
};
use proptest::prelude::*;

/// More jobs than can run here.
const MANY: u64 = 400;

/// So far apart jobs end.
const STEP: Millis = Millis::from_secs(60);

/// One worker that tenants share, and what runs on it.
struct Shop {
    world: World,
    now: Timestamp,
    running: Vec<JobId>,
    n_jobs: u64,
}

impl Shop {
    /// Tenants 0, 1, … of these weights, without jobs.
    fn new(weights: &[i64], n_slots: u32) -> Self {
        let mut world = World::new(Preset::FairShare.policy(), 0);
        let worker = Worker { slots: n_slots, ..Worker::new(WorkerId::new("w")) };
        world.apply(Event::Joined(Box::new(worker)));
        for (tenant, weight) in (0..).zip(weights) {
            let tenant = Tenant::new(TenantId::number(tenant));
            world.apply(Event::Tenant(Tenant { weight: Fixed::whole(*weight), ..tenant }));
        }
        Self { world, now: Timestamp(1_000), running: Vec::new(), n_jobs: 0 }
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
        for action in self.world.decide(self.now) {
            if let Action::Place(placement) = action {
                self.running.push(placement.job);
            }
        }
    }

    /// One of the jobs that run ends, and others start.
    fn end(&mut self, which: usize) {
        self.now = self.now + STEP;
        let job = self.running.swap_remove(which % self.running.len());
        let (cost, completed, at) = (Fixed::ONE, true, self.now);
        self.world.apply(Event::Ended(Ended { job, cost, completed, at }));
        self.decide();
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

/// By how much each tenant is behind its share of what all have had, times the sum of all weights.
fn lags(had: &[i64], weights: &[i64]) -> Vec<i64> {
    let (all, sum) = (had.iter().sum::<i64>(), weights.iter().sum::<i64>());
    had.iter().zip(weights).map(|(own, weight)| weight * all - own * sum).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// One job for each slot, and the one that is guaranteed to each of the others before.
    #[test]
    fn no_tenant_lags_by_more_than_one_job_for_each_slot(
        weights in proptest::collection::vec(1..6_i64, 2..5),
        n_slots in 1..6_u32,
        ends in proptest::collection::vec(any::<usize>(), 100..300),
    ) {
        let mut shop = Shop::new(&weights, n_slots);
        (0..).take(weights.len()).for_each(|tenant| shop.submit(tenant, MANY));
        shop.decide();
        for end in ends {
            shop.end(end);
            let lags = lags(&shop.started(weights.len()), &weights);
            let n_jobs = i64::from(n_slots) + i64::try_from(weights.len() - 1).expect("few");
            let most = n_jobs * weights.iter().sum::<i64>();
            prop_assert!(lags.iter().all(|lag| *lag <= most), "{lags:?} of {weights:?}");
        }
    }
}

/// How many of the next `count` jobs that start are of tenant 0.
fn share_of_first(shop: &mut Shop, n_tenants: usize, count: usize) -> i64 {
    let before = shop.started(n_tenants)[0];
    (0..count).for_each(|_| shop.end(0));
    shop.started(n_tenants)[0] - before
}

#[test]
fn fair_share_pays_out_what_a_tenant_was_due_while_it_was_away() {
    let mut shop = Shop::new(&[1, 1], 1);
    shop.submit(1, MANY);
    shop.decide();
    (0..100).for_each(|_| shop.end(0));
    shop.submit(0, MANY);
    assert_eq!(share_of_first(&mut shop, 2, 20), 20);
}

#[test]
fn a_paused_tenant_takes_no_part_in_what_others_are_due() {
    let mut shop = Shop::new(&[1, 1, 98], 1);
    let paused = TenantId::number(2);
    let weight = Fixed::whole(98);
    shop.world.apply(Event::Tenant(Tenant { weight, active: false, ..Tenant::new(paused) }));
    (0..3).for_each(|tenant| shop.submit(tenant, MANY));
    shop.decide();
    assert_eq!(share_of_first(&mut shop, 3, 20), 10);
}
