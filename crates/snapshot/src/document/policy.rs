//! Policies: the name of a preset, or a preset with changes.

use std::borrow::Cow;
use std::fmt;

use model::{Preset, maxima};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::list::{Object, Table};
use super::name::Label;
use super::number::{
    AgingPoints, AtLeastOne, Attempts, Count, Factor, Percentage, SignedNumber, Slope, Span,
};

/// A policy in its JSON form.
#[derive(Debug)]
pub(crate) enum PolicyChoice {
    /// The preset with this name.
    Named(PresetName),
    /// A preset with changes.
    Changed(Box<PolicyObject>),
}

/// The name of a preset. It is checked when the policy is read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct PresetName(pub(crate) String);

record! {
    /// A preset with changes. A setting that the preset does not use is rejected.
    #[derive(Default)]
    #[schemars(rename = "Policy")]
    PolicyObject {
        /// The preset to start from. `balanced` if left out.
        preset: Option<PresetName>,
        /// Scores a few random workers instead of taking the first that matches (`priority-age`,
        /// `cohort`).
        sampling: Option<Object<Sampling>>,
        /// The percentage of choices that go by priority. The others go by age alone
        /// (`priority-age`, `cohort`).
        priority_percentage: Option<Percentage>,
        /// The delay of a job that found no worker (`priority-age`, `cohort`).
        failure_backoff_ms: Option<Span>,
        /// Whether a worker that finished jobs gets jobs for all its slots, or only as many as it
        /// finished.
        proactive_fetch_to_capacity: Option<bool>,
        /// Whether a worker that finished a job skips jobs that never had a backoff.
        proactive_fetch_literal: Option<bool>,
        /// Whether a scheduling cycle counts only the cost of attempts that ended before it. Then
        /// all slots of a cycle can go to the tenant that is furthest behind (`fair-share`). False
        /// if left out.
        literal: Option<bool>,
        /// Preemption for tenants below their minimum.
        preemption: Option<Object<Preemption>>,
        /// The time for which an eviction lowers its tenant's maximum by one slot (`cohort`).
        eviction_cooldown_ms: Option<Span>,
        /// The numbers of an ageing score (`aging`).
        aging: Option<Object<Aging>>,
        /// How far a tenant may be behind its share before its jobs go first, in time of its share
        /// (`balanced`). 60000 if left out.
        fair_slack_ms: Option<Span>,
        /// The part of a tenant's slots that its interactive jobs may take before its other jobs,
        /// from 0 to 1 (`balanced`). 0.5 if left out.
        interactive_share: Option<Factor>,
        /// Whether tenants share slot time (`balanced`). True if left out.
        share: Option<bool>,
        /// Whether preferences that do not shorten the mean wait are on: shares, age, priority,
        /// interactive jobs and rare work (`balanced`). True if left out. An explicit setting of
        /// one of these still counts.
        fair: Option<bool>,
        /// Weights of rules by name. 0 disables a rule (`simple`, `resource-aware`, `aging`,
        /// `balanced`).
        rules: Option<Table<Label, Factor, { maxima::KEYS_MAX }>>,
        /// Whether slots are reserved for rare work that is expected (`balanced`). True if left
        /// out.
        guard: Option<bool>,
        /// Whether slots are kept for a multi-slot job until all of them are free (`balanced`).
        reserve: Option<bool>,
        /// The longest wait for an attempt without a predicted run time. After that, no slot beside
        /// the attempt is kept (`balanced`). 3600000 if left out.
        reserve_wait_max_ms: Option<Span>,
    }
}

record! {
    /// Scores a few random workers.
    Sampling {
        /// The number of workers in a sample.
        sample_size: AtLeastOne,
        /// The number of samples before any matching worker is taken. 1 if left out.
        max_attempts: Option<Attempts>,
        /// The points.
        weights: Option<Object<SamplingWeights>>,
    }
}

record! {
    /// Points of a sampled worker.
    #[derive(Default)]
    SamplingWeights {
        /// For each step of rank. -10 if left out.
        rank: Option<SignedNumber>,
        /// For the job's locality label. 5 if left out.
        hint: Option<SignedNumber>,
        /// For each free slot. 1 if left out.
        free: Option<SignedNumber>,
    }
}

record! {
    /// Preemption for tenants below their minimum.
    Preemption {
        /// Whether preemption is enabled. False if left out.
        enabled: Option<bool>,
        /// The time for which a job must have been ready. 20000 if left out.
        delay_ms: Option<Span>,
        /// The time for which a victim must have run. 0 if left out.
        min_run_ms: Option<Span>,
        /// The limit of preemptions of one job. 3 if left out.
        evictions_max: Option<Count>,
    }
}

record! {
    /// The numbers of an ageing score. Those of the preset if left out.
    Aging {
        /// Points for each step of priority.
        priority: Option<AgingPoints>,
        /// Points for each second of age.
        age: Option<Slope>,
        /// Points, divided by the number of free slots that could run the job.
        rarity: Option<AgingPoints>,
        /// Points for an interactive job.
        on_demand: Option<AgingPoints>,
        /// Further points for each second of its age, up to `on_demand_age_max_ms`.
        on_demand_age: Option<Slope>,
        /// The age at which `on_demand_age` stops adding.
        on_demand_age_max_ms: Option<Span>,
        /// The part of its predicted run time that is subtracted from a job's age.
        length: Option<Factor>,
    }
}

impl<'de> Deserialize<'de> for PolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = PolicyChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a preset or an object")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<PolicyChoice, E> {
        Ok(PolicyChoice::Named(PresetName(name.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<PolicyChoice, A::Error> {
        let object = PolicyObject::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(PolicyChoice::Changed(Box::new(object)))
    }
}

impl Serialize for PolicyChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => name.serialize(serializer),
            Self::Changed(object) => object.serialize(serializer),
        }
    }
}

impl JsonSchema for PresetName {
    fn schema_name() -> Cow<'static, str> {
        "Preset".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Preset::ALL.map(Preset::name) })
    }
}

impl JsonSchema for PolicyChoice {
    fn schema_name() -> Cow<'static, str> {
        "PolicyChoice".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let preset = generator.subschema_for::<PresetName>();
        let object = generator.subschema_for::<PolicyObject>();
        json_schema!({ "anyOf": [preset, object] })
    }
}
