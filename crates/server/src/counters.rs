//! How often what happened since the scheduler started.

use std::collections::BTreeMap;

/// Counts by permanent name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    pub(crate) fn add(&mut self, name: &'static str, n: usize) {
        if n > 0 {
            *self.0.entry(name).or_default() += u64::try_from(n).unwrap_or(u64::MAX);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, n)| (*name, *n))
    }
}
