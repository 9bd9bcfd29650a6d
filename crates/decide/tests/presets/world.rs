//! Small worlds in a few words, and what was decided about them.

use decide::check::check;
use model::policy::Rule;
use model::{
    Action, Attempt, Budget, Cluster, Decision, Eviction, Fixed, Freed, Hold, Job, JobId, JobType,
    Millis, Name, Placement, Policy, Preempt, Preset, Reason, Resource, Snapshot, Tenant, TenantId,
    Timestamp, Worker, WorkerId,
};

use crate::specs::{AttemptSpec, JobSpec, ResourceSpec, TenantSpec, TypeSpec, WorkerSpec};

/// The moment of every decision here.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);

/// A world that is being described.
pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
}

/// What `preset` decides about a world.
pub(crate) fn decided(preset: Preset, describe: impl FnOnce(&mut World)) -> Decision {
    decided_by(preset.policy(), 0, describe)
}

/// What `preset` decides about a world when draws come from `seed`.
pub(crate) fn decided_with_seed(
    preset: Preset,
    seed: u64,
    describe: impl FnOnce(&mut World),
) -> Decision {
    decided_by(preset.policy(), seed, describe)
}

/// The one place that calls `decide`. What is true of every decision is checked here.
fn decided_by(policy: Policy, seed: u64, describe: impl FnOnce(&mut World)) -> Decision {
    let mut world = World::empty(policy, seed);
    describe(&mut world);
    world.name_tenants();
    let snapshot = world.snapshot;
    let decision = decide::decide(&snapshot);
    assert_eq!(decision, decide::decide(&reversed(&snapshot)), "the order of lists matters");
    assert_eq!(check(&snapshot, &decision), Vec::new(), "unsound: {decision:#?}");
    decision
}

/// The same world, live, after a decision.
pub(crate) fn decided_live(preset: Preset, describe: impl FnOnce(&mut World)) -> decide::World {
    let mut world = World::empty(preset.policy(), 0);
    describe(&mut world);
    world.name_tenants();
    let mut live = decide::World::from_snapshot(&world.snapshot);
    live.decide(NOW);
    live
}

fn reversed(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.tenants.reverse();
    snapshot.resources.reverse();
    snapshot.types.reverse();
    snapshot.workers.reverse();
    snapshot.jobs.reverse();
    snapshot.attempts.reverse();
    snapshot.evictions.reverse();
    snapshot
}

/// What was placed where, in the order it was decided.
pub(crate) fn placed(decision: &Decision) -> Vec<(String, String)> {
    let placements = placements(decision);
    placements.map(|place| (place.job.to_string(), place.worker.to_string())).collect()
}

/// What was placed, in the order it was decided.
pub(crate) fn jobs_placed(decision: &Decision) -> Vec<String> {
    placements(decision).map(|place| place.job.to_string()).collect()
}

/// Where `job` was placed; empty if it was not.
pub(crate) fn place_of(decision: &Decision, job: &str) -> String {
    placement(decision, job).map(|place| place.worker.to_string()).unwrap_or_default()
}

/// The placement of `job`.
pub(crate) fn placement<'a>(decision: &'a Decision, job: &str) -> Option<&'a Placement> {
    placements(decision).find(|place| place.job == JobId::new(job))
}

fn placements(decision: &Decision) -> impl Iterator<Item = &Placement> {
    decision.actions.iter().filter_map(|action| match action {
        Action::Place(place) => Some(place),
        Action::Preempt(_) | Action::Defer(_) => None,
    })
}

/// Who must stop, and for whom.
pub(crate) fn preempted(decision: &Decision) -> Vec<(String, String)> {
    let preempts = decision.actions.iter().filter_map(|action| match action {
        Action::Preempt(Preempt { victim, preemptor, .. }) => {
            Some((victim.to_string(), preemptor.to_string()))
        }
        Action::Place(_) | Action::Defer(_) => None,
    });
    preempts.collect()
}

/// Which jobs are left alone, and for how many milliseconds.
pub(crate) fn deferred(decision: &Decision) -> Vec<(String, i64)> {
    let defers = decision.actions.iter().filter_map(|action| match action {
        Action::Defer(defer) => Some((defer.job.to_string(), defer.until.0 - NOW.0)),
        Action::Place(_) | Action::Preempt(_) => None,
    });
    defers.collect()
}

/// Why `job` waits; `None` if it does not.
pub(crate) fn reason(decision: &Decision, job: &str) -> Option<Reason> {
    hold(decision, job).map(|hold| hold.reason)
}

/// The evidence for why `job` waits.
pub(crate) fn detail(decision: &Decision, job: &str) -> String {
    hold(decision, job).map(|hold| hold.detail.clone()).unwrap_or_default()
}

fn hold<'a>(decision: &'a Decision, job: &str) -> Option<&'a Hold> {
    decision.holds.iter().find(|hold| hold.job == JobId::new(job))
}

