//! Descriptors of job types: configuration fields and default policies, as workers send them.

use std::collections::BTreeSet;

use model::maxima::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Field, POLICY_FIELDS, Policy, Problem};

/// The limit of fields in one section.
const FIELDS_MAX: usize = 100;
/// Bytes in a descriptor.
const DESCRIPTOR_BYTES_MAX: usize = 64 << 10;

/// The descriptor of a job type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Descriptor {
    /// Its name for users.
    pub display_name: String,
    /// Its description.
    pub description: String,
    /// The fields that operators configure.
    pub admin: Vec<Field>,
    /// Further fields for workers.
    pub worker: Vec<Field>,
    /// The suggested policy, by field: `{"interval": "17m"}`.
    pub policy: Map<String, Value>,
}

impl Descriptor {
    /// A descriptor with a name for users.
    pub fn new(display_name: &str, description: &str) -> Self {
        Self {
            display_name: display_name.to_owned(),
            description: description.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a field for operators.
    #[must_use]
    pub fn admin(mut self, field: Field) -> Self {
        self.admin.push(field);
        self
    }

    /// Adds a field for workers.
    #[must_use]
    pub fn worker(mut self, field: Field) -> Self {
        self.worker.push(field);
        self
    }

    /// Adds a default of the policy.
    #[must_use]
    pub fn policy(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.policy.insert(field.to_owned(), value.into());
        self
    }

    /// Parses and checks a descriptor.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text.len() > DESCRIPTOR_BYTES_MAX {
            let problem = format!("has {} bytes of at most {DESCRIPTOR_BYTES_MAX}", text.len());
            return Err(Problem::new("descriptor", problem));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let descriptor: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            Problem::new(format!("descriptor.{path}"), error.into_inner().to_string())
        })?;
        descriptor.check().map_err(|problem| problem.inside("descriptor"))?;
        Ok(descriptor)
    }

    /// As JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("names are strings, and numbers are finite")
    }

    /// Returns the first invalid value as an error.
    pub fn check(&self) -> Result<(), Problem> {
        for (field, text) in
            [("display_name", &self.display_name), ("description", &self.description)]
        {
            if text.len() > TEXT_BYTES_MAX {
                let problem = format!("has {} bytes of at most {TEXT_BYTES_MAX}", text.len());
                return Err(Problem::new(field, problem));
            }
        }
        check_fields(&self.admin).map_err(|problem| problem.inside("admin"))?;
        check_fields(&self.worker).map_err(|problem| problem.inside("worker"))?;
        Policy::resolve(&Map::new(), &self.policy).map_err(|problem| problem.inside("policy"))?;
        Ok(())
    }

    /// The configuration for operators: the given values, and defaults for the rest.
    pub fn admin_values(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
        values(&self.admin, given).map_err(|problem| problem.inside("admin"))
    }

    /// The configuration for workers: the given values, and defaults for the rest.
    pub fn worker_values(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
        values(&self.worker, given).map_err(|problem| problem.inside("worker"))
    }
}

fn check_fields(fields: &[Field]) -> Result<(), Problem> {
    if fields.len() > FIELDS_MAX {
        let problem = format!("has {} fields of at most {FIELDS_MAX}", fields.len());
        return Err(Problem::new("fields", problem));
    }
    let mut names = BTreeSet::new();
    for field in fields {
        let is_odd = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let name = &field.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(is_odd) {
            let problem = "is no name: letters, digits, `_` and `-`";
            return Err(Problem::new(format!("name `{name}`"), problem));
        }
        if !names.insert(name.as_str()) {
            return Err(Problem::new(name, "is there twice"));
        }
        if let Some(default) = &field.default {
            field.checked(default)?;
        }
    }
    for field in fields {
        if let Some(other) = &field.visible_if
            && !names.contains(other.field.as_str())
        {
            let problem = format!("names `{}`, which is no field", other.field);
            return Err(Problem::new(format!("{}.visible_if", field.name), problem));
        }
    }
    Ok(())
}

fn values(fields: &[Field], given: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    if let Some(unknown) = given.keys().find(|name| !names.contains(&name.as_str())) {
        let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
        return Err(Problem::new(unknown, format!("is no field of this type; fields: {known}")));
    }
    let mut values = Map::new();
    for field in fields {
        let value = match given.get(&field.name) {
            Some(value) => Some(field.checked(value)?),
            None => field.default.clone(),
        };
        if let Some(value) = value {
            values.insert(field.name.clone(), value);
        }
    }
    let hidden: Vec<&Field> = fields.iter().filter(|field| !field.is_visible(&values)).collect();
    for field in hidden {
        values.remove(&field.name);
    }
    Ok(values)
}

/// Whether a policy has a field of this name.
pub(crate) fn is_policy_field(name: &str) -> bool {
    POLICY_FIELDS.iter().any(|field| field.name == name)
}
