//! A world that lived through events is the world that its snapshot describes.

use decide::World;
use model::{
    Action, Attempt, Ended, Event, Fixed, Freed, Heartbeat, Inputs, Job, JobId, Millis, Policy,
    Preset, Snapshot, Timestamp, Worker,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::worlds::{any_policy, any_snapshot, pool};

/// One thing that happens to a world; numbers choose what it happens to.
#[derive(Clone, Debug)]
enum Step {
    Decide,
    End(usize),
    Requeue(usize),
    Withdraw(usize),
    Reprioritise(usize, i32),
    Leave(usize),
    Return(usize),
    /// A worker comes back in another pool.
    Move(usize, usize),
    Heartbeat(usize, bool),
    /// A worker says what it lacks of a job's inputs.
    Inputs(usize, usize, Inputs),
    /// An attempt is told to stop for a job.
    Stop(usize, usize),
    /// An attempt that was told to stop goes on.
    Spare(usize),
    /// A worker asks for work.
    Fetch(usize, u32),
    Wait(i64),
    /// A pool gets a policy of its own, or has none any more.
    PoolPolicy(usize, Option<Box<Policy>>),
    /// The site gets another policy.
    Policy(Box<Policy>),
}

fn any_step() -> impl Strategy<Value = Step> {
    let at = || 0..8_usize;
    prop_oneof![
        3 => Just(Step::Decide),
        3 => at().prop_map(Step::End),
        2 => at().prop_map(Step::Requeue),
        1 => at().prop_map(Step::Withdraw),
        1 => (at(), -20..20_i32).prop_map(|(at, priority)| Step::Reprioritise(at, priority)),
        1 => at().prop_map(Step::Leave),
        2 => at().prop_map(Step::Return),
        1 => (at(), 0..3_usize).prop_map(|(at, pool)| Step::Move(at, pool)),
        1 => (at(), any::<bool>()).prop_map(|(at, healthy)| Step::Heartbeat(at, healthy)),
        2 => (at(), at(), any_inputs()).prop_map(|(at, job, it)| Step::Inputs(at, job, it)),
        1 => (at(), at()).prop_map(|(at, job)| Step::Stop(at, job)),
        1 => at().prop_map(Step::Spare),
        1 => (at(), 0..3_u32).prop_map(|(at, completed)| Step::Fetch(at, completed)),
        2 => (0..100_000_i64).prop_map(Step::Wait),
        2 => (0..3_usize, proptest::option::weighted(0.7, any_policy().prop_map(Box::new)))
            .prop_map(|(at, policy)| Step::PoolPolicy(at, policy)),
        1 => any_policy().prop_map(|policy| Step::Policy(Box::new(policy))),
    ]
}

fn any_inputs() -> impl Strategy<Value = Inputs> {
    let all = (proptest::option::of(0..9_u32), proptest::option::of(0..9_u64));
    all.prop_map(|(missing_paths, missing_bytes)| Inputs { missing_paths, missing_bytes })
}

/// A world on its way, and what is needed to choose the next step.
struct Life {
    world: World,
    origin: Snapshot,
    now: Timestamp,
}

impl Life {
    fn step(&mut self, step: &Step) {
        let seen = self.world.snapshot();
        let attempt = |at: usize| pick(&seen.attempts, at);
        match *step {
            Step::Decide => drop(self.world.decide(self.now)),
            Step::Fetch(at, completed) => {
                if let Some(worker) = pick(&seen.workers, at) {
                    let freed = Freed { worker: worker.id.clone(), completed };
                    drop(self.world.fetch(&freed, self.now));
                }
            }
            Step::Wait(length) => self.now = self.now + Millis(length),
            Step::PoolPolicy(at, ref policy) => {
                self.world.apply(Event::PoolPolicy { pool: pool(at), policy: policy.clone() });
            }
            Step::Policy(ref policy) => self.world.apply(Event::Policy(policy.clone())),
            Step::End(at) => {
                if let Some(attempt) = attempt(at) {
                    self.end(&attempt.job, true);
                }
            }
            Step::Requeue(at) => {
                if let Some(attempt) = attempt(at) {
                    self.end(&attempt.job, false);
                    self.world.apply(Event::Queued(Box::new(back(attempt))));
                }
            }
            Step::Withdraw(at) => {
                if let Some(job) = pick(&seen.jobs, at) {
                    self.world.apply(Event::Withdrawn(job.id.clone()));
                }
            }
            Step::Reprioritise(at, priority) => {
                if let Some(job) = pick(&seen.jobs, at) {
                    self.world.apply(Event::Queued(Box::new(Job { priority, ..job.clone() })));
                }
            }
            Step::Stop(at, job) => {
                if let (Some(attempt), Some(job)) = (attempt(at), pick(&seen.jobs, job)) {
                    let (victim, preemptor) = (attempt.job.clone(), job.id.clone());
                    self.world.apply(Event::Stopping { victim, preemptor });
                }
            }
            Step::Spare(at) => {
                let stopping = attempt(at).map(|one| (&one.job, &one.stopping_for));
                if let Some((victim, Some(preemptor))) = stopping {
                    let (victim, preemptor) = (victim.clone(), preemptor.clone());
                    self.world.apply(Event::Spared { victim, preemptor });
                }
            }
            Step::Leave(_)
            | Step::Return(_)
            | Step::Move(..)
            | Step::Heartbeat(..)
            | Step::Inputs(..) => {
                if let Some(event) = self.fleet_event(&seen, step) {
                    self.world.apply(event);
                }
            }
        }
    }

    /// What happens to a worker, if there is one.
    fn fleet_event(&self, seen: &Snapshot, step: &Step) -> Option<Event> {
        match *step {
            Step::Leave(at) => Some(Event::Left(pick(&seen.workers, at)?.id.clone())),
            Step::Return(at) => {
                Some(Event::Joined(Box::new(pick(&self.origin.workers, at)?.clone())))
            }
            Step::Move(at, other) => {
                let (worker, other) =
                    (pick(&self.origin.workers, at)?, pick(&self.origin.workers, other)?);
                let moved = Worker { pool: other.pool.clone(), ..worker.clone() };
                Some(Event::Joined(Box::new(moved)))
            }
            Step::Heartbeat(at, healthy) => {
                let worker = pick(&seen.workers, at)?;
                Some(Event::Heartbeat(Heartbeat {
                    worker: worker.id.clone(),
                    slots_free: Some(worker.slots),
                    healthy,
                    draining: worker.draining,
                    hints: worker.hints.clone(),
                    metrics: worker.metrics,
                    at: self.now,
                }))
            }
            Step::Inputs(at, job, inputs) => {
                let worker = pick(&seen.workers, at)?.id.clone();
                Some(Event::Inputs { worker, job: pick(&seen.jobs, job)?.id.clone(), inputs })
            }
            Step::Decide
            | Step::End(_)
            | Step::Requeue(_)
            | Step::Withdraw(_)
            | Step::Reprioritise(..)
            | Step::Stop(..)
            | Step::Spare(_)
            | Step::Fetch(..)
            | Step::Wait(_)
            | Step::PoolPolicy(..)
            | Step::Policy(_) => None,
        }
    }

    fn end(&mut self, job: &JobId, completed: bool) {
        self.world.apply(Event::Ended(Ended {
            job: job.clone(),
            cost: Fixed::ONE,
            completed,
            at: self.now,
        }));
    }
}

fn pick<T>(items: &[T], at: usize) -> Option<&T> {
    items.get(at % items.len().max(1))
}

/// The job of an attempt, back in the queue with its age.
fn back(attempt: &Attempt) -> Job {
    let mut job = Job::new(attempt.job.clone(), attempt.tenant.clone(), attempt.ready);
    job.kind.clone_from(&attempt.kind);
    job.needs.clone_from(&attempt.needs);
    job.slots = attempt.slots;
    job.amounts.clone_from(&attempt.amounts);
    job.priority = attempt.priority;
    job.cost = attempt.cost;
    job.evictions = attempt.evictions + 1;
    job.last_worker = Some(attempt.worker.clone());
    job
}

/// Every decision of a world with a past equals that of a world made from its snapshot, and the
/// checker finds nothing in it.
fn past_does_not_matter(snapshot: &Snapshot, steps: &[Step]) -> Result<(), TestCaseError> {
    let world = World::from_snapshot(snapshot);
    let mut life = Life { world, origin: snapshot.clone(), now: snapshot.now };
    for step in steps {
        life.step(step);
    }
    // Slot time that passed since the last decision is on the accounts that are written down.
    life.world.holds(None, life.now);
    let seen = life.world.snapshot();
    let again = decide::decide(&seen);
    let violations = decide::check::check(&seen, &again);
    prop_assert!(violations.is_empty(), "{violations:?}\n{seen:#?}");
    let lived = life.world.decide(life.now);
    let fresh: Vec<Action> =
        again.actions.into_iter().filter(|action| !matches!(action, Action::Defer(_))).collect();
    prop_assert_eq!(lived, fresh);
    Ok(())
}

macro_rules! every_preset {
    ($($test:ident: $preset:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(150))]
            $(
                #[test]
                fn $test(
                    snapshot in any_snapshot($preset),
                    steps in proptest::collection::vec(any_step(), 0..24)
                ) {
                    past_does_not_matter(&snapshot, &steps)?;
                }
            )*
        }
    };
}

every_preset! {
    a_past_does_not_matter_to_priority_age: Preset::PriorityAge;
    a_past_does_not_matter_to_cohort: Preset::Cohort;
    a_past_does_not_matter_to_simple: Preset::Simple;
    a_past_does_not_matter_to_resource_aware: Preset::ResourceAware;
    a_past_does_not_matter_to_fair_share: Preset::FairShare;
    a_past_does_not_matter_to_aging: Preset::Aging;
    a_past_does_not_matter_to_detected: Preset::Detected;
    a_past_does_not_matter_to_balanced: Preset::Balanced;
}
