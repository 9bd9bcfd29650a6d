//! Finding a thing by its id, and names by number.

#![expect(clippy::disallowed_types, reason = "looked up only, never iterated: order cannot leak")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use model::Name;

use crate::table::{Ix, NameIx};

/// A map that can be asked but not walked, so that its order cannot reach a decision.
///
/// For keys that strangers choose: many that collide are hard to find.
pub(crate) type Lookup<K, V> = Map<K, V, DefaultHasher>;

/// The same for keys that we choose ourselves, and faster.
pub(crate) type QuickLookup<K, V> = Map<K, V, Quick>;

#[derive(Clone, Debug)]
pub(crate) struct Map<K, V, H> {
    map: HashMap<K, V, BuildHasherDefault<H>>,
}

impl<K, V, H> Default for Map<K, V, H> {
    fn default() -> Self {
        Self { map: HashMap::default() }
    }
}

impl<K: Eq + Hash, V: Copy, H: Hasher + Default> Map<K, V, H> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.map.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.map.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }
}

/// Mixes words by multiplication: a few instructions for a key of a few words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

/// The golden ratio as a fraction of 2^64: its multiples are spread evenly.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(padded));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.write(&word.to_le_bytes());
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(SPREAD);
        mixed ^ (mixed >> 29)
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
