//! The specification of a job as one JSON document. Tenant, type and payload are columns.
//!
//! Default values are left out: most documents are a few bytes long.

use std::collections::BTreeMap;

use model::{Ask, Fixed, IfFailed, Input, JobId, Millis, Name, Retry, Spec, Timestamp, Trait};
use serde::{Deserialize, Serialize};

/// Writes a spec without its tenant, type and payload as text.
pub(crate) fn write(spec: &Spec) -> serde_json::Result<String> {
    serde_json::to_string(&Document::of(spec))
}

/// Reads a document into `spec`, which has its tenant, type and payload already.
pub(crate) fn read(text: &str, spec: &mut Spec) -> serde_json::Result<()> {
    if text != "{}" {
        serde_json::from_str::<Document>(text)?.fill(spec);
    }
    Ok(())
}

/// Writes the holdings of an attempt as text.
pub(crate) fn write_ask(ask: &Ask) -> serde_json::Result<String> {
    serde_json::to_string(&Asked::of(ask))
}

/// Reads the holdings of an attempt.
pub(crate) fn read_ask(text: &str) -> serde_json::Result<Ask> {
    serde_json::from_str::<Asked>(text).map(Asked::ask)
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    needs: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    amounts: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    priority: i32,
    #[serde(skip_serializing_if = "is_false")]
    on_demand: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traits: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<(String, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Asked>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    run_if_failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_before_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    silence_timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retried>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_thousandths: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    history_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Asked {
    Named(String),
    Any,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retried {
    attempts_max: u32,
    backoff_ms: i64,
    backoff_ms_max: i64,
}

impl Document {
    fn of(spec: &Spec) -> Self {
        Self {
            pool: spec.pool.as_ref().map(Name::to_string),
            needs: spec.needs.iter().map(|(key, any)| (key.to_string(), texts(any))).collect(),
            slots: (spec.slots != 1).then_some(spec.slots),
            amounts: spec.amounts.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
            priority: spec.priority,
            on_demand: spec.on_demand,
            traits: spec.traits.iter().map(|fact| fact.name().to_owned()).collect(),
            hint: spec.hint.as_ref().map(Name::to_string),
            inputs: spec.inputs.iter().map(|one| (one.digest.clone(), one.bytes)).collect(),
            resource: spec.resource.as_ref().map(Asked::of),
            after: spec.after.iter().map(JobId::to_string).collect(),
            run_if_failed: spec.if_failed == IfFailed::Run,
            dedupe_key: spec.dedupe_key.clone(),
            not_before_ms: spec.not_before.map(|moment| moment.0),
            start_before_ms: spec.start_before.map(|moment| moment.0),
            run_timeout_ms: spec.run_timeout.map(|length| length.0),
            silence_timeout_ms: spec.silence_timeout.map(|length| length.0),
            retry: (spec.retry != Retry::DEFAULT).then(|| Retried::of(spec.retry)),
            labels: spec.labels.clone(),
            estimate_ms: spec.estimate.map(|length| length.0),
            cost_thousandths: (spec.cost != Fixed::ONE).then(|| spec.cost.in_thousandths()),
            history_key: spec.history_key.clone(),
            group: spec.group.clone(),
            array_index: spec.array_index,
            parent: spec.parent.as_ref().map(JobId::to_string),
            webhook: spec.webhook.clone(),
        }
    }

    fn fill(self, spec: &mut Spec) {
        let names = |texts: Vec<String>| texts.iter().map(|text| Name::new(text)).collect();
        let traits = |name: &String| Trait::ALL.into_iter().find(|fact| fact.name() == name);
        spec.pool = self.pool.as_deref().map(Name::new);
        spec.needs =
            self.needs.into_iter().map(|(key, any)| (Name::new(&key), names(any))).collect();
        spec.slots = self.slots.unwrap_or(1);
        spec.amounts = self.amounts.iter().map(|(name, n)| (Name::new(name), *n)).collect();
        spec.priority = self.priority;
        spec.on_demand = self.on_demand;
        spec.traits = self.traits.iter().filter_map(traits).collect();
        spec.hint = self.hint.as_deref().map(Name::new);
        let inputs = self.inputs.into_iter();
        spec.inputs = inputs.map(|(digest, bytes)| Input { digest, bytes }).collect();
        spec.resource = self.resource.map(Asked::ask);
        spec.after = self.after.iter().map(|id| JobId::new(id)).collect();
        spec.if_failed = if self.run_if_failed { IfFailed::Run } else { IfFailed::Cancel };
        spec.dedupe_key = self.dedupe_key;
        spec.not_before = self.not_before_ms.map(Timestamp);
        spec.start_before = self.start_before_ms.map(Timestamp);
        spec.run_timeout = self.run_timeout_ms.map(Millis);
        spec.silence_timeout = self.silence_timeout_ms.map(Millis);
        spec.retry = self.retry.map_or(Retry::DEFAULT, Retried::retry);
        spec.labels = self.labels;
        spec.estimate = self.estimate_ms.map(Millis);
        spec.cost = self.cost_thousandths.map_or(Fixed::ONE, Fixed::thousandths);
        spec.history_key = self.history_key;
        spec.group = self.group;
        spec.array_index = self.array_index;
        spec.parent = self.parent.as_deref().map(JobId::new);
        spec.webhook = self.webhook;
    }
}

impl Asked {
    fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Named(name) => Self::Named(name.to_string()),
            Ask::Any => Self::Any,
        }
    }

    fn ask(self) -> Ask {
        match self {
            Self::Named(name) => Ask::Named(Name::new(&name)),
            Self::Any => Ask::Any,
        }
    }
}

impl Retried {
    const fn of(retry: Retry) -> Self {
        Self {
            attempts_max: retry.attempts_max,
            backoff_ms: retry.backoff.0,
            backoff_ms_max: retry.backoff_max.0,
        }
    }

    const fn retry(self) -> Retry {
        Retry {
            attempts_max: self.attempts_max,
            backoff: Millis(self.backoff_ms),
            backoff_max: Millis(self.backoff_ms_max),
        }
    }
}

fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(Name::to_string).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(fact: &bool) -> bool {
    !*fact
}

#[cfg(test)]
mod tests {
    use model::TenantId;

    use super::*;

    fn plain() -> Spec {
        Spec::new(TenantId::new("t"), Name::new("k"))
    }

    fn rich() -> Spec {
        Spec {
            pool: Some(Name::new("p")),
            needs: [(Name::new("os"), vec![Name::new("7"), Name::new("07")])].into(),
            slots: 3,
            amounts: [(Name::new("ram_mb"), u64::MAX)].into(),
            priority: -4,
            on_demand: true,
            traits: Trait::ALL.into_iter().collect(),
            hint: Some(Name::new("h")),
            inputs: vec![Input { digest: "d".to_owned(), bytes: u64::MAX }],
            resource: Some(Ask::Any),
            after: vec![JobId::number(9)],
            if_failed: IfFailed::Run,
            dedupe_key: Some(String::new()),
            not_before: Some(Timestamp(1)),
            start_before: Some(Timestamp(2)),
            run_timeout: Some(Millis(3)),
            silence_timeout: Some(Millis(4)),
            retry: Retry { attempts_max: 0, ..Retry::DEFAULT },
            labels: [("a \"b\"".to_owned(), "c\n".to_owned())].into(),
            estimate: Some(Millis(5)),
            cost: Fixed::ZERO,
            history_key: "key".to_owned(),
            group: Some("g".to_owned()),
            array_index: Some(0),
            parent: Some(JobId::number(8)),
            ..plain()
        }
    }

    #[test]
    fn document_round_trips() {
        for spec in [plain(), rich()] {
            let mut read_again = plain();
            read(&write(&spec).unwrap(), &mut read_again).unwrap();
            assert_eq!(read_again, spec);
        }
        for ask in [Ask::Any, Ask::Named(Name::new("any"))] {
            assert_eq!(read_ask(&write_ask(&ask).unwrap()).unwrap(), ask);
        }
    }

    #[test]
    fn a_plain_job_is_an_empty_document() {
        assert_eq!(write(&plain()).unwrap(), "{}");
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        assert!(read(r#"{"colour": 1}"#, &mut plain()).is_err());
    }
}
