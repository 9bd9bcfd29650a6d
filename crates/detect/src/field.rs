//! One configuration field of a job type: what it may hold, and how a form shows it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Problem, length};

/// Bytes in a text that is configured.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// True or false.
    Flag,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// Words.
    Text,
    /// A length of time with its unit: `17m`.
    Length,
    /// One of its choices.
    Choice,
}

/// One configuration field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// What holds if nobody sets it; absent means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The least: a number, the seconds of a length, or the bytes of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What may be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Fields of one section are shown together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
    /// It counts only if another field has a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_if: Option<VisibleIf>,
}

/// Another field has a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisibleIf {
    /// The other field.
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

    /// What holds if nobody sets it.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// The least and the most.
    #[must_use]
    pub fn range(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// What may be chosen.
    #[must_use]
    pub fn choices(mut self, choices: &[&str]) -> Self {
        self.choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        self
    }

    /// What it is for.
    #[must_use]
    pub fn help(mut self, help: &str) -> Self {
        help.clone_into(&mut self.help);
        self
    }

    /// The value in its own kind, from a document or from a word of a command line.
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

    /// Whether it counts, given what else is configured.
    pub(crate) fn is_visible(&self, values: &Map<String, Value>) -> bool {
        self.visible_if.as_ref().is_none_or(|other| values.get(&other.field) == Some(&other.is))
    }
}
