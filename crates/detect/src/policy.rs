//! The detection policy of a type. Every field has a default. A descriptor overrides the default,
//! and an operator overrides both.

use model::maxima::{ATTEMPTS_MAX, NAME_BYTES_MAX};
use model::{Millis, Name, TenantId};
use serde_json::{Map, Value};

use crate::descriptor::is_policy_field;
use crate::{Problem, length, shown_length};

/// One field of a policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyField {
    /// Its name.
    pub name: &'static str,
    kind: FieldKind,
    default: &'static str,
    /// Its description.
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum FieldKind {
    Flag,
    /// A duration between two limits, in milliseconds.
    Length(i64, i64),
    Count(u32, u32),
    /// May be empty.
    Word,
}

const DAY_MS: i64 = 24 * 3_600 * 1_000;
const YEAR_MS: i64 = 365 * DAY_MS;

const fn field(
    name: &'static str,
    kind: FieldKind,
    default: &'static str,
    help: &'static str,
) -> PolicyField {
    PolicyField { name, kind, default, help }
}

/// All fields, in the order of their presentation.
pub const POLICY_FIELDS: &[PolicyField] = &[
    field("enabled", FieldKind::Flag, "true", "whether workers are asked for work of it"),
    field("interval", FieldKind::Length(100, YEAR_MS), "5m", "from one detection to the next"),
    field(
        "detect_timeout",
        FieldKind::Length(1, DAY_MS),
        "45s",
        "the longest a detection may take",
    ),
    field(
        "runtime_max",
        FieldKind::Length(1, YEAR_MS),
        "30m",
        "detection and all its jobs: then no more of them start",
    ),
    field(
        "drain_grace",
        FieldKind::Length(0, YEAR_MS),
        "30m",
        "what runs when the time is out may end within so long",
    ),
    field("proposals_max", FieldKind::Count(1, 100_000), "1000", "proposals of one detection"),
    field("jobs_max", FieldKind::Count(1, 100_000), "1", "jobs of it at once"),
    field("worker_max", FieldKind::Count(1, 100_000), "1", "jobs of it at once on one worker"),
    field(
        "run_timeout",
        FieldKind::Length(1, YEAR_MS),
        "90s",
        "the longest an attempt may run; a job that expects to take longer gets as long",
    ),
    field("retries_max", FieldKind::Count(0, ATTEMPTS_MAX - 1), "0", "tries after the first"),
    field("retry_backoff", FieldKind::Length(0, DAY_MS), "5s", "the wait before the first of them"),
    field("lane", FieldKind::Word, "default", "types of one lane go one after the other"),
    field("resource", FieldKind::Word, "", "what each job holds alone while it runs"),
    field("tenant", FieldKind::Word, "default", "whose its jobs are"),
];

/// The detection policy of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`POLICY_FIELDS` says what each is")]
pub struct Policy {
    pub is_enabled: bool,
    pub interval: Millis,
    pub detect_timeout: Millis,
    pub runtime_max: Millis,
    pub drain_grace: Millis,
    pub proposals_max: u32,
    pub jobs_max: u32,
    /// At most `jobs_max`.
    pub worker_max: u32,
    pub run_timeout: Millis,
    pub retries_max: u32,
    pub retry_backoff: Millis,
    pub lane: String,
    pub resource: Option<Name>,
    pub tenant: TenantId,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An operator.
    Set,
    /// The type's descriptor.
    Descriptor,
    /// The built-in default.
    Default,
}

impl Origin {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Descriptor => "descriptor",
            Self::Default => "default",
        }
    }
}

/// A field with its current value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The field.
    pub name: &'static str,
    /// Its value, in the form that a user would write.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
    /// Its description.
    pub help: &'static str,
}

impl Default for Policy {
    fn default() -> Self {
        Self::resolve(&Map::new(), &Map::new()).expect("the defaults are allowed").0
    }
}

impl Policy {
    /// The effective values: those of operators, else those of the descriptor, else defaults.
    pub fn resolve(
        set: &Map<String, Value>,
        described: &Map<String, Value>,
    ) -> Result<(Self, Vec<Shown>), Problem> {
        for name in set.keys().chain(described.keys()) {
            if !is_policy_field(name) {
                let names: Vec<&str> = POLICY_FIELDS.iter().map(|field| field.name).collect();
                let problem = format!("is no field of a policy; fields: {}", names.join(", "));
                return Err(Problem::new(name, problem));
            }
        }
        let mut shown = Vec::with_capacity(POLICY_FIELDS.len());
        for field in POLICY_FIELDS {
            let (value, origin) = match (set.get(field.name), described.get(field.name)) {
                (Some(value), _) => (word(value), Origin::Set),
                (None, Some(value)) => (word(value), Origin::Descriptor),
                (None, None) => (field.default.to_owned(), Origin::Default),
            };
            let value = field.checked(&value)?;
            shown.push(Shown { name: field.name, value, origin, help: field.help });
        }
        Ok((Self::of(&shown), shown))
    }

