//! Waiting jobs.

use std::collections::BTreeMap;

use model::{Ask, Fixed, JobId, Millis, Name, TenantId, Timestamp, WorkerId, maxima};

use super::facts::{AmountsByName, NamesByKey, TraitNames};
use super::facts::{read_amounts, read_needs, read_traits};
use super::facts::{write_amounts, write_names, write_traits};
use super::list::{Object, Table};
use super::name::{Id, Label};
use super::number::{Count, Moment, Number, Priority, Quantity, Rate, Seconds, Slots};
use super::tenant::{read_tenant, write_tenant};
use super::{or, unless};
use crate::error::Problem;

/// The inputs that each worker lacks, if it has reported.
type InputsByWorker = Table<Id<WorkerId>, Object<Inputs>, { maxima::WORKERS_MAX }>;

/// A given history has at least one run.
const SAMPLES_DEFAULT: u32 = 1;

record! {
    /// One submitted unit of work that waits to be placed.
    Job {
        /// Its id. A job waits here or runs in `attempts`, not both.
        id: Id<JobId>,
        /// Its tenant. `default` if left out.
        tenant: Option<Id<TenantId>>,
        /// Its type. Runs on workers of any type if left out.
        #[serde(rename = "type")]
        kind: Option<Label>,
        /// Its pool. The pool of its type, or every pool with a fitting worker, if left out.
        pool: Option<Label>,
        /// Its requirements: for each key, the worker must have one of these values.
        needs: Option<NamesByKey>,
        /// Slots that it needs, all on one worker. 1 if left out.
        slots: Option<Slots>,
        /// Amounts that it needs, all on one worker, such as `ram_mb`.
        amounts: Option<AmountsByName>,
        /// The submitter's priority: higher starts sooner. 0 if left out.
        priority: Option<Priority>,
        /// Whether a person waits for the result. False if left out.
        on_demand: Option<bool>,
        /// When it was submitted. `now_ms` if left out.
        created_ms: Option<Moment>,
        /// When it could first have run. `created_ms` if left out.
        ready_ms: Option<Moment>,
        /// The submitter's own delay.
        not_before_ms: Option<Moment>,
        /// The scheduler's delay after a failed placement.
        backoff_until_ms: Option<Moment>,
        /// The number of preemptions. 0 if left out.
        evictions: Option<Count>,
        /// Its expected run time.
        estimate_s: Option<Seconds>,
        /// The longest run time, after which it is stopped.
        limit_s: Option<Seconds>,
        /// The worker of its last attempt, which may be gone.
        last_worker: Option<Id<WorkerId>>,
        /// Facts that rules read: `evaluation`, `cached`, `light`, `network`, `prefer-local`.
        traits: Option<TraitNames>,
        /// The locality label that it prefers.
        hint: Option<Label>,
        /// The exclusive lock that it needs: a resource by name, or `*` for any free one of its
        /// tenant.
        resource: Option<Label>,
        /// Its expected cost. 1 if left out.
        cost: Option<Number>,
        /// The number of its dependents.
        dependents: Option<Count>,
        /// The inputs that each worker lacks. A worker that is left out has not reported.
        inputs: Option<InputsByWorker>,
        /// Scheduling cycles in which its inputs were unknown. 0 if left out.
        rescore_count: Option<Count>,
        /// The usage of earlier runs with its history key.
        history: Option<Object<History>>,
        /// The worker on which victims stopped for it. It starts there next, if limits allow.
        promised: Option<Id<WorkerId>>,
    }
}

record! {
    /// The inputs of a job that one worker lacks. Left out means unknown.
    Inputs {
        /// Paths that the worker would have to fetch.
        missing_paths: Option<Count>,
        /// Bytes that the worker would have to fetch.
        missing_bytes: Option<Quantity>,
    }
}

record! {
    /// The usage of earlier runs with the same key. Left out means not measured.
    History {
        /// The number of runs. With 0, the rest is ignored. 1 if left out.
        samples: Option<Count>,
        /// 95th percentile of peak memory.
        ram_peak_mb: Option<Quantity>,
        /// Mean CPU time.
        cpu_ms: Option<Quantity>,
        /// Mean bytes read and written.
        disk_bytes: Option<Quantity>,
        /// Mean duration.
        duration_s: Option<Seconds>,
        /// Fraction of runs that ran out of memory.
        oom_rate: Option<Rate>,
    }
}

