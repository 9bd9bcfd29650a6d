//! One configuration field of a job type: its allowed values, and its presentation in a form.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Problem, length};

/// Bytes in a configured text.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// True or false.
    Flag,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A duration with its unit: `17m`.
    Length,
    /// One of its choices.
    Choice,
}

/// One configuration field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The kind of its value.
    pub kind: Kind,
    /// The default. `None` means no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The minimum: of a number, of a duration in seconds, or of a text in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The allowed choices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// The section of the form that shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// A condition on a different field, without which it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_if: Option<VisibleIf>,
}

/// A condition: a different field has this value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisibleIf {
    /// The name of that field.
    pub field: String,
    /// Its value.
    pub is: Value,
}

impl Field {
    /// A field without default, range or help.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            default: None,
            min: None,
            max: None,
            choices: Vec::new(),
            help: String::new(),
            section: String::new(),
            visible_if: None,
        }
    }

    /// Sets the default.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Sets the minimum and the maximum.
    #[must_use]
    pub fn range(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// Sets the allowed choices.
    #[must_use]
    pub fn choices(mut self, choices: &[&str]) -> Self {
        self.choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn help(mut self, help: &str) -> Self {
        help.clone_into(&mut self.help);
        self
    }

    /// The value in the kind of the field, from a document or from a command line argument.
    pub fn checked(&self, value: &Value) -> Result<Value, Problem> {
        let wrong = |problem: String| Problem::new(&self.name, problem);
        let not = |what: &str| wrong(format!("is {value}, which is not {what}"));
        match self.kind {
            Kind::Flag => {
                let flag = value.as_bool().or_else(|| value.as_str()?.parse().ok());
                flag.map(Value::Bool).ok_or_else(|| not("true or false"))
            }
            Kind::Whole => {
                let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                let number = number.ok_or_else(|| not("a whole number"))?;
                #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a range")]
                self.within(number as f64, value)?;
                Ok(number.into())
            }
            Kind::Number => {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                let number = number.filter(|one: &f64| one.is_finite());
                let number = number.ok_or_else(|| not("a number"))?;
                self.within(number, value)?;
                Ok(number.into())
            }
            Kind::Text => {
                let text = value.as_str().ok_or_else(|| not("a text"))?;
                if text.len() > TEXT_BYTES_MAX {
                    let n = text.len();
                    return Err(wrong(format!("has {n} bytes of at most {TEXT_BYTES_MAX}")));
                }
                Ok(value.clone())
            }
            Kind::Length => {
                let text = value.as_str().ok_or_else(|| not("a length of time such as \"17m\""))?;
                let ms = length(text).map_err(wrong)?;
                #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a range")]
                self.within(ms.0 as f64 / 1_000.0, value)?;
                Ok(value.clone())
            }
            Kind::Choice => {
                let chosen = value.as_str().filter(|word| self.choices.iter().any(|c| c == word));
                chosen.ok_or_else(|| not(&format!("one of {}", self.choices.join(", "))))?;
                Ok(value.clone())
            }
        }
    }

    fn within(&self, number: f64, value: &Value) -> Result<(), Problem> {
        let (min, max) = (self.min.unwrap_or(f64::MIN), self.max.unwrap_or(f64::MAX));
        if (min..=max).contains(&number) {
            return Ok(());
        }
        let unit = if self.kind == Kind::Length { " seconds" } else { "" };
        let problem = match (self.min, self.max) {
            (Some(min), Some(max)) => {
                format!("is {value}, which is not between {min} and {max}{unit}")
            }
            (Some(min), None) => format!("is {value}, which is below {min}{unit}"),
            (None, _) => format!("is {value}, which is above {max}{unit}"),
        };
        Err(Problem::new(&self.name, problem))
    }

    /// Whether it has an effect with these values.
    pub(crate) fn is_visible(&self, values: &Map<String, Value>) -> bool {
        self.visible_if.as_ref().is_none_or(|other| values.get(&other.field) == Some(&other.is))
    }
}
