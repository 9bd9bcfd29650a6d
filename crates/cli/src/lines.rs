//! A job in a line of JSON, as a file has them.

use std::collections::BTreeMap;

use proto::v1;
use serde::Deserialize;

use crate::meant::unknown_field;
use crate::settings::Length;
use crate::spec::{Call, EXEC, unsigned};

/// What a line may say. What it does not say is as the flags say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Line {
    /// What later lines call it in their `after`.
    pub(crate) name: Option<String>,
    tenant: Option<String>,
    r#type: Option<String>,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    dir: Option<String>,
    stdin: Option<String>,
    /// Text as it is; anything else as JSON.
    payload: Option<serde_json::Value>,
    priority: Option<i32>,
    on_demand: bool,
    pool: Option<String>,
    needs: BTreeMap<String, Alternatives>,
    slots: Option<u32>,
    amounts: BTreeMap<String, u64>,
    hint: Option<String>,
    inputs: Vec<Input>,
    resource: Option<String>,
    labels: BTreeMap<String, String>,
    dedupe_key: Option<String>,
    delay: Option<Length>,
    start_within: Option<Length>,
    timeout: Option<Length>,
    silence_timeout: Option<Length>,
    attempts: Option<u32>,
    estimate: Option<Length>,
    cost: Option<f64>,
    group: Option<String>,
    parent: Option<u64>,
    history_key: Option<String>,
    webhook: Option<String>,
    on_hold: bool,
    /// Jobs that it waits for.
    pub(crate) after: Vec<After>,
    run_if_failed: bool,
}

/// A job that is there, or an earlier line.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum After {
    Id(u64),
    Name(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Alternatives {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    digest: String,
    bytes: u64,
}

impl Line {
    /// Reads a line; what is wrong with it, and what may have been meant.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, Option<String>)> {
        serde_json::from_str(text).map_err(|error| {
            let text = error.to_string();
            let what = text.split_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            match unknown_field(what) {
                Some((field, hint)) => (format!("{field} is unknown"), Some(hint)),
                None => (what.to_owned(), None),
            }
        })
    }

    /// The job, without what it waits for; `base` is what the flags say.
    pub(crate) fn spec(self, base: &v1::Spec, now_ms: i64) -> Result<v1::Spec, String> {
        let later = |length: Length| now_ms.saturating_add(length.millis().0);
        let mut spec = base.clone();
        set(&mut spec.tenant, self.tenant);
        set(&mut spec.r#type, self.r#type);
        set(&mut spec.priority, self.priority);
        set(&mut spec.pool, self.pool);
        set(&mut spec.slots, self.slots);
        set(&mut spec.hint, self.hint);
        set(&mut spec.resource, self.resource);
        set(&mut spec.dedupe_key, self.dedupe_key);
        set(&mut spec.group, self.group);
        set(&mut spec.parent, self.parent);
        set(&mut spec.history_key, self.history_key);
        set(&mut spec.webhook, self.webhook);
        spec.not_before_ms = self.delay.map(later).or(spec.not_before_ms);
        spec.start_before_ms = self.start_within.map(later).or(spec.start_before_ms);
        spec.run_timeout_ms = self.timeout.map(unsigned).or(spec.run_timeout_ms);
        spec.silence_timeout_ms = self.silence_timeout.map(unsigned).or(spec.silence_timeout_ms);
        spec.estimate_ms = self.estimate.map(unsigned).or(spec.estimate_ms);
        spec.cost = self.cost.or(spec.cost);
        let retry = |attempts_max| v1::Retry { attempts_max, ..v1::Retry::default() };
        spec.retry = self.attempts.map(retry).or(spec.retry);
        spec.on_demand |= self.on_demand;
        spec.on_hold |= self.on_hold;
        spec.run_if_failed |= self.run_if_failed;
        spec.amounts.extend(self.amounts);
        spec.labels.extend(self.labels);
        spec.needs.extend(self.needs.into_iter().map(|(key, values)| (key, values.wire())));
        let input = |Input { digest, bytes }| v1::Input { digest, bytes };
        spec.inputs.extend(self.inputs.into_iter().map(input));
        let call = Call { argv: self.command, env: self.env, dir: self.dir, stdin: self.stdin };
        work(&mut spec, &call, self.payload)?;
        Ok(spec)
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *field = given;
    }
}

/// What there is to run: a command, or a payload for a type.
fn work(
    spec: &mut v1::Spec,
    call: &Call,
    payload: Option<serde_json::Value>,
) -> Result<(), String> {
    if !call.argv.is_empty() {
        if payload.is_some() {
            return Err("`command` and `payload` are both given; one of them is enough".to_owned());
        }
        if spec.r#type.is_empty() {
            EXEC.clone_into(&mut spec.r#type);
        }
        spec.payload = call.payload(&spec.r#type);
        return Ok(());
    }
    if spec.r#type.is_empty() {
        return Err("there is nothing to run; give a `command`, or a `type`".to_owned());
    }
    spec.payload = match payload {
        Some(serde_json::Value::String(text)) => text.into_bytes(),
        Some(value) => value.to_string().into_bytes(),
        None => Vec::new(),
    };
    Ok(())
}

impl Alternatives {
    fn wire(self) -> v1::Values {
        let values = match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        };
        v1::Values { values }
    }
}
