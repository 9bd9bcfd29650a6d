//! Converts job specifications from and to protobuf.

use model::maxima::{
    AFTER_MAX, ATTEMPTS_MAX, INPUTS_MAX, LABELS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PRIORITY_MAX, SLOTS_MAX, URL_BYTES_MAX,
};
use model::tenant::TENANT_DEFAULT;
use model::{Ask, Fixed, IfFailed, Input, JobId, Millis, Retry, Spec, TenantId, Trait, Traits};

use crate::check::{Invalid, within};
use crate::check::{amounts, at_most, length, moment, name, number, optional_name, text, values};
use crate::v1;

impl v1::Spec {
    /// The checked specification. `retry` has the retries of its type, for a job without its own.
    pub fn checked(self, retry: Retry) -> Result<Spec, Invalid> {
        let mut spec = Spec::new(self.tenant()?, name("type", &self.r#type)?);
        if self.payload.len() > PAYLOAD_BYTES_MAX {
            let problem =
                format!("has {} bytes of at most {PAYLOAD_BYTES_MAX}", self.payload.len());
            return Err(Invalid::new("payload", problem));
        }
        at_most("labels", self.labels.len(), LABELS_MAX)?;
        at_most("after", self.after.len(), AFTER_MAX)?;
        spec.pool = optional_name("pool", &self.pool)?;
        spec.needs = values("needs", &self.needs)?;
        spec.slots = within("slots", self.slots.max(1), (1, SLOTS_MAX))?;
        spec.amounts = amounts("amounts", &self.amounts)?;
        spec.priority = within("priority", self.priority, (-PRIORITY_MAX, PRIORITY_MAX))?;
        spec.on_demand = self.on_demand;
        spec.traits = traits(&self.traits)?;
        spec.hint = optional_name("hint", &self.hint)?;
        spec.inputs = inputs(self.inputs)?;
        spec.resource = optional_name("resource", &self.resource)?
            .map(|name| if self.resource == "*" { Ask::Any } else { Ask::Named(name) });
        spec.after = self.after.iter().map(|id| JobId::number(*id)).collect();
        spec.after.sort();
        spec.after.dedup();
        spec.if_failed = if self.run_if_failed { IfFailed::Run } else { IfFailed::Cancel };
        spec.dedupe_key = optional_text("dedupe_key", self.dedupe_key)?;
        spec.not_before = moment("not_before_ms", self.not_before_ms)?;
        spec.start_before = moment("start_before_ms", self.start_before_ms)?;
        spec.run_timeout = positive("run_timeout_ms", self.run_timeout_ms)?;
        spec.silence_timeout = positive("silence_timeout_ms", self.silence_timeout_ms)?;
        spec.retry = self.retry.map_or(Ok(retry), checked_retry)?;
        for (key, value) in self.labels {
            text("labels", &key, NAME_BYTES_MAX)?;
            text(&format!("labels.{key}"), &value, NAME_BYTES_MAX)?;
            spec.labels.insert(key, value);
        }
        spec.estimate = length("estimate_ms", self.estimate_ms)?;
        spec.cost = number("cost", self.cost)?.unwrap_or(Fixed::ONE);
        spec.history_key = text("history_key", &self.history_key, NAME_BYTES_MAX)?.to_owned();
        spec.group = optional_text("group", self.group)?;
        spec.parent = (self.parent != 0).then(|| JobId::number(self.parent));
        text("webhook", &self.webhook, URL_BYTES_MAX)?;
        spec.webhook = (!self.webhook.is_empty()).then_some(self.webhook);
        spec.payload = self.payload;
        Ok(spec)
    }

    fn tenant(&self) -> Result<TenantId, Invalid> {
        text("tenant", &self.tenant, NAME_BYTES_MAX)?;
        let name = if self.tenant.is_empty() { TENANT_DEFAULT } else { &self.tenant };
        Ok(TenantId::new(name))
    }
}

impl From<&Spec> for v1::Spec {
    fn from(spec: &Spec) -> Self {
        let needs = spec.needs.iter().map(|(key, values)| {
            let values = values.iter().map(ToString::to_string).collect();
            (key.to_string(), v1::Values { values })
        });
        let ids = |jobs: &[JobId]| jobs.iter().filter_map(JobId::as_number).collect();
        Self {
            tenant: spec.tenant.to_string(),
            r#type: spec.kind.to_string(),
            payload: spec.payload.clone(),
            pool: spec.pool.as_ref().map(ToString::to_string).unwrap_or_default(),
            needs: needs.collect(),
            slots: spec.slots,
            amounts: spec.amounts.iter().map(|(key, n)| (key.to_string(), *n)).collect(),
            priority: spec.priority,
            on_demand: spec.on_demand,
            traits: spec.traits.iter().map(|fact| fact.name().to_owned()).collect(),
            hint: spec.hint.as_ref().map(ToString::to_string).unwrap_or_default(),
            inputs: spec.inputs.iter().map(input).collect(),
            resource: spec.resource.as_ref().map(ask).unwrap_or_default(),
            after: ids(&spec.after),
            after_indexes: Vec::new(),
            run_if_failed: spec.if_failed == IfFailed::Run,
            dedupe_key: spec.dedupe_key.clone().unwrap_or_default(),
            not_before_ms: spec.not_before.map(|at| at.0),
            start_before_ms: spec.start_before.map(|at| at.0),
            run_timeout_ms: spec.run_timeout.map(unsigned),
            silence_timeout_ms: spec.silence_timeout.map(unsigned),
            retry: Some(v1::Retry {
                attempts_max: spec.retry.attempts_max,
                backoff_ms: unsigned(spec.retry.backoff),
                backoff_ms_max: unsigned(spec.retry.backoff_max),
            }),
            labels: spec.labels.clone().into_iter().collect(),
            estimate_ms: spec.estimate.map(unsigned),
            cost: Some(spec.cost.to_f64()),
            history_key: spec.history_key.clone(),
            group: spec.group.clone().unwrap_or_default(),
            parent: spec.parent.as_ref().and_then(JobId::as_number).unwrap_or_default(),
            array_index: spec.array_index,
            on_hold: false,
            webhook: spec.webhook.clone().unwrap_or_default(),
        }
    }
}

/// The text form of an exclusive lock.
pub(crate) fn ask(ask: &Ask) -> String {
    match ask {
        Ask::Named(name) => name.to_string(),
        Ask::Any => "*".to_owned(),
    }
}

fn checked_retry(retry: v1::Retry) -> Result<Retry, Invalid> {
    let default = Retry::DEFAULT;
    let attempts = if retry.attempts_max == 0 { default.attempts_max } else { retry.attempts_max };
    let or = |field, ms: u64, default: Millis| {
        if ms == 0 { Ok(default) } else { Ok(length(field, Some(ms))?.unwrap_or(default)) }
    };
    Ok(Retry {
        attempts_max: within("retry.attempts_max", attempts, (1, ATTEMPTS_MAX))?,
        backoff: or("retry.backoff_ms", retry.backoff_ms, default.backoff)?,
        backoff_max: or("retry.backoff_ms_max", retry.backoff_ms_max, default.backoff_max)?,
    })
}

fn traits(names: &[String]) -> Result<Traits, Invalid> {
    let named = |name: &String| {
        let known = Trait::ALL.into_iter().find(|fact| fact.name() == *name);
        known.ok_or_else(|| {
            let all: Vec<&str> = Trait::ALL.iter().map(|fact| fact.name()).collect();
            Invalid::new("traits", format!("has `{name}`, which is none of {}", all.join(", ")))
        })
    };
    names.iter().map(named).collect()
}

fn inputs(inputs: Vec<v1::Input>) -> Result<Vec<Input>, Invalid> {
    at_most("inputs", inputs.len(), INPUTS_MAX)?;
    let checked = inputs.into_iter().map(|input| {
        name("inputs.digest", &input.digest)?;
        Ok(Input { digest: input.digest, bytes: input.bytes })
    });
    checked.collect()
}

fn input(input: &Input) -> v1::Input {
    v1::Input { digest: input.digest.clone(), bytes: input.bytes }
}

fn optional_text(field: &str, value: String) -> Result<Option<String>, Invalid> {
    text(field, &value, NAME_BYTES_MAX)?;
    Ok((!value.is_empty()).then_some(value))
}

fn positive(field: &str, ms: Option<u64>) -> Result<Option<Millis>, Invalid> {
    match length(field, ms)? {
        Some(Millis::ZERO) => Err(Invalid::new(field, "is 0, which is not between 1 and the most")),
        other => Ok(other),
    }
}

pub(crate) fn unsigned(length: Millis) -> u64 {
    u64::try_from(length.0).unwrap_or(0)
}
