//! The evidence for a reason, and what would change it, in words and numbers.

use model::{Check, Fixed, JobId, Millis, Reason, Timestamp};

use crate::explain::Audience;
use crate::reserve::Reservation;
use crate::rules::ROUNDS_MAX;
use crate::table::WorkerIx;
use crate::waiting::{AskIx, Waiting};
use crate::world::World;

/// So many jobs, workers or tenants are named at most; of the rest, the number is told.
pub(crate) const NAMED_MAX: usize = 5;

impl World {
    /// The evidence for `reason`, and what would change it.
    pub(crate) fn check(&self, reason: Reason, waiting: &Waiting, audience: &Audience) -> Check {
        let plain = |detail: String| Check::new(reason, detail);
        match reason {
            // Decisions do not know of these.
            Reason::OnHold | Reason::PoolPaused | Reason::Claiming => plain(String::new()),
            Reason::NotReady => self.not_ready(waiting),
            Reason::NotBefore => self.delay(waiting),
            Reason::NoWorkerEver => self.no_worker_ever(waiting),
            Reason::NoResourceEver => self.no_resource_ever(waiting),
            Reason::NoWorkerNow | Reason::WorkerUnhealthy => self.away(reason, audience),
            Reason::WorkersFull => self.workers_full(waiting, audience),
            Reason::Preempting => self.preempting(waiting),
            Reason::Guarded => self.with_room(reason, audience, |workers| {
                format!(
                    "{workers} with room, kept for rarer work that is expected; it starts when \
                         more jobs wait for such slots, or once it is overdue"
                )
            }),
            Reason::Reserved => self.reserved(audience),
            Reason::Vetoed => vetoed(waiting),
            Reason::BelowZero => self.with_room(reason, audience, |workers| {
                format!(
                    "its points are below zero on each of {workers} with room; less load or more \
                     memory helps"
                )
            }),
            Reason::Outranked => self.with_room(reason, audience, |workers| {
                format!("jobs that stand before it in line go first; {workers} with room")
            }),
            Reason::TenantPaused => {
                let id = self.tenants[waiting.tenant].tenant.id.clone();
                let detail = format!("tenant {id} is paused; resume it");
                Check { tenants: vec![id], ..plain(detail) }
            }
            Reason::TenantAtMax => self.tenant_at_max(waiting),
            Reason::TenantAtJobsMax => self.tenant_at_jobs_max(waiting),
            Reason::TypeAtMax => self.type_at_max(waiting),
            Reason::BudgetSpent => self.budget_spent(waiting),
            Reason::BudgetSpentGlobal => self.budget_spent_global(waiting),
            Reason::ResourceHeld => self.resource_held(waiting),
        }
    }

    /// Evidence that counts and names the workers with room for a job.
    fn with_room(
        &self,
        reason: Reason,
        audience: &Audience,
        say: impl FnOnce(String) -> String,
    ) -> Check {
        let n_workers = audience.with_room.len();
        let named = audience.with_room.iter().take(NAMED_MAX);
        Check {
            numbers: [("workers", whole(n_workers))].into(),
            workers: named.map(|ix| self.fleet.id(*ix).clone()).collect(),
            ..Check::new(reason, say(plural(n_workers, "worker")))
        }
    }

    fn not_ready(&self, waiting: &Waiting) -> Check {
        let ready = waiting.standing.ready;
        let detail = format!("its dependencies are done in {} at the earliest", self.until(ready));
        let numbers = [("ready_in_s", self.seconds(ready))].into();
        Check { numbers, ..Check::new(Reason::NotReady, detail) }
    }

    fn delay(&self, waiting: &Waiting) -> Check {
        let extra = waiting.extra();
        let (moment, detail) = match extra.not_before {
            Some(moment) if moment > self.now => {
                let detail = format!("its submitter asked to wait {} more", self.until(moment));
                (Some(moment), detail)
            }
            Some(_) | None if self.is_backing_off(waiting) => {
                let until = extra.backoff_until.unwrap_or(self.now);
                let left = self.until(until);
                (Some(until), format!("it found no worker before and is tried again in {left}"))
            }
            Some(_) | None => {
                let detail = "a worker that just finished takes only new jobs and those that back \
                              off; it is next in a full round";
                (None, detail.to_owned())
            }
        };
        let numbers = moment.map(|moment| ("tried_in_s", self.seconds(moment)));
        Check { numbers: numbers.into_iter().collect(), ..Check::new(Reason::NotBefore, detail) }
    }

