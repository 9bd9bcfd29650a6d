//! Where every job is: waiting or running.
//!
//! A job's id is looked up when it comes and when it goes. In between, its entry follows it, so
//! that placing a job among millions does not search for its id again.

use model::JobId;

use crate::index::Lookup;
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
    by_id: Lookup<JobId, EntryIx>,
    entries: Table<EntryIx, Place>,
}

impl Register {
    /// Nobody yet. Ids are strangers' to choose, so where they are kept depends on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { by_id: Lookup::new(seed), entries: Table::default() }
    }

    pub(crate) fn get(&self, id: &JobId) -> Option<Place> {
        self.by_id.get(id).map(|entry| self.entries[entry])
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
    pub(crate) fn add(&mut self, id: JobId) -> Option<EntryIx> {
        self.by_id.insert_new(id, || self.entries.insert(Place::Nowhere))
    }

    pub(crate) fn set(&mut self, entry: EntryIx, place: Place) {
        self.entries[entry] = place;
    }

    pub(crate) fn remove(&mut self, id: &JobId) {
        if let Some(entry) = self.by_id.remove(id) {
            self.entries.remove(entry);
        }
    }
}
