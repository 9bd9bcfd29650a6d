//! Finding a thing by its id, and names by number.

#![expect(clippy::disallowed_types, reason = "looked up only, never iterated: order cannot leak")]

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};

use model::Name;

use crate::table::{Ix, NameIx};

/// A map that can be asked but not walked, so that its order cannot reach a decision.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V> {
    map: HashMap<K, V, BuildHasherDefault<DefaultHasher>>,
}

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Self { map: HashMap::default() }
    }
}

impl<K: Eq + Hash, V: Copy> Lookup<K, V> {
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.map.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.map.insert(key, value);
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.map.remove(key);
    }
}

/// Names by number, and back. A name keeps its number for ever.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: Lookup<Name, NameIx>,
    names: Vec<Name>,
}

impl Names {
    pub(crate) fn intern(&mut self, name: &Name) -> NameIx {
        if let Some(ix) = self.numbers.get(name) {
            return ix;
        }
        let ix = NameIx::new(self.names.len());
        self.numbers.insert(name.clone(), ix);
        self.names.push(name.clone());
        ix
    }

    pub(crate) fn find(&self, name: &Name) -> Option<NameIx> {
        self.numbers.get(name)
    }

    pub(crate) fn name(&self, ix: NameIx) -> &Name {
        &self.names[ix.at()]
    }
}
