//! What operators set: JSON documents in the words of a snapshot, turned into events.

use std::collections::{BTreeMap, BTreeSet};

use ::detect::{Descriptor, Policy};
use model::maxima::ATTEMPTS_MAX;
use model::{Budget, Event, Fixed, JobType, Millis, Name, Retry, Snapshot, Tenant, WorkerId};
use proto::Invalid;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{Repeat, Setting, SettingKind};

use crate::detect::{Asked, Published, TypeWords};
use crate::recur::Schedule;

/// What a type says for jobs that do not say it themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeDefaults {
    pub(crate) retry: Option<Retry>,
    pub(crate) run_timeout: Option<Millis>,
    pub(crate) silence_timeout: Option<Millis>,
    pub(crate) repeat: Repeat,
    /// Nobody asks about those that succeeded and left nothing.
    pub(crate) forget: bool,
    /// Where they run, for estimates.
    pub(crate) pool: Option<Name>,
}

/// A setting that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Understood {
    /// For the world.
    Event(Event),
    /// The most that all tenants together may use.
    Budget(Option<Fixed>),
    /// For the world, and for jobs to come.
    Type(JobType, TypeDefaults, TypeWords),
    /// Workers of the pool take no more work, or the pool has a policy of its own.
    Pool { pool: Name, is_paused: bool, policy: Option<Box<model::Policy>> },
    /// The worker takes no more work.
    Worker { worker: WorkerId, is_draining: bool },
    /// What workers say about a type.
    Descriptor(Name, Box<Descriptor>),
    /// What all workers are told.
    Published(Published),
    /// A recurring job; `None` if there is none any more.
    Schedule(String, Option<Box<Schedule>>),
    /// What somebody asked for; `None` if it is done.
    Asked(String, Option<Asked>),
}

/// What an operator keeps from taking work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) pools: BTreeSet<Name>,
    pub(crate) workers: BTreeSet<WorkerId>,
}

/// What a setting says. A document that is missing says what would hold without it.
pub(crate) fn understand(setting: &Setting) -> Result<Understood, Invalid> {
    let name = setting.name.as_str();
    let document = setting.document.as_deref();
    match setting.kind {
        SettingKind::Policy => policy(document.unwrap_or("balanced")),
        SettingKind::Budget => budget(document),
        SettingKind::Tenant => tenant(name, document),
        SettingKind::Type => job_type(name, document),
        SettingKind::Resource => resource(name, document),
        SettingKind::Pool => {
            let pool = proto::name("name", name)?;
            let (is_paused, policy) = pool_settings(document)?;
            Ok(Understood::Pool { pool, is_paused, policy })
        }
        SettingKind::Worker => {
            proto::name("name", name)?;
            let worker = WorkerId::new(name);
            Ok(Understood::Worker { worker, is_draining: flag("worker", "draining", document)? })
        }
        SettingKind::Descriptor => {
            let descriptor = Descriptor::parse(document.unwrap_or("{}")).map_err(wrong)?;
            Ok(Understood::Descriptor(proto::name("name", name)?, Box::new(descriptor)))
        }
        SettingKind::Context => {
            let published = Published::read(document.unwrap_or_default());
            let unreadable = || Invalid::new("context", "is not what was published");
            Ok(Understood::Published(published.ok_or_else(unreadable)?))
        }
        SettingKind::Schedule => {
            let schedule = document.map(Schedule::read).transpose()?.map(Box::new);
            Ok(Understood::Schedule(name.to_owned(), schedule))
        }
        SettingKind::Asked => {
            let asked = document.map(Asked::read).transpose()?;
            Ok(Understood::Asked(name.to_owned(), asked))
        }
        SettingKind::Token => {
            Err(Invalid::new("kind", "is `token`, which the world knows nothing of"))
        }
    }
}

/// Whether a pool is paused, and its policy if it has one of its own.
fn pool_settings(document: Option<&str>) -> Result<(bool, Option<Box<model::Policy>>), Invalid> {
    let mut fields = document.map_or_else(|| Ok(Map::new()), |text| object("pool", text))?;
    let policy = match fields.remove("policy") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => Some(other.to_string()),
    };
    let policy = policy.map(|text| snapshot::policy(&text).map(Box::new));
    let policy = policy.transpose().map_err(|error| invalid("pool.policy", &error))?;
    let paused = fields.remove("paused").unwrap_or(Value::Bool(false));
    if let Some(other) = fields.keys().next() {
        let problem = "is unknown; a pool has `paused` and `policy`";
        return Err(Invalid::new(&format!("pool.{other}"), problem));
    }
    let is_paused = paused.as_bool().ok_or_else(|| {
        Invalid::new("pool.paused", format!("is {paused}, neither true nor false"))
    })?;
    Ok((is_paused, policy))
}

