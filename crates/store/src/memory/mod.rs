//! A store of plain collections behind a lock: the shortest definition of a store's behaviour.
//!
//! For tests and simulations. It persists nothing, and is not fast.

mod submit;
mod finish;
mod lease;
mod read;
mod forget;
mod note;
mod notice;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use model::{Fixed, JobId, Name, Record, State, TenantId, Timestamp, WorkerId};

use crate::clock::Steady;
use crate::{Lead, LogChunk, Notice, Options, Past, Run, SettingKind, number};

/// A store of plain collections.
pub struct Memory {
    clock: Steady,
    state: Mutex<World>,
}

/// All data of the store.
struct World {
    options: Options,
    next_job: i64,
    /// Jobs with a reserved number that are not submitted yet, by tenant.
    n_ahead: BTreeMap<TenantId, usize>,
    /// All jobs, finished or not.
    jobs: BTreeMap<i64, Record>,
    /// The jobs that are not final.
    unfinished: BTreeSet<i64>,
    /// Unfinished jobs that have a dedupe key.
    dedupe: BTreeMap<(TenantId, Name, String), i64>,
    /// Pairs of an unfinished job and an unfinished dependent.
    waits: BTreeSet<(i64, i64)>,
    pasts: BTreeMap<(i64, u32), Past>,
    logs: BTreeMap<(i64, u32, u64), LogChunk>,
    sessions: BTreeMap<WorkerId, Lease>,
    /// The highest generation of a deleted worker.
    generations: u64,
    settings: BTreeMap<(SettingKind, String), String>,
    usage: BTreeMap<(i64, TenantId), (Fixed, u64)>,
    /// Oldest first.
    runs: Vec<Run>,
    keys: BTreeMap<(TenantId, String), ([u8; 32], Vec<i64>)>,
    /// Jobs that belong to an idempotency key.
    keyed: BTreeSet<i64>,
    leads: BTreeMap<String, Lead>,
    /// Documents of schedulers, by minute.
    minutes: BTreeMap<i64, String>,
    notes: BTreeMap<u64, note::Kept>,
    /// The number of the last note.
    n_notes: u64,
    /// Notices, with the time at which each is due.
    notices: BTreeMap<u64, (Timestamp, Notice)>,
    next_notice: u64,
}

struct Lease {
    generation: u64,
    until: Timestamp,
    has_left: bool,
}

impl Memory {
    /// An empty store.
    pub fn new(options: Options) -> Self {
        let clock = Steady::new(options.clock(), Timestamp(0));
        let state = World {
            options,
            next_job: 1,
            n_ahead: BTreeMap::new(),
            jobs: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            dedupe: BTreeMap::new(),
            waits: BTreeSet::new(),
            pasts: BTreeMap::new(),
            logs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            generations: 0,
            settings: BTreeMap::new(),
            usage: BTreeMap::new(),
            runs: Vec::new(),
            keys: BTreeMap::new(),
            keyed: BTreeSet::new(),
            leads: BTreeMap::new(),
            minutes: BTreeMap::new(),
            notes: BTreeMap::new(),
            n_notes: 0,
            notices: BTreeMap::new(),
            next_notice: 1,
        };
        Self { clock, state: Mutex::new(state) }
    }

    /// Runs `work` on all data under the lock, with the current time.
    fn with<T>(&self, work: impl FnOnce(&mut World, Timestamp) -> T) -> T {
        let mut world = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut world, self.clock.now())
    }
}

impl World {
    fn job(&self, id: &JobId) -> Option<(i64, &Record)> {
        let number = number::of(id)?;
        Some((number, self.jobs.get(&number)?))
    }

    fn job_mut(&mut self, id: &JobId) -> Option<(i64, &mut Record)> {
        let number = number::of(id)?;
        Some((number, self.jobs.get_mut(&number)?))
    }

    /// The record of a job that must exist.
    fn known(&mut self, number: i64) -> &mut Record {
        self.jobs.get_mut(&number).expect("edges and lists name jobs that are there")
    }

    /// Updates the list of unfinished jobs for this job.
    fn list(&mut self, number: i64) {
        let Some(record) = self.jobs.get(&number) else { return };
        let spec = &record.spec;
        let key = spec.dedupe_key.as_ref();
        let key = key.map(|key| (spec.tenant.clone(), spec.kind.clone(), key.clone()));
        if record.state.is_terminal() {
            self.unfinished.remove(&number);
            key.map(|key| self.dedupe.remove(&key));
        } else {
            self.unfinished.insert(number);
            key.map(|key| self.dedupe.insert(key, number));
        }
    }

    fn state(&self, number: i64) -> Option<State> {
        self.jobs.get(&number).map(|record| record.state)
    }
}
