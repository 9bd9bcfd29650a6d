//! Live attempts.

use model::{Ask, Fixed, JobId, Millis, Name, TenantId, Timestamp, WorkerId};

use super::facts::{AmountsByName, NamesByKey, TraitNames};
use super::facts::{read_amounts, read_needs, read_traits};
use super::facts::{write_amounts, write_names, write_traits};
use super::name::{Id, Label};
use super::number::{Count, Moment, Number, Priority, Seconds, Slots};
use super::tenant::{read_tenant, write_tenant};
use super::{or, unless};
use crate::error::Problem;

record! {
    /// A live attempt of a job.
    Attempt {
        /// The job.
        job: Id<JobId>,
        /// Its tenant. `default` if left out.
        tenant: Option<Id<TenantId>>,
        /// Its worker.
        worker: Id<WorkerId>,
        /// The job's type.
        #[serde(rename = "type")]
        kind: Option<Label>,
        /// The job's requirements: for each key, the worker must have one of these values.
        needs: Option<NamesByKey>,
        /// Slots that it uses. 1 if left out.
        slots: Option<Slots>,
        /// Amounts that it uses, such as `ram_mb`.
        amounts: Option<AmountsByName>,
        /// The job's priority. 0 if left out.
        priority: Option<Priority>,
        /// When the job could first have run. `started_ms` if left out.
        ready_ms: Option<Moment>,
        /// When this attempt was placed. `now_ms` if left out.
        started_ms: Option<Moment>,
        /// Its expected cost, which counts in full while it runs. 1 if left out.
        cost: Option<Number>,
        /// Its expected run time.
        estimate_s: Option<Seconds>,
        /// Whether a person waits for it. False if left out.
        on_demand: Option<bool>,
        /// Whether a different tenant competed for its slots when it was placed. False if left out.
        contested: Option<bool>,
        /// The longest run time, after which it is stopped.
        limit_s: Option<Seconds>,
        /// The number of earlier preemptions of the job. 0 if left out.
        evictions: Option<Count>,
        /// The job's traits: `evaluation`, `cached`, `light`, `network`, `prefer-local`.
        traits: Option<TraitNames>,
        /// The lock that it holds: a resource by name, or `*` for one of its tenant's workspaces.
        resource: Option<Label>,
        /// The job for which it was asked to make room. It makes room when it has stopped.
        stopping_for: Option<Id<JobId>>,
    }
}

impl Attempt {
    pub(crate) fn read(self, now: Timestamp) -> Result<model::Attempt, Problem> {
        let started = or(self.started_ms, now);
        Ok(model::Attempt {
            job: self.job.0,
            tenant: read_tenant(self.tenant),
            worker: self.worker.0,
            kind: self.kind.map(Name::from),
            needs: read_needs(self.needs)?,
            slots: or(self.slots, 1),
            amounts: read_amounts(self.amounts),
            priority: or(self.priority, 0),
            ready: or(self.ready_ms, started),
            started,
            cost: or(self.cost, Fixed::ONE),
            estimate: self.estimate_s.map(Millis::from),
            on_demand: or(self.on_demand, false),
            is_contested: or(self.contested, false),
            limit: self.limit_s.map(Millis::from),
            evictions: or(self.evictions, 0),
            traits: read_traits(self.traits)?,
            holds: self.resource.map(Ask::from),
            stopping_for: self.stopping_for.map(JobId::from),
        })
    }

    pub(crate) fn write(attempt: &model::Attempt, now: Timestamp) -> Self {
        Self {
            job: Id(attempt.job.clone()),
            tenant: write_tenant(&attempt.tenant),
            worker: Id(attempt.worker.clone()),
            kind: attempt.kind.clone().map(Label),
            needs: write_names(&attempt.needs),
            slots: unless(attempt.slots, &1).map(Slots),
            amounts: write_amounts(&attempt.amounts),
            priority: unless(attempt.priority, &0).map(Priority),
            ready_ms: unless(attempt.ready, &attempt.started).map(Moment::from),
            started_ms: unless(attempt.started, &now).map(Moment::from),
            cost: unless(attempt.cost, &Fixed::ONE).map(Number),
            estimate_s: attempt.estimate.map(Seconds::from),
            on_demand: unless(attempt.on_demand, &false),
            contested: unless(attempt.is_contested, &false),
            limit_s: attempt.limit.map(Seconds::from),
            evictions: unless(attempt.evictions, &0).map(Count),
            traits: write_traits(attempt.traits),
            resource: attempt.holds.as_ref().map(Label::from),
            stopping_for: attempt.stopping_for.clone().map(Id),
        }
    }
}
