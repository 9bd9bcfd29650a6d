//! Checks of requests, field by field.

use std::collections::HashMap;

use model::maxima::{AMOUNTS_MAX, DURATION_MS_MAX, KEYS_MAX, NAME_BYTES_MAX};
use model::maxima::{NUMBER_MAX, TIMESTAMP_MS_MAX, VALUES_MAX};
use model::{Fixed, Millis, Name, Timestamp};

use crate::v1;

/// An invalid field: its path, and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct Invalid {
    /// The path, such as `jobs[3].priority`.
    pub field: String,
    /// The value and the limit: the rest of a sentence that starts with the field.
    pub problem: String,
}

impl Invalid {
    /// An error about `field`. `problem` is the rest of the sentence.
    pub fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into() }
    }

    /// The same error with a path inside `outer`.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// A mandatory name.
pub fn name(field: &str, text: &str) -> Result<Name, Invalid> {
    optional_name(field, text)?.ok_or_else(|| Invalid::new(field, "is missing"))
}

/// A name, or `None` for the empty text.
pub fn optional_name(field: &str, text: &str) -> Result<Option<Name>, Invalid> {
    self::text(field, text, NAME_BYTES_MAX)?;
    Ok((!text.is_empty()).then(|| Name::new(text)))
}

/// A text of at most `max` bytes without control characters.
pub fn text<'a>(field: &str, text: &'a str, max: usize) -> Result<&'a str, Invalid> {
    if text.len() > max {
        return Err(Invalid::new(field, format!("has {} bytes of at most {max}", text.len())));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(field, "has control characters in it"));
    }
    Ok(text)
}

pub(crate) fn at_most(field: &str, number: usize, max: usize) -> Result<(), Invalid> {
    if number <= max {
        return Ok(());
    }
    Err(Invalid::new(field, format!("has {number} entries of at most {max}")))
}

pub(crate) fn within<T: PartialOrd + std::fmt::Display + Copy>(
    field: &str,
    number: T,
    (min, max): (T, T),
) -> Result<T, Invalid> {
    if min <= number && number <= max {
        return Ok(number);
    }
    Err(Invalid::new(field, format!("is {number}, which is not between {min} and {max}")))
}

pub(crate) fn moment(field: &str, ms: Option<i64>) -> Result<Option<Timestamp>, Invalid> {
    ms.map(|ms| within(field, ms, (0, TIMESTAMP_MS_MAX)).map(Timestamp)).transpose()
}

pub(crate) fn length(field: &str, ms: Option<u64>) -> Result<Option<Millis>, Invalid> {
    let checked = ms.map(|ms| {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        within(field, ms, (0, DURATION_MS_MAX)).map(Millis)
    });
    checked.transpose()
}

/// A number from zero to the largest.
pub(crate) fn number(field: &str, number: Option<f64>) -> Result<Option<Fixed>, Invalid> {
    let Some(number) = number else { return Ok(None) };
    let max = Fixed::whole(NUMBER_MAX);
    match Fixed::from_f64(number) {
        Some(fixed) if fixed >= Fixed::ZERO && fixed <= max => Ok(Some(fixed)),
        _ => Err(Invalid::new(field, format!("is {number}, which is not between 0 and {max}"))),
    }
}

/// Names with lists of names: requirements of a job, attributes of a worker.
pub(crate) fn values(
    field: &str,
    map: &HashMap<String, v1::Values>,
) -> Result<std::collections::BTreeMap<Name, Vec<Name>>, Invalid> {
    at_most(field, map.len(), KEYS_MAX)?;
    let mut checked = std::collections::BTreeMap::new();
    for (key, values) in map {
        at_most(&format!("{field}.{key}"), values.values.len(), VALUES_MAX)?;
        let place = format!("{field}.{key}");
        let names: Result<Vec<Name>, Invalid> =
            values.values.iter().map(|value| name(&place, value)).collect();
        let mut names = names?;
        if names.is_empty() {
            return Err(Invalid::new(&place, "has no values"));
        }
        names.sort();
        names.dedup();
        checked.insert(name(field, key)?, names);
    }
    Ok(checked)
}

pub(crate) fn amounts(
    field: &str,
    map: &HashMap<String, u64>,
) -> Result<model::job::Amounts, Invalid> {
    at_most(field, map.len(), AMOUNTS_MAX)?;
    let max = NUMBER_MAX.unsigned_abs();
    map.iter()
        .map(|(key, amount)| {
            let place = format!("{field}.{key}");
            Ok((name(field, key)?, within(&place, *amount, (0, max))?))
        })
        .collect()
}
