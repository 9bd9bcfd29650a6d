//! What is remembered of many, as long as it is used.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// So many are young; as many again are remembered.
pub(super) const YOUNG_MAX: usize = 10_000;

/// Something that jobs have in common: a hash of it. That two have the same is not to be expected,
/// and would cost no more than a bad guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Way(u64);

impl Way {
    pub(super) fn of(common: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        common.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// This, and something else.
    pub(super) fn and(self, more: &impl Hash) -> Self {
        Self::of(&(self.0, more))
    }
}

/// What is known by what jobs have in common.
#[derive(Clone, Debug)]
pub(super) struct Memory<T> {
    /// What was learnt about lately …
    young: BTreeMap<Way, T>,
    /// … and before that. What is in neither is forgotten.
    old: BTreeMap<Way, T>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new() }
    }
}

impl<T: Default> Memory<T> {
    pub(super) fn get(&self, way: Way) -> Option<&T> {
        self.young.get(&way).or_else(|| self.old.get(&way))
    }

    /// What is known, to be changed: from now on it is young.
    pub(super) fn change(&mut self, way: Way) -> &mut T {
        if self.young.len() >= YOUNG_MAX && !self.young.contains_key(&way) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.entry(way).or_insert_with(|| self.old.remove(&way).unwrap_or_default())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
