//! Finding entries by the hash of their id, in as little memory as it takes.
//!
//! Among millions of jobs, what costs is not to compare ids but to wait for memory. A slot is eight
//! bytes, so looking at one mostly takes one wait; the id is beside what is looked for anyway.

use crate::table::{EntryIx, Ix};

/// A table that is asked by hash, and says yes or no to what the caller finds there.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// A power of two of them; an entry is in the first free slot from where its hash says.
    slots: Vec<Slot>,
    n_used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    entry: EntryIx,
}

/// Stands for an empty slot.
const HASH_EMPTY: u32 = 0;

const N_SLOTS_MIN: usize = 16;

impl Default for Slots {
    fn default() -> Self {
        Self { slots: empty(N_SLOTS_MIN), n_used: 0 }
    }
}

fn empty(n_slots: usize) -> Vec<Slot> {
    vec![Slot { hash: HASH_EMPTY, entry: EntryIx::new(0) }; n_slots]
}

/// Half of a hash, kept apart from what stands for nothing.
fn shortened(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("half of a u64 is a u32").max(HASH_EMPTY + 1)
}

impl Slots {
    /// The entry of this hash that `is_it`.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(EntryIx) -> bool) -> Option<EntryIx> {
        self.place(shortened(hash), is_it).ok().map(|at| self.slots[at].entry)
    }

    /// Adds an entry of this hash, unless there is one that `is_it`.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        is_it: impl Fn(EntryIx) -> bool,
        make: impl FnOnce() -> EntryIx,
    ) -> Option<EntryIx> {
        // Three quarters full, they would soon stand in long rows.
        if self.n_used >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let hash = shortened(hash);
        let at = self.place(hash, is_it).err()?;
        let entry = make();
        self.slots[at] = Slot { hash, entry };
        self.n_used += 1;
        Some(entry)
    }

    /// Takes out the entry of this hash that `is_it`.
    pub(crate) fn remove(&mut self, hash: u64, is_it: impl Fn(EntryIx) -> bool) -> Option<EntryIx> {
        let mut hole = self.place(shortened(hash), is_it).ok()?;
        let entry = self.slots[hole].entry;
        let mut at = self.after(hole);
        // Those behind move up, as far as their own hashes let them: no search ends at the hole.
        while self.slots[at].hash != HASH_EMPTY {
            let home = self.home(self.slots[at].hash);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.slots[hole].hash = HASH_EMPTY;
        self.n_used -= 1;
        Some(entry)
    }

    /// Where it is, or else where it would be.
    fn place(&self, hash: u32, is_it: impl Fn(EntryIx) -> bool) -> Result<usize, usize> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot.hash == HASH_EMPTY {
                return Err(at);
            }
            if slot.hash == hash && is_it(slot.entry) {
                return Ok(at);
            }
            at = self.after(at);
        }
    }

    fn grow(&mut self) {
        let larger = empty(self.slots.len() * 2);
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.hash != HASH_EMPTY {
                let at = self.place(slot.hash, |_| false).unwrap_or_else(|at| at);
                self.slots[at] = slot;
            }
        }
    }

    fn home(&self, hash: u32) -> usize {
        usize::try_from(hash).expect("a usize holds a u32") & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// Steps from one slot to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few hashes, so that many collide and stand in each other's way, round the end, too.
        #[test]
        fn what_was_put_in_and_not_taken_out_is_found(
            steps in proptest::collection::vec((0..60_usize, any::<bool>()), 0..400),
        ) {
            let hash = |at: usize| u64::try_from(at % 7 + 12).unwrap() << 32;
            let (mut slots, mut model) = (Slots::default(), BTreeSet::new());
            for (at, is_in) in steps {
                let entry = EntryIx::new(at);
                if is_in {
                    let added = slots.insert(hash(at), |own| own == entry, || entry);
                    prop_assert_eq!(added.is_some(), model.insert(at));
                } else {
                    let removed = slots.remove(hash(at), |own| own == entry);
                    prop_assert_eq!(removed.is_some(), model.remove(&at));
                }
                for at in 0..60 {
                    let found = slots.find(hash(at), |own| own == EntryIx::new(at));
                    prop_assert_eq!(found.is_some(), model.contains(&at));
                }
            }
        }
    }
}
