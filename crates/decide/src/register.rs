//! Where every job is: waiting or running.
//!
//! A job's id is looked up when it comes and when it goes. In between, its entry follows it, so
//! that placing a job among millions does not search for its id again.

use std::hash::BuildHasher;

use model::JobId;

use crate::index::Seeded;
use crate::slots::Slots;
use crate::table::{AttemptIx, EntryIx, JobIx, Table};

/// Where a job is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Waiting(JobIx),
    Running(AttemptIx),
    /// On its way from one to the other.
    Nowhere,
}

#[derive(Clone, Debug)]
pub(crate) struct Register {
    /// Ids are strangers' to choose, so where they are kept depends on a seed.
    seeded: Seeded,
    slots: Slots,
    entries: Table<EntryIx, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    id: JobId,
    place: Place,
}

impl Register {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seeded: Seeded::new(seed), slots: Slots::default(), entries: Table::default() }
    }

    pub(crate) fn get(&self, id: &JobId) -> Option<Place> {
        let entry = self.slots.find(self.seeded.hash_one(id), |own| self.entries[own].id == *id);
        entry.map(|entry| self.entries[entry].place)
    }

    /// The waiting job of this id.
    pub(crate) fn waiting(&self, id: &JobId) -> Option<JobIx> {
        match self.get(id)? {
            Place::Waiting(ix) => Some(ix),
            Place::Running(_) | Place::Nowhere => None,
        }
    }

    /// The running attempt of the job of this id.
    pub(crate) fn running(&self, id: &JobId) -> Option<AttemptIx> {
        match self.get(id)? {
            Place::Running(ix) => Some(ix),
            Place::Waiting(_) | Place::Nowhere => None,
        }
    }

    /// A new entry for a job; `None` if it is in here.
    pub(crate) fn add(&mut self, id: &JobId) -> Option<EntryIx> {
        let entries = &self.entries;
        let next = entries.next();
        let hash = self.seeded.hash_one(id);
        let entry = self.slots.insert(hash, |own| entries[own].id == *id, || next)?;
        let place = self.entries.insert(Entry { id: id.clone(), place: Place::Nowhere });
        debug_assert!(place == entry, "the next place is the next place");
        Some(entry)
    }

    pub(crate) fn set(&mut self, entry: EntryIx, place: Place) {
        self.entries[entry].place = place;
    }

    /// Forgets a job; its entry says which.
    pub(crate) fn remove(&mut self, entry: EntryIx) {
        let Entry { id, .. } = self.entries.remove(entry);
        self.slots.remove(self.seeded.hash_one(&id), |own| own == entry);
    }
}
