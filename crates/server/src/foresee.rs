//! What would become of jobs that nobody has submitted: decided on a copy of the world.

use std::collections::BTreeMap;

use decide::{Explanation, World};
use model::{Action, Event, Job, JobId, Millis, Placement, Reason, Snapshot, Spec};

use crate::estimate::{Pace, Wait, estimate, slots_that_fit};
use crate::explain::Explained;
use crate::queue::new_job;
use crate::round::why;
use crate::scheduler::Scheduler;

/// The world as it is, and jobs that are not in it.
pub(crate) struct Rehearsal {
    snapshot: Snapshot,
    jobs: Vec<(Job, Spec)>,
    /// How long attempts took lately.
    mean: Option<Millis>,
    spread: Option<(Millis, Millis)>,
}

/// What would become of one of them.
pub(crate) enum Foreseen {
    Placed { worker: String, why: String },
    Held(Explained),
}

impl Scheduler {
    /// Copies the world; what comes of it is found out elsewhere.
    pub(crate) fn rehearsal(&self, specs: Vec<Spec>) -> Rehearsal {
        let snapshot = self.snapshot();
        let (now, histories) = (snapshot.now, &self.histories);
        let job = |(index, spec): (usize, Spec)| {
            // After all that are there: their ids are numbers.
            let id = JobId::new(&format!("new-{index:06}"));
            (new_job(id, &spec, now, histories), spec)
        };
        let jobs = specs.into_iter().enumerate().map(job).collect();
        let mean = self.samples.mean_duration(now);
        let spread = mean.and_then(|_| self.samples.spread());
        Rehearsal { snapshot, jobs, mean, spread }
    }
}

impl Rehearsal {
    /// One round with the new jobs in the queue. Takes as long as the queue is.
    pub(crate) fn run(self) -> Vec<Foreseen> {
        let Self { snapshot, jobs, mean, spread } = self;
        let mut world = World::from_snapshot(&snapshot);
        for (job, _) in &jobs {
            world.apply(Event::Queued(Box::new(job.clone())));
        }
        let mut placed: BTreeMap<JobId, Placement> = BTreeMap::new();
        for action in world.decide(snapshot.now) {
            if let Action::Place(placement) = action {
                placed.insert(placement.job.clone(), placement);
            }
        }
        let foresee = |(job, spec): (Job, Spec)| {
            if let Some(placement) = placed.get(&job.id) {
                let worker = placement.worker.to_string();
                return Foreseen::Placed { worker, why: why(placement) };
            }
            let kind = snapshot.types.iter().find(|kind| kind.name == spec.kind);
            let pool = spec.pool.as_ref().or_else(|| kind.and_then(|kind| kind.pool.as_ref()));
            let slots = slots_that_fit(snapshot.workers.iter(), &spec, pool);
            let pace = Pace { slots, mean: mean.or(job.estimate), spread };
            Foreseen::Held(held(&mut world, &job, &spec, &pace))
        };
        jobs.into_iter().map(foresee).collect()
    }
}

fn held(world: &mut World, job: &Job, spec: &Spec, pace: &Pace) -> Explained {
    let now = job.created;
    let Some(explanation) = world.explain_all(&job.id, now) else { return Explained::nothing() };
    let ahead = world.ahead_by(&job.id, now);
    let Explanation { checks, nearest } = explanation;
    let reason = checks.first().map_or(Reason::Outranked, |first| first.reason);
    let share = world.share_of(&spec.tenant);
    let wait = Wait { spec, reason, ahead, share, backoff_until: None, now };
    let estimate = estimate(&wait, pace);
    let ahead = ahead.and_then(|ahead| u64::try_from(ahead.n_jobs).ok());
    Explained { ahead, estimate, ..Explained::of(checks, nearest) }
}
