//! The document: what may be written in a snapshot, field by field.
//!
//! One file for each group of fields, with what each field is called, what it means to leave it
//! out, and its way into the model and back. Doc comments are the descriptions in the schema.
//!
//! **Invariant:** a value that has one of these types is within its limits. What one value says
//! about another is checked when the document is read.

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
    /// A world written down: everything a decision may depend on. Everything but ids and names
    /// may be left out; `null` is the same as left out. Left out is not zero.
    #[schemars(title = "Snapshot")]
    Document {
        /// The moment of the decision, in milliseconds since whatever you count from. 0 if left
        /// out.
        now_ms: Option<Moment>,
        /// How long jobs ran that ended lately, as a mean. Next to nothing if left out.
        usual_s: Option<Seconds>,
        /// What draws come from. 0 if left out.
        seed: Option<Natural>,
        /// How to decide: the name of a preset, or an object that changes one. `balanced` if left
        /// out.
        policy: Option<PolicyChoice>,
        /// Policies of pools, by name: they decide on jobs of these pools. None if left out.
        pools: Option<Table<Label, PolicyChoice, { maxima::QUOTAS_MAX }>>,
        /// What all tenants together may use. No limit if left out.
        budget: Option<Object<Budget>>,
        /// Who shares the fleet. A list that is given is complete; if left out, it is those that
        /// jobs, attempts, resources and evictions name.
        tenants: Option<List<Object<Tenant>, { maxima::TENANTS_MAX }>>,
        /// What can be held. Resources that jobs and attempts name need not be listed.
        resources: Option<List<Object<Resource>, { maxima::RESOURCES_MAX }>>,
        /// Job types with settings of their own. Other types need not be listed.
        types: Option<List<Object<JobType>, { maxima::TYPES_MAX }>>,
        /// The fleet.
        workers: Option<List<Object<Worker>, { maxima::WORKERS_MAX }>>,
        /// What waits.
        jobs: Option<List<Object<Job>, { maxima::JOBS_MAX }>>,
        /// What runs.
        attempts: Option<List<Object<Attempt>, { maxima::JOBS_MAX }>>,
        /// Who was preempted lately.
        evictions: Option<List<Object<Eviction>, { maxima::EVICTIONS_MAX }>>,
        /// What just happened. A full round if left out.
        event: Option<Object<Event>>,
        /// Averages over the fleet.
        cluster: Option<Object<Cluster>>,
    }
}

/// What was given, or else the default.
pub(crate) fn or<T: Into<U>, U>(given: Option<T>, default: U) -> U {
    given.map_or(default, Into::into)
}

/// What to write: nothing if it is the default.
pub(crate) fn unless<T: PartialEq>(value: T, default: &T) -> Option<T> {
    (value != *default).then_some(value)
}