    fn no_worker_ever(&self, waiting: &Waiting) -> Check {
        let known = self.fleet.workers.iter().filter(|(_, seated)| !seated.is_gone).count();
        let detail = format!(
            "none of {} known can ever run {}; add a worker that can, or change what it needs",
            plural(known, "worker"),
            self.asked_for(waiting)
        );
        let numbers = [("workers_known", whole(known))].into();
        Check { numbers, ..Check::new(Reason::NoWorkerEver, detail) }
    }

    fn no_resource_ever(&self, waiting: &Waiting) -> Check {
        let tenant = &self.tenants[waiting.tenant].tenant.id;
        let detail = match waiting.extra().ask {
            Some(AskIx::Named(name)) => {
                let owner = self.resources.get(&name).and_then(|own| own.tenant.as_ref());
                let owner = owner.map_or_else(String::new, |owner| format!(" of tenant {owner}"));
                let name = self.names.name(name);
                format!(
                    "{name} is an exclusive lock{owner}: a job of tenant {tenant} never gets it; \
                     change the tenant of the lock, or submit the job without it"
                )
            }
            Some(AskIx::Any) | None => format!(
                "tenant {tenant} has no workspace and no exclusive lock of its own, so none will \
                 ever be free; give it `workspaces`, or a lock"
            ),
        };
        Check { tenants: vec![tenant.clone()], ..Check::new(Reason::NoResourceEver, detail) }
    }

    fn away(&self, reason: Reason, audience: &Audience) -> Check {
        let n_ever = audience.ever.len();
        let detail = if reason == Reason::NoWorkerNow {
            format!(
                "{} could run it, {} of them draining{}; it starts when one comes back",
                plural(n_ever, "worker"),
                audience.n_draining,
                self.named(&audience.ever)
            )
        } else {
            format!(
                "{} could run it, but {} not healthy{}; it starts when one is",
                plural(n_ever, "worker"),
                if n_ever == 1 { "is" } else { "are" },
                self.named(&audience.ever)
            )
        };
        let numbers = [("workers", whole(n_ever)), ("draining", whole(audience.n_draining))].into();
        let workers = audience.ever.iter().take(NAMED_MAX);
        let workers = workers.map(|ix| self.fleet.id(*ix).clone()).collect();
        Check { numbers, workers, ..Check::new(reason, detail) }
    }

    /// ` (w1, w2 and 3 more)`.
    fn named(&self, workers: &[WorkerIx]) -> String {
        let names: Vec<String> =
            workers.iter().take(NAMED_MAX).map(|ix| self.fleet.id(*ix).to_string()).collect();
        format!(" ({})", listed(&names, workers.len()))
    }

    fn tenant_at_jobs_max(&self, waiting: &Waiting) -> Check {
        let sharer = &self.tenants[waiting.tenant];
        let max = sharer.tenant.jobs_max.unwrap_or(0);
        let detail = format!(
            "tenant {} runs {} of at most {max}; {}",
            sharer.tenant.id,
            plural(sharer.n_running, "job"),
            if max == 0 { "raise its maximum" } else { "it starts when one ends" }
        );
        let numbers = [("running", whole(sharer.n_running)), ("max", whole(max))].into();
        let tenants = vec![sharer.tenant.id.clone()];
        Check { numbers, tenants, ..Check::new(Reason::TenantAtJobsMax, detail) }
    }

    fn budget_spent(&self, waiting: &Waiting) -> Check {
        let sharer = &self.tenants[waiting.tenant];
        let left = sharer.budget_left().unwrap_or(Fixed::ZERO);
        let detail = format!(
            "tenant {} has {left} of its budget left and the job costs {}; raise it, or wait until \
             old usage leaves the window",
            sharer.tenant.id, waiting.cost
        );
        let numbers = [("left", left), ("cost", waiting.cost)].into();
        let tenants = vec![sharer.tenant.id.clone()];
        Check { numbers, tenants, ..Check::new(Reason::BudgetSpent, detail) }
    }

