//! Small worlds that are valid and nasty: every limit bites, every number is near its edge.
//!
//! A world is drawn part by part, with numbers in place of names; then the parts are joined, and
//! what would not be valid (an attempt that does not fit, a resource held twice) is left out.

mod parts;
mod policies;
mod relax;

use std::collections::BTreeMap;

use model::{
    Ask, Attempt, Budget, Cluster, Eviction, Freed, Job, JobId, JobType, Millis, Name, Policy,
    Preset, Resource, Snapshot, Tenant, TenantId, Timestamp, Worker, WorkerId,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub(crate) use parts::pool;
use parts::{AttemptPart, JobPart, Wish};
pub(crate) use policies::any_policy;

/// The moment of every decision.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);

/// A world for a policy that started from `preset`.
pub(crate) fn any_snapshot(preset: Preset) -> impl Strategy<Value = Snapshot> {
    let fleet = (
        prop_oneof![1 => vec(parts::worker(), 0..=1), 6 => vec(parts::worker(), 2..=8)],
        vec(parts::attempt(), 0..=8),
        vec(parts::resource(), 0..=4),
        parts::types(),
    );
    let work = (
        vec(parts::job(), 0..=14),
        vec(parts::tenant(), 1..=4),
        vec((0..4_usize, 0..3_usize, parts::eviction_age()), 0..=4),
        (option::weighted(0.3, parts::budget()), parts::estimate()),
        option::weighted(0.34, (0..8_usize, 0..=3_u32)),
    );
    let policies = (policies::policy(preset), policies::of_pools());
    let rest = (any::<u64>(), policies, policies::cluster(), parts::spelling());
    (fleet, work, rest, relax::relief()).prop_map(|(fleet, work, rest, relief)| {
        let (workers, attempts, resources, types) = fleet;
        let (jobs, tenants, evictions, (budget, usual), freed) = work;
        let (seed, (policy, pools), cluster, spelling) = rest;
        let drawn = Drawn { workers, attempts, resources, types, jobs, tenants, spelling };
        let facts = Rest { evictions, budget, usual, freed, seed, policy, pools, cluster };
        relief.apply(drawn.join(facts))
    })
}

/// How ids are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelling {
    Numbers,
    Words,
    Mixed,
}

impl Spelling {
    /// The id of thing number `index` of a kind that starts with `letter`.
    fn id(self, letter: char, index: usize) -> String {
        // Steps of seven, so that numbers have one or two digits and bytes sort otherwise.
        let number = index * 7 + 3;
        match (self, index % 3) {
            (Self::Numbers, _) | (Self::Mixed, 0) => number.to_string(),
            (Self::Words, _) | (Self::Mixed, 1) => format!("{letter}{number}"),
            (Self::Mixed, _) => format!("0{number}"),
        }
    }
}

/// The parts that name each other.
struct Drawn {
    workers: Vec<Worker>,
    attempts: Vec<AttemptPart>,
    resources: Vec<Option<usize>>,
    types: Vec<JobType>,
    jobs: Vec<JobPart>,
    tenants: Vec<Tenant>,
    spelling: Spelling,
}

/// The parts that only name others.
struct Rest {
    evictions: Vec<(usize, usize, Timestamp)>,
    budget: Option<Budget>,
    usual: Option<Millis>,
    freed: Option<(usize, u32)>,
    seed: u64,
    policy: Policy,
    pools: BTreeMap<Name, Policy>,
    cluster: Cluster,
}

impl Drawn {
    fn join(self, rest: Rest) -> Snapshot {
        let workers = self.workers();
        let mut resources = self.resources();
        let attempts = self.attempts(&workers, &mut resources);
        let evictions = rest.evictions.iter().map(|(tenant, pool, at)| Eviction {
            at: *at,
            tenant: self.tenant_id(*tenant),
            pool: parts::pool(*pool),
        });
        let asking = rest.freed.filter(|_| !workers.is_empty());
        Snapshot {
            now: NOW,
            usual: rest.usual,
            seed: rest.seed,
            policy: rest.policy,
            pools: rest.pools,
            budget: rest.budget,
            tenants: self.tenants(),
            jobs: self.jobs(&workers),
            evictions: evictions.collect(),
            freed: asking.map(|(worker, completed)| Freed {
                worker: workers[worker % workers.len()].id.clone(),
                completed,
            }),
            cluster: rest.cluster,
            attempts,
            resources,
            workers,
            types: self.types,
        }
    }

    fn tenant_id(&self, index: usize) -> TenantId {
        TenantId::new(&self.spelling.id('t', index % self.tenants.len()))
    }

    fn tenants(&self) -> Vec<Tenant> {
        let with_id = |(index, tenant): (usize, &Tenant)| {
            let id = self.tenant_id(index);
            Tenant { id, ..tenant.clone() }
        };
        self.tenants.iter().enumerate().map(with_id).collect()
    }

    fn workers(&self) -> Vec<Worker> {
        let with_id = |(index, worker): (usize, &Worker)| {
            let id = WorkerId::new(&self.spelling.id('w', index));
            Worker { id, ..worker.clone() }
        };
        self.workers.iter().enumerate().map(with_id).collect()
    }

    fn resources(&self) -> Vec<Resource> {
        let named = |(index, owner): (usize, &Option<usize>)| Resource {
            name: resource_name(index),
            tenant: owner.map(|owner| self.tenant_id(owner)),
            holder: None,
        };
        self.resources.iter().enumerate().map(named).collect()
    }

