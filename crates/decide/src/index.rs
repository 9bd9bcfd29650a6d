//! Finding a thing by its id, and names by number.

#![expect(clippy::disallowed_types, reason = "looked up only, never iterated: order cannot leak")]

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use model::Name;

use crate::table::{Ix, NameIx};

/// A map that can be asked but not walked, so that its order cannot reach a decision.
///
/// For keys that strangers choose: which of them collide depends on the seed of the world, so who
/// does not know the seed cannot send many that do. A caller that takes in jobs of strangers makes
/// worlds with a seed that they cannot guess.
pub(crate) type Lookup<K, V> = Map<K, V, Seeded>;

/// The same for keys that we choose ourselves, and faster.
pub(crate) type QuickLookup<K, V> = Map<K, V, BuildHasherDefault<Quick>>;

#[derive(Clone, Debug)]
pub(crate) struct Map<K, V, S> {
    map: HashMap<K, V, S>,
}

impl<K, V, H> Default for Map<K, V, BuildHasherDefault<H>> {
    fn default() -> Self {
        Self { map: HashMap::default() }
    }
}

impl<K, V> Lookup<K, V> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { map: HashMap::with_hasher(Seeded::new(seed)) }
    }
}

impl<K: Eq + Hash, V: Copy, S: BuildHasher> Map<K, V, S> {
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

/// The golden ratio as a fraction of 2^64: its multiples are spread evenly.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Makes hashers that depend on a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded {
    start: u64,
    factor: u64,
}

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        let start = folded(seed ^ SPREAD, SPREAD);
        // Odd, so that no product loses a bit.
        Self { start, factor: folded(start ^ seed, SPREAD.rotate_left(32)) | 1 }
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folding;
    fn build_hasher(&self) -> Folding {
        Folding { state: self.start, factor: self.factor }
    }
}

/// Mixes words by products of twice their width, both halves of which count: each bit of a word
/// reaches each bit of the hash, in a way that depends on the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folding {
    state: u64,
    factor: u64,
}

fn folded(one: u64, two: u64) -> u64 {
    let (low, high) = one.carrying_mul(two, 0);
    low ^ high
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        // At most seven are left: the eighth says how many, so that zeros at the end count.
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = u8::try_from(rest.len()).expect("fewer than eight are left");
        self.write_u64(u64::from_le_bytes(last));
    }

    fn write_u64(&mut self, word: u64) {
        self.state = folded(self.state ^ word, self.factor);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(u64::try_from(word).expect("a u64 holds a usize"));
    }

    fn write_isize(&mut self, word: isize) {
        self.write_usize(word.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

/// Mixes words by multiplication: a few instructions for a key of a few words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

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
#[derive(Clone, Debug)]
pub(crate) struct Names {
    numbers: Lookup<Name, NameIx>,
    names: Vec<Name>,
}

impl Names {
    pub(crate) fn new(seed: u64) -> Self {
        Self { numbers: Lookup::new(seed), names: Vec::new() }
    }

    pub(crate) fn intern(&mut self, name: &Name) -> NameIx {
        if let Some(ix) = self.numbers.get(name) {
            return ix;
        }
        let ix = NameIx::new(self.names.len());
        self.numbers.insert(name.clone(), ix);
        self.names.push(name.clone());
        ix
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn find(&self, name: &Name) -> Option<NameIx> {
        self.numbers.get(name)
    }

    pub(crate) fn name(&self, ix: NameIx) -> &Name {
        &self.names[ix.at()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(seed: u64, name: &str) -> u64 {
        Seeded::new(seed).hash_one(Name::new(name))
    }

    #[test]
    fn names_that_collide_under_one_seed_do_not_under_another() {
        let bucket = |seed: u64, name: &str| hash(seed, name) % 1_024;
        let names =
            (0..100_000).map(|at| if at % 2 == 0 { at.to_string() } else { format!("j{at}") });
        let alike: Vec<String> = names.filter(|name| bucket(1, name) == 0).collect();
        assert!((50..200).contains(&alike.len()), "{} of 100,000 in one bucket", alike.len());
        let still = alike.iter().filter(|name| bucket(2, name) == bucket(2, &alike[0])).count();
        assert!(still < 10, "{still} of {}", alike.len());
    }

    #[test]
    fn zeros_at_the_end_of_a_name_count() {
        assert_ne!(hash(0, "a"), hash(0, "a\0"));
        assert_ne!(hash(0, "abcdefg"), hash(0, "abcdefg\0"));
    }
}
