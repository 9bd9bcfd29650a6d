//! Worlds with everything in them place little. Most get rid of some kinds of trouble, so that
//! the others meet each other.

use model::{Name, Quota, Snapshot};
use proptest::bool::weighted as chance;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::parts::POOLS;

/// A kind of trouble that a world can do without.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Budgets,
    JobsMax,
    Needs,
    Amounts,
    JobPools,
    Delays,
    Resources,
    Absence,
    Maxima,
    PoolPolicies,
}

const ALL: [Trouble; 10] = [
    Trouble::Budgets,
    Trouble::JobsMax,
    Trouble::Needs,
    Trouble::Amounts,
    Trouble::JobPools,
    Trouble::Delays,
    Trouble::Resources,
    Trouble::Absence,
    Trouble::Maxima,
    Trouble::PoolPolicies,
];

/// What to change about a world.
#[derive(Clone, Debug)]
pub(super) struct Relief {
    without: Vec<Trouble>,
    n_pools: usize,
    is_contest: bool,
    /// Every second job must run in the pool of some worker.
    is_parted: bool,
}

/// Some kinds of trouble less, one to three pools. Now and then a contest, or more jobs that name
/// pools.
pub(super) fn relief() -> impl Strategy<Value = Relief> {
    let without = subsequence(ALL.to_vec(), 2..=ALL.len());
    (without, 1..=POOLS.len(), chance(0.25), chance(0.4)).prop_map(
        |(without, n_pools, is_contest, is_parted)| Relief {
            without,
            n_pools,
            is_contest,
            is_parted,
        },
    )
}

impl Relief {
    /// The world without these kinds of trouble, in so many pools.
    pub(super) fn apply(&self, mut world: Snapshot) -> Snapshot {
        for trouble in &self.without {
            relieve(&mut world, *trouble);
        }
        self.merge_pools(&mut world);
        if self.is_parted {
            part(&mut world);
        }
        if self.is_contest {
            contest(&mut world);
        }
        world
    }

    fn merge_pools(&self, world: &mut Snapshot) {
        let merged = |pool: &Name| {
            let is_it = |text: &&str| Name::new(text) == *pool;
            let index = POOLS.iter().position(is_it).expect("all pools are listed");
            Name::new(POOLS[index % self.n_pools])
        };
        let of_jobs = world.jobs.iter_mut().filter_map(|job| job.pool.as_mut());
        let of_types = world.types.iter_mut().filter_map(|kind| kind.pool.as_mut());
        let of_workers = world.workers.iter_mut().map(|worker| &mut worker.pool);
        let of_evictions = world.evictions.iter_mut().map(|eviction| &mut eviction.pool);
        for pool in of_jobs.chain(of_types).chain(of_workers).chain(of_evictions) {
            *pool = merged(pool);
        }
        world.pools.retain(|pool, _| merged(pool) == *pool);
        for tenant in &mut world.tenants {
            for quota in &mut tenant.quotas {
                quota.pool = merged(&quota.pool);
            }
            tenant.quotas.sort_by(|one, other| one.pool.cmp(&other.pool));
            tenant.quotas.dedup_by(|one, other| one.pool == other.pool);
        }
    }
}

/// Every second job names the pool of some worker.
fn part(world: &mut Snapshot) {
    let pools: Vec<Name> = world.workers.iter().map(|worker| worker.pool.clone()).collect();
    for (job, pool) in world.jobs.iter_mut().step_by(2).zip(pools.iter().cycle()) {
        job.pool = Some(pool.clone());
    }
}

/// The first tenant wants what it is due, and others run what they are not.
fn contest(world: &mut Snapshot) {
    for policy in world.pools.values_mut().chain([&mut world.policy]) {
        (policy.preemption.enabled, policy.preemption.evictions_max) = (true, 3);
    }
    let Some((first, others)) = world.tenants.split_first_mut() else { return };
    let due = |pool: &&str| Quota { pool: Name::new(pool), min: 3, max: None };
    first.quotas = POOLS.iter().map(due).collect();
    for quota in others.iter_mut().flat_map(|tenant| &mut tenant.quotas) {
        quota.min = 0;
    }
    for job in world.jobs.iter_mut().filter(|job| job.tenant == first.id) {
        (job.priority, job.slots) = (5, 1);
    }
    for attempt in &mut world.attempts {
        attempt.priority = attempt.priority.min(0);
    }
    // The fleet is full, but for the last worker.
    let n_full = world.workers.len().saturating_sub(1);
    for worker in &mut world.workers[..n_full] {
        let attempts = world.attempts.iter().filter(|attempt| attempt.worker == worker.id);
        match attempts.map(|attempt| attempt.slots).sum() {
            0 => worker.slots_free = Some(0),
            slots => worker.slots = slots,
        }
        worker.slots_free = worker.slots_free.map(|free| free.min(worker.slots));
    }
}

fn relieve(world: &mut Snapshot, trouble: Trouble) {
    match trouble {
        Trouble::Budgets => {
            world.budget = None;
            world.tenants.iter_mut().for_each(|tenant| tenant.budget = None);
        }
        Trouble::JobsMax => {
            world.tenants.iter_mut().for_each(|tenant| tenant.jobs_max = None);
            for kind in &mut world.types {
                (kind.jobs_max, kind.worker_max) = (None, None);
            }
            world.workers.iter_mut().for_each(|worker| worker.type_max.clear());
        }
        Trouble::Needs => world.jobs.iter_mut().for_each(|job| job.needs.clear()),
        Trouble::Amounts => world.jobs.iter_mut().for_each(|job| job.amounts.clear()),
        Trouble::JobPools => {
            world.jobs.iter_mut().for_each(|job| job.pool = None);
            world.types.iter_mut().for_each(|kind| kind.pool = None);
        }
        Trouble::Delays => {
            for job in &mut world.jobs {
                job.ready = job.ready.min(world.now);
                (job.not_before, job.backoff_until) = (None, None);
            }
        }
        Trouble::Resources => world.jobs.iter_mut().for_each(|job| job.resource = None),
        Trouble::Absence => {
            world.tenants.iter_mut().for_each(|tenant| tenant.active = true);
            for worker in &mut world.workers {
                (worker.healthy, worker.draining) = (true, false);
            }
        }
        Trouble::PoolPolicies => world.pools.clear(),
        Trouble::Maxima => {
            for quota in world.tenants.iter_mut().flat_map(|tenant| &mut tenant.quotas) {
                quota.max = None;
            }
        }
    }
}
