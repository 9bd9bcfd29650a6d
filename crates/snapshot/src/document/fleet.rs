//! The state of the fleet: resources, types, evictions, events.

use model::worker::POOL_DEFAULT;
use model::{JobId, Name, TenantId, Timestamp, WorkerId};

use super::list::Object;
use super::name::{ANY, Id, Label};
use super::number::{Count, Moment, Natural};
use super::recent::Recent;
use super::tenant::{read_tenant, write_tenant};
use super::{or, unless};
use crate::error::Problem;

/// The completed jobs of an event that does not set them.
const COMPLETED_DEFAULT: u32 = 1;

record! {
    /// A named exclusive lock: one job at a time may hold it.
    Resource {
        /// Its name. `*` is reserved, and stands for any.
        name: Label,
        /// Its tenant. Every tenant may use it if left out.
        tenant: Option<Id<TenantId>>,
        /// The job that holds it. If left out, it is free unless an attempt holds it.
        holder: Option<Id<JobId>>,
    }
}

record! {
    /// Settings of a job type.
    JobType {
        /// Its name.
        name: Label,
        /// The pool of its jobs that name none. Every pool with a fitting worker if left out.
        pool: Option<Label>,
        /// The limit of live attempts. No limit if left out.
        jobs_max: Option<Count>,
        /// The limit of live attempts on one worker. No limit if left out.
        worker_max: Option<Count>,
        /// The number of broken ties between workers. 0 if left out.
        rotation: Option<Natural>,
        /// When a job of it last became ready, in milliseconds.
        seen_ms: Option<Moment>,
        /// The number of its jobs that became ready lately. The jobs of this snapshot if left out.
        recent: Option<Object<Recent>>,
    }
}

record! {
    /// A job of a tenant was preempted.
    Eviction {
        /// The tenant of the job. `default` if left out.
        tenant: Option<Id<TenantId>>,
        /// The pool of its worker. `default` if left out.
        pool: Option<Label>,
        /// The time. `now_ms` if left out.
        at_ms: Option<Moment>,
    }
}

record! {
    /// The event that starts the decision.
    Event {
        /// A worker finished jobs and asks for more.
        freed: Option<Object<Freed>>,
    }
}

record! {
    /// A worker finished jobs and asks for more.
    Freed {
        /// The asking worker.
        worker: Id<WorkerId>,
        /// The number of jobs that it just completed. 1 if left out.
        completed: Option<Count>,
    }
}

impl Resource {
    pub(crate) fn read(self) -> Result<model::Resource, Problem> {
        let Label(name) = self.name;
        if name == Name::new(ANY) {
            let problem = Problem::new(format!("is `{ANY}`, which stands for any resource"));
            return Err(problem.with_hint("give it a name of its own").at("name"));
        }
        let (tenant, holder) = (self.tenant.map(TenantId::from), self.holder.map(JobId::from));
        Ok(model::Resource { name, tenant, holder })
    }

    pub(crate) fn write(resource: &model::Resource) -> Self {
        Self {
            name: Label(resource.name.clone()),
            tenant: resource.tenant.clone().map(Id),
            holder: resource.holder.clone().map(Id),
        }
    }
}

impl JobType {
    #[expect(clippy::unnecessary_wraps, reason = "read as all others that are listed")]
    pub(crate) fn read(self) -> Result<model::JobType, Problem> {
        let default = model::JobType::new(self.name.0);
        Ok(model::JobType {
            pool: self.pool.map(Name::from),
            jobs_max: self.jobs_max.map(u32::from),
            worker_max: self.worker_max.map(u32::from),
            rotation: or(self.rotation, default.rotation),
            seen: self.seen_ms.map(Timestamp::from),
            recent: self.recent.map(|Object(recent)| recent.read()),
            ..default
        })
    }

    pub(crate) fn write(kind: &model::JobType) -> Self {
        let default = model::JobType::new(kind.name.clone());
        Self {
            name: Label(kind.name.clone()),
            pool: kind.pool.clone().map(Label),
            jobs_max: kind.jobs_max.map(Count),
            worker_max: kind.worker_max.map(Count),
            rotation: unless(kind.rotation, &default.rotation).map(Natural),
            seen_ms: kind.seen.map(Moment::from),
            recent: kind.recent.map(|recent| Object(Recent::write(recent))),
        }
    }
}

impl Eviction {
    #[expect(clippy::unnecessary_wraps, reason = "read as all others that are listed")]
    pub(crate) fn read(self, now: Timestamp) -> Result<model::Eviction, Problem> {
        let pool = self.pool.map_or_else(|| Name::new(POOL_DEFAULT), Name::from);
        Ok(model::Eviction { at: or(self.at_ms, now), tenant: read_tenant(self.tenant), pool })
    }

    pub(crate) fn write(eviction: &model::Eviction, now: Timestamp) -> Self {
        Self {
            tenant: write_tenant(&eviction.tenant),
            pool: unless(eviction.pool.clone(), &Name::new(POOL_DEFAULT)).map(Label),
            at_ms: unless(eviction.at, &now).map(Moment::from),
        }
    }
}

impl Event {
    pub(crate) fn read(self) -> Option<model::Freed> {
        self.freed.map(|Object(freed)| model::Freed {
            worker: freed.worker.into(),
            completed: or(freed.completed, COMPLETED_DEFAULT),
        })
    }

    pub(crate) fn write(freed: &model::Freed) -> Self {
        let completed = unless(freed.completed, &COMPLETED_DEFAULT).map(Count);
        Self { freed: Some(Object(Freed { worker: Id(freed.worker.clone()), completed })) }
    }
}
