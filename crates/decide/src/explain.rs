//! Why a job waits: the one reason, the evidence, and what would change it.
//!
//! Reasons are looked for in the order of [`Reason`] in the world as a decision left it. What is
//! the same for all jobs of a class is found out once.

use std::collections::BTreeMap;

use model::policy::Order;
use model::{Action, Decision, Defer, Freed, Hold, JobId, Reason, Snapshot, Timestamp};

use crate::rule::{Asker, Opinion};
use crate::table::{ClassIx, JobIx, WorkerIx};
use crate::turn::Scope;
use crate::waiting::{Stage, Waiting};
use crate::world::World;

/// Decides on a snapshot, once, and says of every job that stays why it does.
pub fn decide(snapshot: &Snapshot) -> Decision {
    let mut world = World::from_snapshot(snapshot);
    let mut actions = match &snapshot.freed {
        Some(freed) => world.fetch(freed, snapshot.now),
        None => world.decide(snapshot.now),
    };
    let holds = world.holds(snapshot.freed.as_ref(), snapshot.now);
    if snapshot.freed.is_none() {
        actions.extend(world.defers(&holds));
    }
    Decision { actions, holds }
}

/// Workers that could run a class, counted by their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience {
    /// Could run it, whatever their state.
    pub(crate) n_ever: usize,
    pub(crate) n_serving: usize,
    pub(crate) n_draining: usize,
    pub(crate) with_room: Vec<WorkerIx>,
}

impl World {
    /// Every waiting job with its one reason, by id, as the last decision left it.
    pub fn holds(&mut self, freed: Option<&Freed>, now: Timestamp) -> Vec<Hold> {
        self.advance(now);
        let mut audiences = BTreeMap::new();
        let mut holds: Vec<Hold> = self
            .queue
            .jobs
            .iter()
            .map(|(ix, waiting)| {
                let audience =
                    audiences.entry(waiting.class).or_insert_with(|| self.audience(waiting.class));
                self.hold(ix, audience, freed)
            })
            .collect();
        holds.sort_by(|one, two| one.job.cmp(&two.job));
        holds
    }

    /// Why one job waits; `None` if it does not wait here.
    pub fn explain(&mut self, job: &JobId, now: Timestamp) -> Option<Hold> {
        self.advance(now);
        let ix = self.register.waiting(job)?;
        Some(self.hold(ix, &self.audience(self.queue.jobs[ix].class), None))
    }

    /// Jobs that found no worker are left alone for a while, where the policy says so.
    fn defers(&self, holds: &[Hold]) -> Vec<Action> {
        if self.policy.failure_backoff.0 == 0 {
            return Vec::new();
        }
        let unplaced = holds.iter().filter(|hold| {
            matches!(
                hold.reason,
                Reason::NoWorkerEver
                    | Reason::NoWorkerNow
                    | Reason::WorkersFull
                    | Reason::WorkerUnhealthy
            )
        });
        let until = self.now + self.policy.failure_backoff;
        unplaced.map(|hold| Action::Defer(Defer { job: hold.job.clone(), until })).collect()
    }

    fn audience(&self, class: ClassIx) -> Audience {
        let class = &self.fleet.catalogue.classes[class];
        let mut audience = Audience::default();
        for ix in self.fleet.matching(class.key.fit) {
            let seated = &self.fleet.workers[ix];
            if !seated.could_hold(&class.key) {
                continue;
            }
            audience.n_ever += 1;
            if seated.is_serving() {
                audience.n_serving += 1;
                if seated.has_room(&class.key) {
                    audience.with_room.push(ix);
                }
            } else if seated.worker.draining || seated.is_gone {
                audience.n_draining += 1;
            }
        }
        audience
    }