fn policy(text: &str) -> Result<Understood, Invalid> {
    let policy = snapshot::policy(text).map_err(|error| invalid("policy", &error))?;
    Ok(Understood::Event(Event::Policy(Box::new(policy))))
}

fn budget(document: Option<&str>) -> Result<Understood, Invalid> {
    let Some(document) = document else { return Ok(Understood::Budget(None)) };
    let text = format!("{{\"budget\":{document}}}");
    let read = snapshot::parse(&text).map_err(|error| invalid("", &error))?;
    Ok(Understood::Budget(read.budget.map(|budget: Budget| budget.limit)))
}

fn tenant(name: &str, document: Option<&str>) -> Result<Understood, Invalid> {
    let id = proto::name("name", name)?;
    let Some(document) = document else {
        let tenant = Tenant::new(model::TenantId::new(name));
        return Ok(Understood::Event(Event::Tenant(tenant)));
    };
    let mut fields = object("tenant", document)?;
    refuse(&fields, "tenant", &["used", "completed", "account"])?;
    fields.insert("id".to_owned(), json!(id.to_string()));
    let read = one_of("tenants", &fields)?;
    let tenant = read.tenants.into_iter().next();
    let tenant = tenant.ok_or_else(|| Invalid::new("tenant", "is missing"))?;
    Ok(Understood::Event(Event::Tenant(tenant)))
}

fn resource(name: &str, document: Option<&str>) -> Result<Understood, Invalid> {
    proto::name("name", name)?;
    let mut fields = document.map_or_else(|| Ok(Map::new()), |text| object("resource", text))?;
    refuse(&fields, "resource", &["holder"])?;
    fields.insert("name".to_owned(), json!(name));
    let mut document = json!({ "resources": [fields] });
    if let Some(tenant) = fields_tenant(&document) {
        document["tenants"] = json!([{ "id": tenant }]);
    }
    let read =
        snapshot::parse(&document.to_string()).map_err(|error| shortened("resources", &error))?;
    let resource = read.resources.into_iter().next();
    let resource = resource.ok_or_else(|| Invalid::new("resource", "is missing"))?;
    Ok(Understood::Event(Event::Resource(resource)))
}

fn fields_tenant(document: &Value) -> Option<Value> {
    document.pointer("/resources/0/tenant").filter(|tenant| !tenant.is_null()).cloned()
}

/// What a type's document may say beside what a snapshot's may.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TypeExtra {
    retry: Option<RetryDocument>,
    run_timeout_ms: Option<u32>,
    silence_timeout_ms: Option<u32>,
    /// `join` or `drop`.
    dedupe: Option<String>,
    forget: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryDocument {
    attempts_max: Option<u32>,
    backoff_ms: Option<u32>,
    backoff_ms_max: Option<u32>,
}

fn job_type(name: &str, document: Option<&str>) -> Result<Understood, Invalid> {
    proto::name("name", name)?;
    let mut fields = document.map_or_else(|| Ok(Map::new()), |text| object("type", text))?;
    refuse(&fields, "type", &["rotation", "seen_ms"])?;
    let mut own = Map::new();
    for key in ["retry", "run_timeout_ms", "silence_timeout_ms", "dedupe", "forget"] {
        if let Some(value) = fields.remove(key) {
            own.insert(key.to_owned(), value);
        }
    }
    let extra: TypeExtra = serde_json::from_value(Value::Object(own))
        .map_err(|error| Invalid::new("type", error.to_string()))?;
    let words = type_words(&mut fields)?;
    fields.insert("name".to_owned(), json!(name));
    let read = one_of("types", &fields)?;
    let kind = read.types.into_iter().next();
    let kind = kind.ok_or_else(|| Invalid::new("type", "is missing"))?;
    let pool = kind.pool.clone();
    Ok(Understood::Type(kind, TypeDefaults { pool, ..extra.checked()? }, words))
}

