//! The document: the fields of a snapshot.
//!
//! One file for each group of fields has their names, their defaults, and their conversion from and
//! to the model. Doc comments are the descriptions in the schema.
//!
//! **Invariant:** a value of one of these types is within its limits. Conditions between values are
//! checked when the document is read.

#[macro_use]
mod record;
mod number;
mod name;
mod list;
mod facts;
mod recent;
mod policy;
mod account;
mod tenant;
mod worker;
mod job;
mod attempt;
mod fleet;
mod cluster;

pub(crate) use attempt::Attempt;
pub(crate) use cluster::Cluster;
pub(crate) use fleet::{Event, Eviction, JobType, Resource};
pub(crate) use job::Job;
pub(crate) use list::{List, Object, Table};
pub(crate) use name::Label;
pub(crate) use number::{AgingPoints, AtLeastOne, Attempts, Count, Factor, Moment, Natural};
pub(crate) use number::{Percentage, Seconds, SignedNumber, Slope, Span};
pub(crate) use policy::{
    Aging, PolicyChoice, PolicyObject, Preemption, PresetName, Sampling, SamplingWeights,
};
pub(crate) use tenant::{Budget, Tenant};
pub(crate) use worker::Worker;

use model::maxima;

record! {
    /// The scheduler state: all input of a decision. Only ids and names are required. `null` means
    /// left out, which is not zero.
    #[schemars(title = "Snapshot")]
    Document {
        /// The time of the decision, in milliseconds since an epoch that you select. 0 if left out.
        now_ms: Option<Moment>,
        /// The mean run time of jobs that ended lately, in seconds. Close to zero if left out.
        usual_s: Option<Seconds>,
        /// The seed of random choices. 0 if left out.
        seed: Option<Natural>,
        /// The policy: the name of a preset, or an object that changes one. `balanced` if left out.
        policy: Option<PolicyChoice>,
        /// Policies of pools, by name, for the jobs of these pools. None if left out.
        pools: Option<Table<Label, PolicyChoice, { maxima::QUOTAS_MAX }>>,
        /// The budget of all tenants together. No limit if left out.
        budget: Option<Object<Budget>>,
        /// The tenants. A list must be complete. If left out, the tenants are those that jobs,
        /// attempts, resources and evictions name.
        tenants: Option<List<Object<Tenant>, { maxima::TENANTS_MAX }>>,
        /// Named resources. Resources that jobs and attempts name need not be listed.
        resources: Option<List<Object<Resource>, { maxima::RESOURCES_MAX }>>,
        /// Job types with settings of their own. Other types need not be listed.
        types: Option<List<Object<JobType>, { maxima::TYPES_MAX }>>,
        /// The workers.
        workers: Option<List<Object<Worker>, { maxima::WORKERS_MAX }>>,
        /// Waiting jobs.
        jobs: Option<List<Object<Job>, { maxima::JOBS_MAX }>>,
        /// Live attempts.
        attempts: Option<List<Object<Attempt>, { maxima::JOBS_MAX }>>,
        /// Recent preemptions.
        evictions: Option<List<Object<Eviction>, { maxima::EVICTIONS_MAX }>>,
        /// The event that starts the decision. A full scheduling cycle if left out.
        event: Option<Object<Event>>,
        /// Averages over the fleet.
        cluster: Option<Object<Cluster>>,
    }
}

/// The given value, or the default.
pub(crate) fn or<T: Into<U>, U>(given: Option<T>, default: U) -> U {
    given.map_or(default, Into::into)
}

/// The value to write, unless it is the default.
pub(crate) fn unless<T: PartialEq>(value: T, default: &T) -> Option<T> {
    (value != *default).then_some(value)
}
