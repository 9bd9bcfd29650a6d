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

/// A policy as it is written.
#[derive(Debug)]
pub(crate) enum PolicyChoice {
    /// As the preset of this name.
    Named(PresetName),
    /// A preset with changes.
    Changed(Box<PolicyObject>),
}

/// What should be the name of a preset; whether it is one is checked when it is read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct PresetName(pub(crate) String);

record! {
    /// A preset with changes. A setting that the preset does not use is refused.
    #[derive(Default)]
    #[schemars(rename = "Policy")]
    PolicyObject {
        /// The preset to start from. `balanced` if left out.
        preset: Option<PresetName>,
        /// Score a few workers drawn by chance instead of taking the first that matches
        /// (`priority-age`, `cohort`).
        sampling: Option<Object<Sampling>>,
        /// Of a hundred choices, how many go by priority; the others go by age alone
        /// (`priority-age`, `cohort`).
        priority_percentage: Option<Percentage>,
        /// How long a job that found no worker is left alone (`priority-age`, `cohort`).
        failure_backoff_ms: Option<Span>,
        /// Whether a worker that finished a job is filled up, instead of given as many as it
        /// finished.
        proactive_fetch_to_capacity: Option<bool>,
        /// Whether a worker that finished a job passes over jobs that never needed a backoff.
        proactive_fetch_literal: Option<bool>,
        /// Whether a round counts only the cost of attempts that ended before it, so all slots of a
        /// round can go to the tenant that is furthest behind (`fair-share`). False if left out.
        literal: Option<bool>,
        /// Taking slots back for tenants below their minimum.
        preemption: Option<Object<Preemption>>,
        /// For so long an eviction lowers its tenant's maximum by one slot (`cohort`).
        eviction_cooldown_ms: Option<Span>,
        /// The magnitudes of an ageing score (`aging`).
        aging: Option<Object<Aging>>,
        /// How far a tenant may fall behind its share before its jobs go first, in time of its
        /// share (`balanced`). 60000 if left out.
        fair_slack_ms: Option<Span>,
        /// The part of a tenant's slots that its interactive jobs may take before its other jobs,
        /// from 0 to 1 (`balanced`). 0.5 if left out.
        interactive_share: Option<Factor>,
        /// Whether slot time is shared among tenants (`balanced`). True if left out.
        share: Option<bool>,
        /// Whether a job goes first for another reason than that the mean wait is shorter so: by
        /// shares, age, priority, being interactive, or being rare (`balanced`). True if left out;
        /// what else is said of these holds all the same.
        fair: Option<bool>,
        /// Weights of rules by name; 0 switches one off (`simple`, `resource-aware`, `aging`,
        /// `balanced`).
        rules: Option<Table<Label, Factor, { maxima::KEYS_MAX }>>,
        /// Whether slots are kept for rare work that is expected (`balanced`). True if left out.
        guard: Option<bool>,
        /// Whether slots are kept for a wide job until all of them are free (`balanced`).
        reserve: Option<bool>,
        /// No slot is kept beside an attempt that has run for so long and nobody predicted it
        /// (`balanced`). 3600000 if left out.
        reserve_wait_max_ms: Option<Span>,
    }
}

record! {
    /// Score a few workers drawn by chance.
    Sampling {
        /// How many are drawn.
        sample_size: AtLeastOne,
        /// How often to draw before taking any that matches. 1 if left out.
        max_attempts: Option<Attempts>,
        /// Points.
        weights: Option<Object<SamplingWeights>>,
    }
}

record! {
    /// Points of a sampled worker.
    #[derive(Default)]
    SamplingWeights {
        /// For each step of rank. -10 if left out.
        rank: Option<SignedNumber>,
        /// For having the job's hint. 5 if left out.
        hint: Option<SignedNumber>,
        /// For each free slot. 1 if left out.
        free: Option<SignedNumber>,
    }
}

record! {
    /// Taking slots back for tenants below their minimum.
    Preemption {
        /// Whether it happens at all. False if left out.
        enabled: Option<bool>,
        /// How long a job must have been ready first. 20000 if left out.
        delay_ms: Option<Span>,
        /// How long a victim must have run first. 0 if left out.
        min_run_ms: Option<Span>,
        /// How often one job may be a victim. 3 if left out.
        evictions_max: Option<Count>,
    }
}

record! {
    /// The magnitudes of an ageing score. The preset's own if left out.
    Aging {
        /// Points for each step of priority.
        priority: Option<AgingPoints>,
        /// Points for each second of age.
        age: Option<Slope>,
        /// Points shared by the free slots that could run the job.
        rarity: Option<AgingPoints>,
        /// Points for a job that a person waits for.
        on_demand: Option<AgingPoints>,
        /// More points for each second that person waits, up to `on_demand_age_max_ms`.
        on_demand_age: Option<Slope>,
        /// The age at which `on_demand_age` stops adding.
        on_demand_age_max_ms: Option<Span>,
        /// A job ages as if it had become ready later by this much of its predicted length.
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
