//! Moments and lengths of time, in milliseconds. Nothing here reads a clock.

use std::ops::{Add, Sub};

/// A moment: milliseconds since whatever the caller counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Timestamp {
    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Self) -> Millis {
        let length = self.0.saturating_sub(earlier.0);
        Millis(if length < 0 { 0 } else { length })
    }
}

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many whole seconds.
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