/// What is said about detection and configuration, taken out of a type's document.
fn type_words(fields: &mut Map<String, Value>) -> Result<TypeWords, Invalid> {
    let mut part = |name: &str| match fields.remove(name) {
        None => Ok(Map::new()),
        Some(Value::Object(part)) => Ok(part),
        Some(_) => Err(Invalid::new(&format!("type.{name}"), "is not a JSON object")),
    };
    let (mut policy, admin, worker) = (part("detection")?, part("admin")?, part("worker")?);
    for shared in ["jobs_max", "worker_max"] {
        if let Some(value) = fields.get(shared).filter(|value| !value.is_null()) {
            policy.insert(shared.to_owned(), value.clone());
        }
    }
    let inside = |problem: ::detect::Problem| wrong(problem.inside("type.detection"));
    Policy::resolve(&policy, &Map::new()).map_err(inside)?;
    Ok(TypeWords { policy, admin, worker })
}

/// What the crate `detect` found wrong.
pub(crate) fn wrong(problem: ::detect::Problem) -> Invalid {
    Invalid::new(&problem.field, problem.problem)
}

impl TypeExtra {
    fn checked(self) -> Result<TypeDefaults, Invalid> {
        let repeat = match self.dedupe.as_deref() {
            None | Some("join") => Repeat::Join,
            Some("drop") => Repeat::Drop,
            Some(other) => {
                let problem = format!("is `{other}`, which is neither `join` nor `drop`");
                return Err(Invalid::new("type.dedupe", problem));
            }
        };
        let millis = |ms: u32| Millis(i64::from(ms));
        Ok(TypeDefaults {
            retry: self.retry.map(RetryDocument::checked).transpose()?,
            run_timeout: self.run_timeout_ms.map(millis),
            silence_timeout: self.silence_timeout_ms.map(millis),
            repeat,
            forget: self.forget,
            pool: None,
        })
    }
}

impl RetryDocument {
    fn checked(self) -> Result<Retry, Invalid> {
        let default = Retry::DEFAULT;
        let attempts_max = self.attempts_max.unwrap_or(default.attempts_max);
        if attempts_max == 0 || attempts_max > ATTEMPTS_MAX {
            let problem = format!("is {attempts_max}, which is not between 1 and {ATTEMPTS_MAX}");
            return Err(Invalid::new("type.retry.attempts_max", problem));
        }
        let or = |ms: Option<u32>, default| ms.map_or(default, |ms| Millis(i64::from(ms)));
        Ok(Retry {
            attempts_max,
            backoff: or(self.backoff_ms, default.backoff),
            backoff_max: or(self.backoff_ms_max, default.backoff_max),
        })
    }
}

/// One true-or-false field that a document may have.
fn flag(what: &str, field: &str, document: Option<&str>) -> Result<bool, Invalid> {
    let Some(document) = document else { return Ok(false) };
    let mut fields = object(what, document)?;
    let value = fields.remove(field).unwrap_or(Value::Bool(false));
    if let Some(other) = fields.keys().next() {
        let problem = format!("is unknown; `{field}` is all that a {what} has");
        return Err(Invalid::new(&format!("{what}.{other}"), problem));
    }
    value.as_bool().ok_or_else(|| {
        Invalid::new(&format!("{what}.{field}"), format!("is {value}, neither true nor false"))
    })
}

fn object(what: &str, text: &str) -> Result<Map<String, Value>, Invalid> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Invalid::new(what, "is not a JSON object")),
        Err(error) => Err(Invalid::new(what, format!("is not JSON: {error}"))),
    }
}

/// Fields that a snapshot has and nobody sets: they are counted.
fn refuse(fields: &Map<String, Value>, what: &str, names: &[&str]) -> Result<(), Invalid> {
    let counted = names.iter().find(|name| fields.contains_key(**name));
    counted.map_or(Ok(()), |name| {
        Err(Invalid::new(&format!("{what}.{name}"), "is counted, and cannot be set"))
    })
}

fn one_of(list: &str, fields: &Map<String, Value>) -> Result<Snapshot, Invalid> {
    let document = json!({ list: [fields] });
    snapshot::parse(&document.to_string()).map_err(|error| shortened(list, &error))
}