/// What `rule` said about `job` where it was placed, as a person reads it.
pub(crate) fn points(decision: &Decision, job: &str, rule: Rule) -> String {
    let Some(place) = placement(decision, job) else {
        return format!("not placed: {:?}", reason(decision, job));
    };
    let said = place.points.iter().find(|said| said.rule == rule);
    said.map_or(Fixed::ZERO, |said| said.points).to_string()
}

/// The score of `job` where it was placed.
pub(crate) fn score(decision: &Decision, job: &str) -> String {
    placement(decision, job).map(|place| place.score.to_string()).unwrap_or_default()
}

/// Pairs of text, to compare with what was placed.
pub(crate) fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(one, two)| (one.to_owned(), two.to_owned())).to_vec()
}

impl World {
    fn empty(policy: Policy, seed: u64) -> Self {
        let snapshot = Snapshot {
            now: NOW,
            usual: None,
            seed,
            policy,
            pools: std::collections::BTreeMap::new(),
            budget: None,
            tenants: Vec::new(),
            resources: Vec::new(),
            types: Vec::new(),
            workers: Vec::new(),
            jobs: Vec::new(),
            attempts: Vec::new(),
            evictions: Vec::new(),
            freed: None,
            cluster: Cluster::default(),
        };
        Self { snapshot }
    }

    /// Those that jobs, attempts and resources name exist, with defaults.
    fn name_tenants(&mut self) {
        let snapshot = &mut self.snapshot;
        let jobs = snapshot.jobs.iter().map(|job| job.tenant.clone());
        let attempts = snapshot.attempts.iter().map(|attempt| attempt.tenant.clone());
        let resources = snapshot.resources.iter().filter_map(|resource| resource.tenant.clone());
        let named: Vec<TenantId> = jobs.chain(attempts).chain(resources).collect();
        for id in named {
            if !snapshot.tenants.iter().any(|tenant| tenant.id == id) {
                snapshot.tenants.push(Tenant::new(id));
            }
        }
    }

    /// How to decide.
    pub(crate) fn policy(&mut self) -> &mut Policy {
        &mut self.snapshot.policy
    }

    /// The averages.
    pub(crate) fn cluster(&mut self) -> &mut Cluster {
        &mut self.snapshot.cluster
    }

    /// A healthy worker with one slot that runs any type.
    pub(crate) fn worker(&mut self, id: &str) -> WorkerSpec<'_> {
        WorkerSpec(added(&mut self.snapshot.workers, Worker::new(WorkerId::new(id))))
    }

    /// A job of tenant `default` that became ready this moment.
    pub(crate) fn job(&mut self, id: &str) -> JobSpec<'_> {
        let job = Job::new(JobId::new(id), TenantId::new("default"), NOW);
        JobSpec(added(&mut self.snapshot.jobs, job))
    }

    /// A tenant of weight 1 without limits.
    pub(crate) fn tenant(&mut self, id: &str) -> TenantSpec<'_> {
        TenantSpec(added(&mut self.snapshot.tenants, Tenant::new(TenantId::new(id))))
    }

    /// Settings of a job type.
    pub(crate) fn job_type(&mut self, name: &str) -> TypeSpec<'_> {
        TypeSpec(added(&mut self.snapshot.types, JobType::new(Name::new(name))))
    }

    /// A free resource that is anybody's.
    pub(crate) fn resource(&mut self, name: &str) -> ResourceSpec<'_> {
        let resource = Resource { name: Name::new(name), tenant: None, holder: None };
        ResourceSpec(added(&mut self.snapshot.resources, resource))
    }

    /// An attempt of tenant `default` that was ready and started a minute ago.
    pub(crate) fn attempt(&mut self, job: &str, worker: &str) -> AttemptSpec<'_> {
        let (job, worker) = (JobId::new(job), WorkerId::new(worker));
        let started = NOW - Millis::from_secs(60);
        let attempt = Attempt::new(job, TenantId::new("default"), worker, started);
        AttemptSpec(added(&mut self.snapshot.attempts, attempt))
    }

    /// A job of `tenant` was preempted in `pool`.
    pub(crate) fn evicted(&mut self, tenant: &str, pool: &str, seconds_ago: i64) {
        self.snapshot.evictions.push(Eviction {
            at: NOW - Millis::from_secs(seconds_ago),
            tenant: TenantId::new(tenant),
            pool: Name::new(pool),
        });
    }

    /// What all tenants together may use.
    pub(crate) fn budget(&mut self, limit: i64, used: i64) {
        self.snapshot.budget =
            Some(Budget { limit: Fixed::whole(limit), used: Fixed::whole(used) });
    }

    /// `worker` finished so many jobs and asks for more.
    pub(crate) fn freed(&mut self, worker: &str, completed: u32) {
        self.snapshot.freed = Some(Freed { worker: WorkerId::new(worker), completed });
    }
}

fn added<T>(list: &mut Vec<T>, thing: T) -> &mut T {
    list.push(thing);
    list.last_mut().expect("something was pushed")
}