impl Job {
    pub(crate) fn read(self, now: Timestamp) -> Result<model::Job, Problem> {
        let created = or(self.created_ms, now);
        let default = model::Job::new(self.id.0, read_tenant(self.tenant), created);
        Ok(model::Job {
            kind: self.kind.map(Name::from),
            pool: self.pool.map(Name::from),
            needs: read_needs(self.needs)?,
            slots: or(self.slots, default.slots),
            amounts: read_amounts(self.amounts),
            priority: or(self.priority, default.priority),
            on_demand: or(self.on_demand, default.on_demand),
            ready: or(self.ready_ms, created),
            not_before: self.not_before_ms.map(Timestamp::from),
            backoff_until: self.backoff_until_ms.map(Timestamp::from),
            evictions: or(self.evictions, default.evictions),
            estimate: self.estimate_s.map(Millis::from),
            limit: self.limit_s.map(Millis::from),
            last_worker: self.last_worker.map(WorkerId::from),
            traits: read_traits(self.traits)?,
            hint: self.hint.map(Name::from),
            resource: self.resource.map(Ask::from),
            cost: or(self.cost, default.cost),
            dependents: self.dependents.map(u32::from),
            inputs: read_inputs(self.inputs),
            rescore_count: or(self.rescore_count, default.rescore_count),
            history: self.history.map(|Object(history)| history.read()),
            promised: self.promised.map(WorkerId::from),
            ..default
        })
    }

    pub(crate) fn write(job: &model::Job, now: Timestamp) -> Self {
        let default = model::Job::new(job.id.clone(), job.tenant.clone(), job.created);
        Self {
            id: Id(job.id.clone()),
            tenant: write_tenant(&job.tenant),
            kind: job.kind.clone().map(Label),
            pool: job.pool.clone().map(Label),
            needs: write_names(&job.needs),
            slots: unless(job.slots, &default.slots).map(Slots),
            amounts: write_amounts(&job.amounts),
            priority: unless(job.priority, &default.priority).map(Priority),
            on_demand: unless(job.on_demand, &default.on_demand),
            created_ms: unless(job.created, &now).map(Moment::from),
            ready_ms: unless(job.ready, &job.created).map(Moment::from),
            not_before_ms: job.not_before.map(Moment::from),
            backoff_until_ms: job.backoff_until.map(Moment::from),
            evictions: unless(job.evictions, &default.evictions).map(Count),
            estimate_s: job.estimate.map(Seconds::from),
            limit_s: job.limit.map(Seconds::from),
            last_worker: job.last_worker.clone().map(Id),
            traits: write_traits(job.traits),
            hint: job.hint.clone().map(Label),
            resource: job.resource.as_ref().map(Label::from),
            cost: unless(job.cost, &default.cost).map(Number),
            dependents: job.dependents.map(Count),
            inputs: write_inputs(&job.inputs),
            rescore_count: unless(job.rescore_count, &default.rescore_count).map(Count),
            history: job.history.map(|history| Object(History::write(history))),
            promised: job.promised.clone().map(Id),
        }
    }
}

fn read_inputs(given: Option<InputsByWorker>) -> BTreeMap<WorkerId, model::Inputs> {
    let entries = given.into_iter().flat_map(|table| table.0);
    entries
        .map(|(Id(worker), Object(inputs))| {
            let missing_paths = inputs.missing_paths.map(u32::from);
            let missing_bytes = inputs.missing_bytes.map(u64::from);
            (worker, model::Inputs { missing_paths, missing_bytes })
        })
        .collect()
}

fn write_inputs(inputs: &BTreeMap<WorkerId, model::Inputs>) -> Option<InputsByWorker> {
    let entries = inputs.iter().map(|(worker, inputs)| {
        let missing_paths = inputs.missing_paths.map(Count);
        let missing_bytes = inputs.missing_bytes.map(Quantity);
        (Id(worker.clone()), Object(Inputs { missing_paths, missing_bytes }))
    });
    (!inputs.is_empty()).then(|| Table(entries.collect()))
}

impl History {
    fn read(self) -> model::History {
        model::History {
            samples: or(self.samples, SAMPLES_DEFAULT),
            ram_peak_mb: self.ram_peak_mb.map(u64::from),
            cpu_ms: self.cpu_ms.map(u64::from),
            disk_bytes: self.disk_bytes.map(u64::from),
            duration: self.duration_s.map(Millis::from),
            oom_rate: self.oom_rate.map(Fixed::from),
        }
    }

    fn write(history: model::History) -> Self {
        Self {
            samples: Some(Count(history.samples)),
            ram_peak_mb: history.ram_peak_mb.map(Quantity),
            cpu_ms: history.cpu_ms.map(Quantity),
            disk_bytes: history.disk_bytes.map(Quantity),
            duration_s: history.duration.map(Seconds::from),
            oom_rate: history.oom_rate.map(Rate),
        }
    }
}
