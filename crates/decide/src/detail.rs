//! The evidence for a reason, and what would change it, in words.

use model::{Fixed, JobId, Millis, Reason, Timestamp};

use crate::explain::Audience;
use crate::reserve::Reservation;
use crate::waiting::{AskIx, Waiting};
use crate::world::World;

impl World {
    /// The evidence for `reason`, and what would change it.
    pub(crate) fn detail(&self, reason: Reason, waiting: &Waiting, audience: &Audience) -> String {
        match reason {
            Reason::NotReady => format!(
                "its dependencies are done in {} at the earliest",
                self.until(waiting.standing.ready)
            ),
            Reason::NotBefore => self.delay_detail(waiting),
            Reason::NoWorkerEver => format!(
                "none of {} known can ever run {}; add a worker that can, or change what it needs",
                plural(self.fleet.workers.len(), "worker"),
                self.asked_for(waiting)
            ),
            Reason::NoWorkerNow => format!(
                "{} could run it, {} of them draining; it starts when one comes back",
                plural(audience.n_ever, "worker"),
                audience.n_draining
            ),
            Reason::WorkersFull => format!(
                "{} could run it, but {} no room for {}; it starts when a slot is free",
                plural(audience.n_serving, "worker"),
                if audience.n_serving == 1 { "has" } else { "have" },
                self.asked_for(waiting)
            ),
            Reason::WorkerUnhealthy => format!(
                "{} could run it, but {} not healthy; it starts when one is",
                plural(audience.n_ever, "worker"),
                if audience.n_ever == 1 { "is" } else { "are" }
            ),
            Reason::Preempting => self.preempting_detail(waiting),
            Reason::Guarded => format!(
                "{} with room, kept for rarer work that is expected; it may take one in {}",
                plural(audience.with_room.len(), "worker"),
                self.guard_left(waiting)
            ),
            Reason::Reserved => self.reserved_detail(audience),
            Reason::Vetoed => format!(
                "its inputs are not known (round {} of 4); it starts when a worker reports them",
                waiting.extra().rescore_count
            ),
            Reason::BelowZero => format!(
                "its points are below zero on each of {} with room; less load or more memory helps",
                plural(audience.with_room.len(), "worker")
            ),
            Reason::Outranked => format!(
                "other jobs went first and no more was asked for; {} with room",
                plural(audience.with_room.len(), "worker")
            ),
            Reason::TenantPaused => {
                format!("tenant {} is paused; resume it", self.tenants[waiting.tenant].tenant.id)
            }
            Reason::TenantAtMax => self.quota_detail(waiting),
            Reason::TenantAtJobsMax => self.jobs_max_detail(waiting),
            Reason::TypeAtMax => self.type_detail(waiting),
            Reason::BudgetSpent => self.budget_detail(waiting),
            Reason::BudgetSpentGlobal => format!(
                "{} of the budget of all tenants is left and the job costs {}; raise it, or wait \
                 until old usage leaves the window",
                self.budget_left().unwrap_or(Fixed::ZERO),
                waiting.cost
            ),
            Reason::ResourceHeld => self.resource_detail(waiting),
        }
    }

    fn jobs_max_detail(&self, waiting: &Waiting) -> String {
        let sharer = &self.tenants[waiting.tenant];
        format!(
            "tenant {} runs {} of at most {}; it starts when one ends",
            sharer.tenant.id,
            plural(sharer.n_running, "job"),
            sharer.tenant.jobs_max.unwrap_or(0)
        )
    }

    fn budget_detail(&self, waiting: &Waiting) -> String {
        let sharer = &self.tenants[waiting.tenant];
        format!(
            "tenant {} has {} of its budget left and the job costs {}; raise it, or wait until old \
             usage leaves the window",
            sharer.tenant.id,
            sharer.budget_left().unwrap_or(Fixed::ZERO),
            waiting.cost
        )
    }

    fn delay_detail(&self, waiting: &Waiting) -> String {
        match waiting.extra().not_before {
            Some(moment) if moment > self.now => {
                format!("its submitter asked to wait {} more", self.until(moment))
            }
            Some(_) | None if self.is_backing_off(waiting) => {
                let until = waiting.extra().backoff_until.unwrap_or(self.now);
                format!("it found no worker before and is tried again in {}", self.until(until))
            }
            Some(_) | None => {
                "a worker that just finished takes only new jobs and those that back off; it is \
                 next in a full round"
                    .to_owned()
            }
        }
    }