    /// The policy of checked values.
    fn of(shown: &[Shown]) -> Self {
        let text = |name: &str| {
            let found = shown.iter().find(|one| one.name == name);
            found.map(|one| one.value.as_str()).unwrap_or_default()
        };
        let millis = |name| length(text(name)).unwrap_or(Millis::ZERO);
        let count = |name| text(name).parse::<u32>().unwrap_or(1);
        let resource = text("resource");
        Self {
            is_enabled: text("enabled") == "true",
            interval: millis("interval"),
            detect_timeout: millis("detect_timeout"),
            runtime_max: millis("runtime_max"),
            drain_grace: millis("drain_grace"),
            proposals_max: count("proposals_max"),
            jobs_max: count("jobs_max"),
            worker_max: count("worker_max").min(count("jobs_max")),
            run_timeout: millis("run_timeout"),
            retries_max: count("retries_max"),
            retry_backoff: millis("retry_backoff"),
            lane: text("lane").to_owned(),
            resource: (!resource.is_empty()).then(|| Name::new(resource)),
            tenant: TenantId::new(text("tenant")),
        }
    }
}

impl PolicyField {
    /// The normalized value, if it is allowed.
    pub fn checked(&self, text: &str) -> Result<String, Problem> {
        let wrong = |problem: String| Problem::new(self.name, problem);
        match self.kind {
            FieldKind::Flag if text == "true" || text == "false" => Ok(text.to_owned()),
            FieldKind::Flag => Err(wrong(format!("is `{text}`, neither `true` nor `false`"))),
            FieldKind::Length(min, max) => {
                let given = length(text).map_err(wrong)?;
                if (min..=max).contains(&given.0) {
                    return Ok(shown_length(given));
                }
                let (min, max) = (shown_length(Millis(min)), shown_length(Millis(max)));
                Err(wrong(format!("is `{text}`, which is not between {min} and {max}")))
            }
            FieldKind::Count(min, max) => {
                let given = text.parse::<u32>().ok().filter(|n| (min..=max).contains(n));
                let given = given.ok_or_else(|| {
                    wrong(format!("is `{text}`, which is no whole number between {min} and {max}"))
                })?;
                Ok(given.to_string())
            }
            FieldKind::Word => {
                let is_needed = !self.default.is_empty();
                let is_odd = text.len() > NAME_BYTES_MAX || text.contains(char::is_control);
                if is_odd || (is_needed && text.is_empty()) {
                    let problem =
                        format!("is `{text}`, which is no name of 1 to {NAME_BYTES_MAX} bytes");
                    return Err(wrong(problem));
                }
                Ok(text.to_owned())
            }
        }
    }
}

/// A value of a document as text.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(mut value: Value) -> Map<String, Value> {
        value.as_object_mut().map(std::mem::take).unwrap_or_default()
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let policy = Policy::default();
        assert_eq!(policy.detect_timeout, Millis::from_secs(45));
        assert_eq!(policy.runtime_max, Millis::from_secs(1_800));
        assert_eq!((policy.proposals_max, policy.jobs_max, policy.worker_max), (1_000, 1, 1));
        assert_eq!((policy.retries_max, policy.retry_backoff), (0, Millis::from_secs(5)));
    }

    #[test]
    fn settings_override_descriptors() {
        let described = map(json!({ "interval": "17m", "jobs_max": 16, "worker_max": 4 }));
        let set = map(json!({ "interval": "2h" }));
        let (policy, shown) = Policy::resolve(&set, &described).unwrap();
        assert_eq!(policy.interval, Millis::from_secs(7_200));
        assert_eq!((policy.jobs_max, policy.worker_max), (16, 4));
        let origin = |name: &str| shown.iter().find(|one| one.name == name).unwrap().origin;
        assert_eq!(origin("interval"), Origin::Set);
        assert_eq!(origin("jobs_max"), Origin::Descriptor);
        assert_eq!(origin("lane"), Origin::Default);
    }

    #[test]
    fn worker_limit_is_at_most_the_type_limit() {
        let (policy, _) = Policy::resolve(&map(json!({ "worker_max": 9 })), &Map::new()).unwrap();
        assert_eq!(policy.worker_max, 1);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let wrong = |set: Value| Policy::resolve(&map(set), &Map::new()).unwrap_err().to_string();
        assert!(wrong(json!({ "intervall": "2h" })).starts_with("`intervall` is no field"));
        assert!(
            wrong(json!({ "interval": 30 })).starts_with("`interval` is `30`, which is no len")
        );
        let jobs = wrong(json!({ "jobs_max": 0 }));
        assert_eq!(jobs, "`jobs_max` is `0`, which is no whole number between 1 and 100000");
        assert_eq!(wrong(json!({ "enabled": 1 })), "`enabled` is `1`, neither `true` nor `false`");
    }
}