    fn budget_spent_global(&self, waiting: &Waiting) -> Check {
        let left = self.budget_left().unwrap_or(Fixed::ZERO);
        let detail = format!(
            "{left} of the budget of all tenants is left and the job costs {}; raise it, or wait \
             until old usage leaves the window",
            waiting.cost
        );
        let numbers = [("left", left), ("cost", waiting.cost)].into();
        Check { numbers, ..Check::new(Reason::BudgetSpentGlobal, detail) }
    }

    fn tenant_at_max(&self, waiting: &Waiting) -> Check {
        let sharer = &self.tenants[waiting.tenant];
        let own = self.fleet.catalogue.fit_of(waiting.class).key.pool;
        let pools = own.map_or_else(|| self.fleet.pools.clone(), |own| vec![own]);
        let asked = self.fleet.catalogue.classes[waiting.class].key.slots;
        let (mut used, mut numbers, mut is_too_wide) = (Vec::new(), Vec::new(), true);
        for pool in pools {
            let Some(max) = self.slots_max(waiting.tenant, pool) else { continue };
            let allowed = sharer.quota(pool).1.unwrap_or(max);
            is_too_wide &= asked > allowed;
            let lowered = match allowed - max {
                0 => String::new(),
                slots => format!(" (lowered by {} lately)", plural(slots, "eviction")),
            };
            let slots = sharer.slots(pool);
            used.push(format!("{slots} of {max}{lowered} in pool {}", self.names.name(pool)));
            numbers = vec![("slots", whole(slots)), ("max", whole(max)), ("asked", whole(asked))];
        }
        let cure = if is_too_wide {
            "that is more than its quota, so raise the quota"
        } else {
            "it starts when one of its jobs ends, or its quota is raised"
        };
        let detail = format!(
            "tenant {} uses {} slots and the job asks for {asked}; {cure}",
            sharer.tenant.id,
            used.join(", "),
        );
        // Of several pools, none is the one.
        let numbers = if used.len() == 1 { numbers } else { vec![("asked", whole(asked))] };
        let (numbers, tenants) = (numbers.into_iter().collect(), vec![sharer.tenant.id.clone()]);
        Check { numbers, tenants, ..Check::new(Reason::TenantAtMax, detail) }
    }

    fn type_at_max(&self, waiting: &Waiting) -> Check {
        let plain = |detail: String| Check::new(Reason::TypeAtMax, detail);
        let kind = self.fleet.catalogue.fit_of(waiting.class).key.kind;
        let known = kind.and_then(|kind| self.kinds.get(kind));
        let Some(known) = known else { return plain(String::new()) };
        let jobs_max = known.settings.jobs_max;
        let max = jobs_max.map_or_else(String::new, |max| format!(" of at most {max}"));
        let per_worker = known.settings.worker_max.map_or_else(
            || ", as many on each worker as it declared".to_owned(),
            |max| format!(", {max} at most on one worker"),
        );
        let per_worker = if self.kind_is_full(kind) { String::new() } else { per_worker };
        let detail = format!(
            "{} of type {} run{max}{per_worker}; {}",
            plural(known.n_running, "job"),
            known.settings.name,
            if jobs_max == Some(0) { "raise its maximum" } else { "it starts when one ends" }
        );
        let maxima = [("max", jobs_max), ("worker_max", known.settings.worker_max)];
        let maxima = maxima.into_iter().filter_map(|(name, max)| Some((name, whole(max?))));
        let numbers = maxima.chain([("running", whole(known.n_running))]).collect();
        Check { numbers, ..plain(detail) }
    }

    fn resource_held(&self, waiting: &Waiting) -> Check {
        let sharer = &self.tenants[waiting.tenant];
        let plain = |detail: String| Check::new(Reason::ResourceHeld, detail);
        match waiting.extra().ask {
            Some(AskIx::Named(name)) => {
                let holder = self.resources.get(&name).and_then(|own| own.holder.clone());
                let by = holder.as_ref().map_or_else(String::new, |job| format!(" by job {job}"));
                let name = self.names.name(name);
                let detail = format!("{name} is held{by}; it starts when it is free");
                Check { jobs: holder.into_iter().collect(), ..plain(detail) }
            }
            Some(AskIx::Any) | None => {
                let max = sharer.tenant.workspaces.unwrap_or(0);
                let used = sharer.workspaces_used;
                let detail = format!(
                    "no workspace of tenant {} is free ({used} of {max} in use); it starts when \
                     one is",
                    sharer.tenant.id
                );
                let numbers = [("in_use", whole(used)), ("total", whole(max))].into();
                Check { numbers, tenants: vec![sharer.tenant.id.clone()], ..plain(detail) }
            }
        }
    }

