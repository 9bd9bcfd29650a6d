//! Times and durations in milliseconds. This crate reads no clock.

use std::ops::{Add, Sub};

/// A time: milliseconds since an epoch that the caller selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Timestamp {
    /// The duration since `earlier`. Zero if `earlier` is not before.
    pub const fn since(self, earlier: Self) -> Millis {
        let length = self.0.saturating_sub(earlier.0);
        Millis(if length < 0 { 0 } else { length })
    }
}

impl Millis {
    /// The empty duration.
    pub const ZERO: Self = Self(0);

    /// A duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds * 1_000)
    }
}

impl Add<Millis> for Timestamp {
    type Output = Self;
    fn add(self, length: Millis) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl Sub<Millis> for Timestamp {
    type Output = Self;
    fn sub(self, length: Millis) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}
