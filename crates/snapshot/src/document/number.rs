//! Numbers with limits.

use std::fmt;

use model::{Fixed, Millis, Timestamp, maxima};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// The limit of points of an ageing score that do not depend on time.
const POINTS_MAX: i64 = 1_000_000;
/// The limit of points for each second. Two slopes with the largest weight, times the latest time,
/// plus the rest of an ageing score, must fit into 64 bits.
const SLOPE_MAX: i64 = 400;
/// The limit of a rule's weight, and of the part of its predicted run time that a job ages less.
const FACTOR_MAX: i64 = 100;

/// Types of whole numbers, each with its range.
macro_rules! whole {
    ($($(#[$doc:meta])* $name:ident($type:ty) = $min:expr, $max:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) $type);

        impl $name {
            const MIN: $type = $min;
            const MAX: $type = $max;
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let limits = Whole { min: Self::MIN.into(), max: Self::MAX.into() };
                let number = deserializer.deserialize_any(limits)?;
                Ok(Self(number.try_into().expect("a number within its limits fits its type")))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "integer", "minimum": Self::MIN, "maximum": Self::MAX })
            }
        }

        impl From<$name> for $type {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )*};
}

/// Types of numbers with three decimals, each with its range in whole numbers.
macro_rules! decimal {
    ($($(#[$doc:meta])* $name:ident = $min:expr, $max:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) Fixed);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Decimals { min: $min, max: $max }).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                fixed(self.0, serializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "number", "minimum": $min, "maximum": $max })
            }
        }

        impl From<$name> for Fixed {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )*};
}

whole! {
    /// A count.
    Count(u32) = 0, u32::MAX;
    /// A count of at least one.
    AtLeastOne(u32) = 1, u32::MAX;
    /// The number of samples. Each costs time, and a thousandth one finds no new worker.
    Attempts(u32) = 1, 1_000;
    /// Slots of a worker or a job.
    Slots(u32) = 1, maxima::SLOTS_MAX;
    /// Free slots.
    SlotsFree(u32) = 0, maxima::SLOTS_MAX;
    /// A priority.
    Priority(i32) = -maxima::PRIORITY_MAX, maxima::PRIORITY_MAX;
    /// A rank.
    Rank(i32) = -maxima::RANK_MAX, maxima::RANK_MAX;
    /// A whole percentage.
    Percentage(u32) = 0, 100;
    /// A time in milliseconds. Negative times are before the epoch.
    Moment(i64) = -maxima::TIMESTAMP_MS_MAX, maxima::TIMESTAMP_MS_MAX;
    /// A duration in milliseconds.
    Span(i64) = 0, maxima::DURATION_MS_MAX;
    /// Points of an ageing score.
    AgingPoints(i64) = 0, POINTS_MAX;
    /// Points of an ageing score for each second.
    Slope(i64) = 0, SLOPE_MAX;
    /// A large count.
    Quantity(u64) = 0, maxima::NUMBER_MAX.unsigned_abs();
    /// Any number of 64 bits.
    Natural(u64) = 0, u64::MAX;
}

decimal! {
    /// A cost, weight, average or metric.
    Number = 0, maxima::NUMBER_MAX;
    /// Points that may be negative.
    SignedNumber = -maxima::NUMBER_MAX, maxima::NUMBER_MAX;
    /// A fraction of all cases.
    Rate = 0, 1;
    /// A factor.
    Factor = 0, FACTOR_MAX;
    /// A percentage.
    Percent = 0, 100;
    /// A duration in seconds.
    Seconds = 0, maxima::DURATION_MS_MAX / 1_000;
}

impl From<Moment> for Timestamp {
    fn from(moment: Moment) -> Self {
        Self(moment.0)
    }
}

impl From<Timestamp> for Moment {
    fn from(moment: Timestamp) -> Self {
        Self(moment.0)
    }
}

impl From<Span> for Millis {
    fn from(length: Span) -> Self {
        Self(length.0)
    }
}

impl From<Millis> for Span {
    fn from(length: Millis) -> Self {
        Self(length.0)
    }
}

impl From<Seconds> for Millis {
    fn from(length: Seconds) -> Self {
        Self(length.0.in_thousandths())
    }
}

impl From<Millis> for Seconds {
    fn from(length: Millis) -> Self {
        Self(Fixed::thousandths(length.0))
    }
}

/// Writes a number with as many decimals as it needs: 185, not 185.0.
fn fixed<S: Serializer>(number: Fixed, serializer: S) -> Result<S::Ok, S::Error> {
    match number.in_thousandths() {
        whole if whole % 1_000 == 0 => serializer.serialize_i64(whole / 1_000),
        _ => serializer.serialize_f64(number.to_f64()),
    }
}

/// Accepts whole numbers from `min` to `max`. As in JSON Schema, 1.0 is whole.
struct Whole {
    min: i128,
    max: i128,
}

impl Whole {
    fn within<E: Error>(&self, number: i128, found: Unexpected<'_>) -> Result<i128, E> {
        let is_within = (self.min..=self.max).contains(&number);
        if is_within { Ok(number) } else { Err(E::invalid_value(found, self)) }
    }
}

impl Visitor<'_> for Whole {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i128, E> {
        self.within(number.into(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i128, E> {
        self.within(number.into(), Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i128, E> {
        let found = Unexpected::Float(number);
        match Fixed::from_f64(number) {
            Some(fixed) if number.fract().abs() <= 0.0 => {
                self.within((fixed.in_thousandths() / 1_000).into(), found)
            }
            Some(_) | None => Err(E::invalid_value(found, &self)),
        }
    }
}

/// Accepts numbers from `min` to `max`, and rounds them to three decimals.
struct Decimals {
    min: i64,
    max: i64,
}

impl Decimals {
    fn whole<E: Error>(&self, number: Option<i64>, found: Unexpected<'_>) -> Result<Fixed, E> {
        let within = number.filter(|number| (self.min..=self.max).contains(number));
        within.map(Fixed::whole).ok_or_else(|| E::invalid_value(found, self))
    }
}

impl Visitor<'_> for Decimals {
    type Value = Fixed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {} to {}", self.min, self.max)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Fixed, E> {
        self.whole(i64::try_from(number).ok(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Fixed, E> {
        self.whole(Some(number), Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Fixed, E> {
        // Before rounding: a number slightly above the limit is rejected.
        let (min, max) = (Fixed::whole(self.min).to_f64(), Fixed::whole(self.max).to_f64());
        let within = (min..=max).contains(&number).then(|| Fixed::from_f64(number)).flatten();
        within.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_ageing_score_stays_within_64_bits() {
        /// The largest prediction that counts, in milliseconds: about eleven days.
        const ESTIMATE_MAX: i64 = 1_000_000_000;
        let slope = SLOPE_MAX * FACTOR_MAX;
        let priority = 1_000 * POINTS_MAX * FACTOR_MAX * i64::from(maxima::PRIORITY_SCORED_MAX);
        let length = slope.checked_mul(ESTIMATE_MAX * FACTOR_MAX * FACTOR_MAX);
        let age = (2 * slope).checked_mul(maxima::TIMESTAMP_MS_MAX);
        let sum = age.zip(length).and_then(|(age, length)| age.checked_add(length + priority));
        assert!(sum.is_some(), "{age:?} + {length:?} + {priority}");
    }
}