    fn preempting(&self, waiting: &Waiting) -> Check {
        let victims = self.stopping.get(&waiting.id).into_iter().flatten();
        let mut jobs: Vec<JobId> = victims.map(|ix| self.attempts[*ix].job.clone()).collect();
        jobs.sort();
        let said: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let detail =
            format!("told to stop for it: job {}; it starts when all have", said.join(", job "));
        Check { jobs, ..Check::new(Reason::Preempting, detail) }
    }

    fn reserved(&self, audience: &Audience) -> Check {
        let is_here = |own: &&Reservation| audience.with_room.contains(&own.worker);
        let Some(kept) = self.reservations.iter().find(is_here) else {
            let detail = "the free slots are kept for a wider job".to_owned();
            return Check::new(Reason::Reserved, detail);
        };
        let (job, worker) = (kept.job.clone(), self.fleet.id(kept.worker).clone());
        let detail = format!(
            "the free slots are kept for wider job {job}, expected to start in {}",
            self.until(kept.until)
        );
        let numbers = [("starts_in_s", self.seconds(kept.until))].into();
        let check = Check::new(Reason::Reserved, detail);
        Check { numbers, jobs: vec![job], workers: vec![worker], ..check }
    }

    /// What a job asks for, in words.
    pub(crate) fn asked_for(&self, waiting: &Waiting) -> String {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let amounts = class.amounts.iter();
        let amounts = amounts.map(|(name, amount)| format!("{amount} {}", self.names.name(*name)));
        let parts = [plural(class.slots, "slot")].into_iter();
        parts.chain(self.required_by(waiting)).chain(amounts).collect::<Vec<_>>().join(", ")
    }

    /// What a job asks of a worker, whatever room that has.
    pub(crate) fn required_by(&self, waiting: &Waiting) -> Vec<String> {
        let fit = &self.fleet.catalogue.fit_of(waiting.class).key;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(fit.kind.map(|kind| format!("type {}", self.names.name(kind))));
        parts.extend(fit.pool.map(|pool| format!("pool {}", self.names.name(pool))));
        parts.extend(fit.needs.iter().map(|(key, values)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{key}={}", values.join("|"))
        }));
        parts
    }

    /// How long it is until `moment`.
    pub(crate) fn until(&self, moment: Timestamp) -> String {
        format!("{} s", self.seconds(moment))
    }

    fn seconds(&self, moment: Timestamp) -> Fixed {
        let Millis(left) = moment.since(self.now);
        Fixed::thousandths(left)
    }
}

fn vetoed(waiting: &Waiting) -> Check {
    let round = waiting.extra().rescore_count;
    let detail = format!(
        "its inputs are not known (round {round} of {ROUNDS_MAX}); it starts when a worker \
         reports them"
    );
    let numbers = [("round", whole(round)), ("rounds", whole(ROUNDS_MAX))].into();
    Check { numbers, ..Check::new(Reason::Vetoed, detail) }
}

/// `1 job`, `2 jobs`.
pub(crate) fn plural(count: impl TryInto<u64>, thing: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// `a`, `a and b`, `a, b and c`, or `a, b and 3 more` if there are `n_all`.
pub(crate) fn listed(names: &[String], n_all: usize) -> String {
    let n_more = n_all.saturating_sub(names.len());
    match (names, n_more) {
        ([], _) => plural(n_all, "other"),
        ([one], 0) => one.clone(),
        ([others @ .., last], 0) => format!("{} and {last}", others.join(", ")),
        (_, n_more) => format!("{} and {n_more} more", names.join(", ")),
    }
}

pub(crate) fn whole(count: impl TryInto<i64>) -> Fixed {
    Fixed::whole(count.try_into().unwrap_or(i64::MAX))
}