/// The same error with `tenant.weight` for `tenants[0].weight`.
fn shortened(list: &str, error: &snapshot::SnapshotError) -> Invalid {
    let one = list.trim_end_matches('s');
    let text = error.to_string().replacen(&format!("`{list}[0]"), &format!("`{one}"), 1);
    split(&text, error.hint())
}

fn invalid(field: &str, error: &snapshot::SnapshotError) -> Invalid {
    let text = error.to_string();
    if text.starts_with('`') { split(&text, error.hint()) } else { Invalid::new(field, text) }
}

/// An error that reads "`field` problem", taken apart.
fn split(text: &str, hint: Option<&str>) -> Invalid {
    let mut parts = text.splitn(3, '`');
    let (_, field) = (parts.next(), parts.next().unwrap_or_default());
    let problem = parts.next().unwrap_or_default().trim_start();
    let hint = hint.map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
    Invalid::new(field, format!("{problem}{hint}"))
}

/// What all types say, by name.
pub(crate) type Types = BTreeMap<Name, TypeDefaults>;

#[cfg(test)]
mod tests {
    use super::*;

    fn set(kind: SettingKind, name: &str, document: &str) -> Result<Understood, String> {
        let document = Some(document.to_owned());
        let setting = Setting { kind, name: name.to_owned(), document };
        understand(&setting).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn a_tenant_is_set_in_the_words_of_a_snapshot() {
        let set = set(
            SettingKind::Tenant,
            "a",
            r#"{"weight": 3, "quotas": [{"pool": "gpu", "min": 1, "max": 4}]}"#,
        );
        let Ok(Understood::Event(Event::Tenant(tenant))) = set else { panic!("{set:?}") };
        assert_eq!(tenant.id.to_string(), "a");
        assert_eq!(tenant.weight, Fixed::whole(3));
        assert_eq!(tenant.quotas[0].max, Some(4));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let wrong = set(SettingKind::Tenant, "a", r#"{"weight": -3}"#).unwrap_err();
        assert!(wrong.starts_with("`tenant.weight` "), "{wrong}");
        let wrong = set(SettingKind::Tenant, "a", r#"{"used": 3}"#).unwrap_err();
        assert_eq!(wrong, "`tenant.used` is counted, and cannot be set");
        let wrong = set(SettingKind::Policy, "", "fastest").unwrap_err();
        assert!(wrong.starts_with("`policy"), "{wrong}");
        let wrong = set(SettingKind::Type, "pdf", r#"{"dedupe": "both"}"#).unwrap_err();
        assert_eq!(wrong, "`type.dedupe` is `both`, which is neither `join` nor `drop`");
        let wrong = set(SettingKind::Pool, "gpu", r#"{"closed": true}"#).unwrap_err();
        assert_eq!(wrong, "`pool.closed` is unknown; a pool has `paused` and `policy`");
        let wrong = set(SettingKind::Pool, "gpu", r#"{"policy": "fastest"}"#).unwrap_err();
        assert!(wrong.contains("not a preset"), "{wrong}");
    }

    #[test]
    fn pool_has_a_policy_of_its_own() {
        let set = set(SettingKind::Pool, "gpu", r#"{"policy": "cohort"}"#);
        let Ok(Understood::Pool { is_paused: false, policy: Some(policy), .. }) = set else {
            panic!("{set:?}")
        };
        assert_eq!(policy.preset, model::Preset::Cohort);
    }

    #[test]
    fn a_type_says_what_holds_for_its_jobs() {
        let document = r#"{"jobs_max": 4, "retry": {"attempts_max": 7}, "dedupe": "drop",
            "forget": true}"#;
        let set = set(SettingKind::Type, "pdf", document);
        let Ok(Understood::Type(kind, defaults, _)) = set else { panic!("{set:?}") };
        assert_eq!(kind.jobs_max, Some(4));
        assert_eq!(defaults.retry.unwrap().attempts_max, 7);
        assert_eq!((defaults.repeat, defaults.forget), (Repeat::Drop, true));
    }

    #[test]
    fn a_resource_may_be_a_tenants() {
        let set = set(SettingKind::Resource, "disk-1", r#"{"tenant": "a"}"#);
        let Ok(Understood::Event(Event::Resource(resource))) = set else { panic!("{set:?}") };
        assert_eq!(resource.tenant.unwrap().to_string(), "a");
    }
}