    fn hold(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Hold {
        let waiting = &self.queue.jobs[ix];
        let reason = self.reason(ix, audience, freed);
        let detail = self.detail(reason, waiting, audience);
        Hold { job: waiting.id.clone(), reason, detail }
    }

    fn reason(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Reason {
        let waiting = &self.queue.jobs[ix];
        if waiting.standing.ready > self.now {
            return Reason::NotReady;
        }
        if self.is_delayed(waiting, freed) {
            return Reason::NotBefore;
        }
        if audience.n_ever == 0 {
            return Reason::NoWorkerEver;
        }
        if audience.n_serving == 0 {
            let is_draining = audience.n_draining > 0;
            return if is_draining { Reason::NoWorkerNow } else { Reason::WorkerUnhealthy };
        }
        // Workers are full, too, but this says more.
        if self.stopping.contains_key(&waiting.id) {
            return Reason::Preempting;
        }
        if audience.with_room.is_empty() {
            return Reason::WorkersFull;
        }
        let limit = self.limit_reason(ix, audience, freed);
        limit.unwrap_or_else(|| self.last_reason(ix, audience, freed))
    }

    fn is_delayed(&self, waiting: &Waiting, freed: Option<&Freed>) -> bool {
        let scope = Scope { fetch: freed.is_some(), ..Scope::default() };
        waiting.starts() > self.now
            || !self.takes(scope, waiting.stage(self.now))
            || !self.is_fetched(waiting, scope)
    }

    /// The limit that forbids a job for which workers have room.
    fn limit_reason(
        &self,
        ix: JobIx,
        audience: &Audience,
        freed: Option<&Freed>,
    ) -> Option<Reason> {
        let waiting = &self.queue.jobs[ix];
        let class = &self.fleet.catalogue.classes[waiting.class];
        let sharer = &self.tenants[waiting.tenant];
        if !sharer.tenant.active {
            return Some(Reason::TenantPaused);
        }
        let within_quota = || {
            let workers = audience.with_room.iter().copied();
            workers.filter(|worker| {
                let pool = self.fleet.workers[*worker].pool;
                self.quota_allows(waiting.tenant, pool, class.key.slots)
            })
        };
        if within_quota().next().is_none() {
            return Some(Reason::TenantAtMax);
        }
        let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
        let allowed = || within_quota().filter(|worker| self.kind_allows(*worker, kind));
        let asked = allowed().filter(|worker| self.is_asked(*worker, freed));
        if let Some(kept) = self.kept_reason(waiting, asked) {
            return Some(kept);
        }
        if sharer.tenant.jobs_max.is_some_and(|max| sharer.n_running >= max) {
            return Some(Reason::TenantAtJobsMax);
        }
        if allowed().next().is_none() || self.kind_is_full(kind) {
            return Some(Reason::TypeAtMax);
        }
        if sharer.budget_left().is_some_and(|left| waiting.cost > left) {
            return Some(Reason::BudgetSpent);
        }
        if self.budget_left().is_some_and(|left| waiting.cost > left) {
            return Some(Reason::BudgetSpentGlobal);
        }
        let is_held =
            waiting.extra().ask.is_some_and(|ask| !self.is_to_be_had(ask, waiting.tenant));
        is_held.then_some(Reason::ResourceHeld)
    }

    /// Why all workers that are left are kept from the job on purpose, if they are.
    fn kept_reason(
        &self,
        waiting: &Waiting,
        left: impl Iterator<Item = WorkerIx>,
    ) -> Option<Reason> {
        let mut reason = None;
        for worker in left {
            if self.is_guarded(worker, waiting) {
                reason = Some(Reason::Guarded);
            } else if self.is_reserved(worker, waiting) {
                reason = reason.or(Some(Reason::Reserved));
            } else {
                return None;
            }
        }
        reason
    }

    /// Whether the worker looked for jobs in this decision.
    fn is_asked(&self, worker: WorkerIx, freed: Option<&Freed>) -> bool {
        freed.is_none_or(|freed| freed.worker == *self.fleet.id(worker))
    }

    /// Why rules kept the job from the workers that asked.
    fn last_reason(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Reason {
        if self.policy.order != Order::Rules {
            return Reason::Outranked;
        }
        let waiting = &self.queue.jobs[ix];
        let class = &self.fleet.catalogue.classes[waiting.class];
        let asked = audience.with_room.iter().filter(|worker| {
            self.is_asked(**worker, freed)
                && self.worker_allows(**worker, class, waiting.tenant)
                && !self.is_reserved(**worker, waiting)
        });
        let mut reason = Reason::Outranked;
        for worker in asked {
            match Asker::new(self, *worker).candidate(ix).opinion() {
                Opinion::Vetoed(_) => reason = Reason::Vetoed,
                Opinion::Score(score) if score < model::Fixed::ZERO => {
                    reason = reason.min(Reason::BelowZero);
                }
                Opinion::Score(_) => return Reason::Outranked,
            }
        }
        reason
    }

    /// Whether a job is inside its backoff.
    pub(crate) fn is_backing_off(&self, waiting: &Waiting) -> bool {
        waiting.stage(self.now) == Stage::Inside
    }
}