    fn quota_detail(&self, waiting: &Waiting) -> String {
        let sharer = &self.tenants[waiting.tenant];
        let own = self.fleet.catalogue.fit_of(waiting.class).key.pool;
        let pools = own.map_or_else(|| self.fleet.pools.clone(), |own| vec![own]);
        let used = pools.iter().filter_map(|pool| {
            let max = self.slots_max(waiting.tenant, *pool)?;
            let lowered = sharer.quota(*pool).1.unwrap_or(max) - max;
            let lowered = match lowered {
                0 => String::new(),
                slots => format!(" (lowered by {} lately)", plural(slots, "eviction")),
            };
            let (used, pool) = (sharer.slots(*pool), self.names.name(*pool));
            Some(format!("{used} of {max}{lowered} in pool {pool}"))
        });
        let used: Vec<String> = used.collect();
        format!(
            "tenant {} uses {} slots and the job asks for {}; it starts when one of its jobs ends, \
             or its quota is raised",
            sharer.tenant.id,
            used.join(", "),
            self.fleet.catalogue.classes[waiting.class].key.slots
        )
    }

    fn type_detail(&self, waiting: &Waiting) -> String {
        let kind = self.fleet.catalogue.fit_of(waiting.class).key.kind;
        let known = kind.and_then(|kind| self.kinds.get(kind));
        let Some(known) = known else { return String::new() };
        let max =
            known.settings.jobs_max.map_or_else(String::new, |max| format!(" of at most {max}"));
        let per_worker = known.settings.worker_max.map_or_else(
            || ", as many on each worker as it declared".to_owned(),
            |max| format!(", {max} at most on one worker"),
        );
        let per_worker = if self.kind_is_full(kind) { String::new() } else { per_worker };
        format!(
            "{} of type {} run{max}{per_worker}; it starts when one ends",
            plural(known.n_running, "job"),
            known.settings.name
        )
    }

    fn resource_detail(&self, waiting: &Waiting) -> String {
        let tenant = &self.tenants[waiting.tenant].tenant.id;
        match waiting.extra().ask {
            Some(AskIx::Named(name)) => {
                let holder = self.resources.get(&name).and_then(|own| own.holder.as_ref());
                let holder = holder.map_or_else(|| "nobody".to_owned(), |job| format!("job {job}"));
                format!("{} is held by {holder}; it starts when it is free", self.names.name(name))
            }
            Some(AskIx::Any) | None => {
                format!("no workspace of tenant {tenant} is free; it starts when one is")
            }
        }
    }

    fn preempting_detail(&self, waiting: &Waiting) -> String {
        let victims = self.stopping.get(&waiting.id).into_iter().flatten();
        let mut victims: Vec<&JobId> = victims.map(|ix| &self.attempts[*ix].job).collect();
        victims.sort();
        let victims: Vec<String> = victims.into_iter().map(ToString::to_string).collect();
        format!("told to stop for it: job {}; it starts when all have", victims.join(", job "))
    }

    fn reserved_detail(&self, audience: &Audience) -> String {
        let is_here = |own: &&Reservation| audience.with_room.contains(&own.worker);
        let kept = self.reservations.iter().find(is_here);
        let kept = kept.map(|own| (own.job.to_string(), self.until(own.until)));
        let (job, until) = kept.unwrap_or_default();
        format!("the free slots are kept for wider job {job}, expected to start in {until}")
    }

    fn guard_left(&self, waiting: &Waiting) -> String {
        let patience = self.patience.unwrap_or_default();
        self.until(waiting.standing.ready + patience + patience)
    }

    /// What a job asks for, in words.
    fn asked_for(&self, waiting: &Waiting) -> String {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let fit = &self.fleet.catalogue.fits[class.fit].key;
        let mut parts = vec![plural(class.slots, "slot")];
        parts.extend(fit.kind.map(|kind| format!("type {}", self.names.name(kind))));
        parts.extend(fit.pool.map(|pool| format!("pool {}", self.names.name(pool))));
        parts.extend(fit.needs.iter().map(|(key, values)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{key}={}", values.join("|"))
        }));
        let amounts = class.amounts.iter();
        parts.extend(amounts.map(|(name, amount)| format!("{amount} {}", self.names.name(*name))));
        parts.join(", ")
    }

    /// How long it is until `moment`.
    fn until(&self, moment: Timestamp) -> String {
        let Millis(left) = moment.since(self.now);
        format!("{} s", Fixed::thousandths(left))
    }
}

fn plural(count: impl TryInto<u64>, thing: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}
