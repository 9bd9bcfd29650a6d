//! Which reasons apply to a job.

use model::policy::Order;
use model::{Fixed, Freed, Reason};

use super::Audience;
use crate::rule::{Asker, Opinion};
use crate::table::{JobIx, TenantIx, WorkerIx};
use crate::turn::Scope;
use crate::waiting::{AskIx, Stage, Waiting};
use crate::world::World;

impl World {
    /// The first reason that applies.
    pub(super) fn first_reason(
        &self,
        ix: JobIx,
        audience: &Audience,
        freed: Option<&Freed>,
    ) -> Reason {
        let one = (Some(ix), &self.queue.jobs[ix]);
        let mut all = Reason::ALL.into_iter();
        all.find(|reason| self.applies(*reason, one, audience, freed)).unwrap_or(Reason::Outranked)
    }

    /// All reasons that apply, the one that is told first. Not empty.
    pub(super) fn all_reasons(&self, ix: JobIx, audience: &Audience) -> Vec<Reason> {
        let one = (Some(ix), &self.queue.jobs[ix]);
        let all = Reason::ALL.into_iter();
        let mut all: Vec<Reason> =
            all.filter(|reason| self.applies(*reason, one, audience, None)).collect();
        if all.is_empty() {
            all.push(Reason::Outranked);
        }
        all
    }

    /// Whether one reason applies, whatever others do. `Outranked` is what is left if none does.
    /// What rules say is not known of a job that is in no queue.
    pub(super) fn applies(
        &self,
        reason: Reason,
        (ix, waiting): (Option<JobIx>, &Waiting),
        audience: &Audience,
        freed: Option<&Freed>,
    ) -> bool {
        let sharer = &self.tenants[waiting.tenant];
        let kind = self.fleet.catalogue.fit_of(waiting.class).key.kind;
        let is_away = !audience.ever.is_empty() && audience.serving.is_empty();
        let costs_more = |left: Option<Fixed>| left.is_some_and(|left| waiting.cost > left);
        match reason {
            // The scheduler knows of these, or they are what is left.
            Reason::OnHold | Reason::PoolPaused | Reason::Claiming | Reason::Outranked => false,
            Reason::NoWorkerEver => audience.ever.is_empty(),
            Reason::NoResourceEver => self.is_never_to_be_had(waiting),
            Reason::TenantPaused => !sharer.tenant.active,
            Reason::BudgetSpent => costs_more(sharer.budget_left()),
            Reason::BudgetSpentGlobal => costs_more(self.budget_left()),
            Reason::NotReady => waiting.standing.ready > self.now,
            Reason::NotBefore => {
                let is_ready = waiting.standing.ready <= self.now;
                waiting.extra().not_before.is_some_and(|moment| moment > self.now)
                    || (is_ready && self.is_delayed(waiting, freed))
            }
            Reason::NoWorkerNow => is_away && audience.n_draining > 0,
            Reason::WorkerUnhealthy => is_away && audience.n_draining == 0,
            Reason::TenantAtMax => self.is_at_quota(waiting, audience),
            Reason::TenantAtJobsMax => {
                sharer.tenant.jobs_max.is_some_and(|max| sharer.n_running >= max)
            }
            Reason::TypeAtMax => {
                let is_full_everywhere = !audience.within_quota.is_empty();
                self.kind_is_full(kind) || (is_full_everywhere && audience.usable.is_empty())
            }
            Reason::ResourceHeld => {
                let ask = waiting.extra().ask;
                ask.is_some_and(|ask| !self.is_to_be_had(ask, waiting.tenant))
                    && !self.is_never_to_be_had(waiting)
            }
            Reason::Preempting => self.stopping.contains_key(&waiting.id),
            Reason::WorkersFull => self.are_full(waiting, audience),
            Reason::Guarded | Reason::Reserved => {
                self.kept_reason(waiting, audience, freed) == Some(reason)
            }
            Reason::Vetoed | Reason::BelowZero => {
                self.kept_reason(waiting, audience, freed).is_none()
                    && ix.is_some_and(|ix| self.opinion(ix, audience, freed) == reason)
            }
        }
    }