    fn job_id(&self, index: usize) -> JobId {
        JobId::new(&self.spelling.id('j', index))
    }

    fn jobs(&self, workers: &[Worker]) -> Vec<Job> {
        let joined = |(index, part): (usize, &JobPart)| {
            let known = part.inputs.iter().filter(|(worker, _)| **worker < workers.len());
            Job {
                id: self.job_id(index),
                tenant: self.tenant_id(part.tenant),
                inputs: known.map(|(worker, it)| (workers[*worker].id.clone(), *it)).collect(),
                last_worker: part.last_worker.and_then(|last| Some(workers.get(last)?.id.clone())),
                promised: part.promised.and_then(|kept| Some(workers.get(kept)?.id.clone())),
                resource: self.ask(part.resource),
                ..part.job.clone()
            }
        };
        self.jobs.iter().enumerate().map(joined).collect()
    }

    /// Any, or the resource of that number, if there is one.
    fn ask(&self, wish: Wish) -> Option<Ask> {
        match wish {
            Wish::Nothing => None,
            Wish::Any => Some(Ask::Any),
            Wish::Number(index) => {
                (index < self.resources.len()).then(|| Ask::Named(resource_name(index)))
            }
        }
    }

    /// The attempts that fit what earlier ones leave of their workers.
    fn attempts(&self, workers: &[Worker], resources: &mut [Resource]) -> Vec<Attempt> {
        let mut attempts: Vec<Attempt> = Vec::new();
        if workers.is_empty() {
            return attempts;
        }
        for (index, part) in self.attempts.iter().enumerate() {
            let worker = &workers[part.worker % workers.len()];
            let kind = part
                .attempt
                .kind
                .clone()
                .filter(|kind| worker.types.is_empty() || worker.types.contains(kind));
            let mut attempt = Attempt {
                // After the ids of all jobs that wait.
                job: self.job_id(20 + index),
                tenant: self.tenant_id(part.tenant),
                worker: worker.id.clone(),
                kind: kind.or_else(|| worker.types.first().cloned()),
                needs: part.needs_of(worker),
                stopping_for: part
                    .stopping_for
                    .filter(|job| *job < self.jobs.len())
                    .map(|job| self.job_id(job)),
                ..part.attempt.clone()
            };
            attempt.holds = self.ask(part.holds);
            if fits(&attempt, worker, &attempts) {
                self.take_resource(&mut attempt, &attempts, resources);
                attempts.push(attempt);
            }
        }
        attempts
    }

    /// Lets `attempt` hold what it asks for, if that is free and may be its.
    fn take_resource(&self, attempt: &mut Attempt, others: &[Attempt], all: &mut [Resource]) {
        match &attempt.holds {
            None => {}
            Some(Ask::Named(name)) => {
                let found = all.iter_mut().find(|resource| {
                    resource.name == *name
                        && resource.holder.is_none()
                        && resource.tenant.as_ref().is_none_or(|owner| *owner == attempt.tenant)
                });
                match found {
                    Some(resource) => resource.holder = Some(attempt.job.clone()),
                    None => attempt.holds = None,
                }
            }
            Some(Ask::Any) => {
                let is_same = |other: &&Attempt| {
                    other.tenant == attempt.tenant && other.holds == Some(Ask::Any)
                };
                let taken = others.iter().filter(is_same).count();
                let tenants = self.tenants();
                let own = tenants.iter().find(|tenant| tenant.id == attempt.tenant);
                let all = own.and_then(|tenant| tenant.workspaces).unwrap_or(0);
                if taken >= usize::try_from(all).unwrap_or(usize::MAX) {
                    attempt.holds = None;
                }
            }
        }
    }
}

fn resource_name(index: usize) -> Name {
    Name::new(["db", "7", "checkout", "10"][index])
}

/// Whether `attempt` fits what `others` leave of `worker`.
fn fits(attempt: &Attempt, worker: &Worker, others: &[Attempt]) -> bool {
    let others = || others.iter().filter(|other| other.worker == worker.id);
    let slots: u32 = others().map(|other| other.slots).sum();
    slots + attempt.slots <= worker.slots
        && attempt.amounts.iter().all(|(name, asked)| {
            let of = |amounts: &model::job::Amounts| amounts.get(name).copied().unwrap_or(0);
            let taken: u64 = others().map(|other| of(&other.amounts)).sum();
            taken + asked <= of(&worker.amounts)
        })
}

/// The same world with every list in another order, drawn from `seed`.
///
/// Lists that are sorted by contract (what a worker has) stay as they are.
pub(crate) fn shuffled(snapshot: &Snapshot, seed: u64) -> Snapshot {
    let mut draws = Draws(seed);
    let mut other = snapshot.clone();
    draws.shuffle(&mut other.tenants);
    draws.shuffle(&mut other.resources);
    draws.shuffle(&mut other.types);
    draws.shuffle(&mut other.workers);
    draws.shuffle(&mut other.jobs);
    draws.shuffle(&mut other.attempts);
    draws.shuffle(&mut other.evictions);
    for tenant in &mut other.tenants {
        draws.shuffle(&mut tenant.quotas);
    }
    for alternatives in other.jobs.iter_mut().flat_map(|job| job.needs.values_mut()) {
        draws.shuffle(alternatives);
    }
    other
}

/// `SplitMix64`, written again here so that nothing is shared with what is tested.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let n_left = u64::try_from(last + 1).expect("a list fits in 64 bits");
            let chosen = usize::try_from(self.next() % n_left).expect("below a length");
            list.swap(last, chosen);
        }
    }
}