    /// Whether the quota of its tenant leaves no room on any worker that could run the job. Without
    /// such a worker here, the pool that the job asks for counts: its workers may be elsewhere.
    fn is_at_quota(&self, waiting: &Waiting, audience: &Audience) -> bool {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let pool = self.fleet.catalogue.fits[class.fit].key.pool;
        if audience.ever.is_empty() {
            pool.is_some_and(|pool| !self.quota_allows(waiting.tenant, pool, class.slots))
        } else {
            audience.within_quota.is_empty()
        }
    }

    /// Whether the job looked for a worker and none had room for it, whatever limits say.
    pub(super) fn found_no_worker(
        &self,
        waiting: &Waiting,
        audience: &Audience,
        freed: Option<&Freed>,
    ) -> bool {
        let is_kept_room = self.stopping.contains_key(&waiting.id) && !audience.serving.is_empty();
        waiting.standing.ready <= self.now
            && !self.is_delayed(waiting, freed)
            && !is_kept_room
            && audience.with_any_room == 0
    }

    fn is_delayed(&self, waiting: &Waiting, freed: Option<&Freed>) -> bool {
        let scope = Scope { fetch: freed.is_some(), ..Scope::default() };
        waiting.starts() > self.now
            || !self.takes(scope, waiting.stage(self.now))
            || !self.is_fetched(waiting, scope)
    }

    /// Whether what the job asks to hold alone will never be its tenant's.
    fn is_never_to_be_had(&self, waiting: &Waiting) -> bool {
        waiting.extra().ask.is_some_and(|ask| match ask {
            AskIx::Named(name) => {
                let owner = self.resources.get(&name).and_then(|own| own.tenant.as_ref());
                owner.is_some_and(|owner| *owner != self.tenants[waiting.tenant].tenant.id)
            }
            AskIx::Any => {
                let n_workspaces = self.tenants[waiting.tenant].tenant.workspaces.unwrap_or(0);
                n_workspaces == 0 && !self.has_resources(waiting.tenant)
            }
        })
    }

    fn has_resources(&self, tenant: TenantIx) -> bool {
        let id = &self.tenants[tenant].tenant.id;
        self.resources.values().any(|own| own.tenant.as_ref() == Some(id))
    }

    fn are_full(&self, waiting: &Waiting, audience: &Audience) -> bool {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let has_room = |ix: &WorkerIx| self.fleet.workers[*ix].has_room(class);
        !audience.serving.is_empty() && !audience.wanted().iter().any(has_room)
    }

    /// Why all workers that are left are kept from the job on purpose, if they are.
    fn kept_reason(
        &self,
        waiting: &Waiting,
        audience: &Audience,
        freed: Option<&Freed>,
    ) -> Option<Reason> {
        let mut reason = None;
        for worker in audience.with_room.iter().filter(|worker| self.is_asked(**worker, freed)) {
            if self.is_guarded(*worker, waiting) {
                reason = Some(Reason::Guarded);
            } else if self.is_reserved(*worker, waiting) {
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

    /// Why rules kept the job from the workers that asked; `Outranked` if they did not.
    fn opinion(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Reason {
        if self.policy.order != Order::Rules {
            return Reason::Outranked;
        }
        let waiting = &self.queue.jobs[ix];
        let asked = audience.with_room.iter().filter(|worker| {
            self.is_asked(**worker, freed) && !self.is_reserved(**worker, waiting)
        });
        let mut reason = Reason::Outranked;
        for worker in asked {
            match Asker::new(self, *worker).candidate(ix).opinion() {
                Opinion::Vetoed(_) => reason = Reason::Vetoed,
                Opinion::Score(score) if score < Fixed::ZERO => {
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
