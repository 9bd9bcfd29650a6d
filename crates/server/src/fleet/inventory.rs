//! Which inputs each worker holds, and so what each lacks of the jobs that wait.

use std::collections::{BTreeMap, BTreeSet};

use decide::World;
use model::maxima::INVENTORY_MAX;
use model::{Event, Input, Inputs, JobId, Record, WorkerId};
use proto::v1;

/// What workers hold, and what waiting jobs read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inventories {
    workers: BTreeMap<WorkerId, Holding>,
    /// Waiting jobs that read something.
    jobs: BTreeMap<JobId, Vec<Input>>,
    /// The waiting jobs that read each input.
    readers: BTreeMap<String, BTreeSet<JobId>>,
}

#[derive(Clone, Debug, Default)]
struct Holding {
    digests: BTreeSet<String>,
    /// Everything was said once: what is not in here, the worker lacks.
    is_known: bool,
}

impl Inventories {
    /// A worker came. What it held before is not assumed to be there still.
    pub(crate) fn came(&mut self, worker: &WorkerId, has_inventory: bool) {
        self.workers.remove(worker);
        if has_inventory {
            self.workers.insert(worker.clone(), Holding::default());
        }
    }

    pub(crate) fn left(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
    }

    /// A job waits: the world is told what each worker lacks of its inputs.
    pub(crate) fn wait(&mut self, record: &Record, world: &mut World) {
        if record.spec.inputs.is_empty() {
            return;
        }
        for input in &record.spec.inputs {
            self.readers.entry(input.digest.clone()).or_default().insert(record.id.clone());
        }
        self.jobs.insert(record.id.clone(), record.spec.inputs.clone());
        for (worker, holding) in &self.workers {
            tell(world, worker, holding, &record.id, &record.spec.inputs);
        }
    }

    /// A job waits no longer.
    pub(crate) fn forget(&mut self, job: &JobId) {
        for input in self.jobs.remove(job).unwrap_or_default() {
            if let Some(readers) = self.readers.get_mut(&input.digest) {
                readers.remove(job);
                if readers.is_empty() {
                    self.readers.remove(&input.digest);
                }
            }
        }
    }

    /// A worker says what it holds, or what changed. What goes beyond the limit is not kept: the
    /// worker counts as lacking it, which costs a detour and nothing else.
    pub(crate) fn hear(&mut self, worker: &WorkerId, said: v1::Inventory, world: &mut World) {
        let Some(holding) = self.workers.get_mut(worker) else { return };
        if said.full {
            *holding = Holding::default();
        }
        let was_known = holding.is_known;
        let mut touched = BTreeSet::new();
        for digest in said.removed {
            if holding.digests.remove(&digest) {
                touched.extend(self.readers.get(&digest).into_iter().flatten().cloned());
            }
        }
        for digest in said.added {
            if holding.digests.len() >= INVENTORY_MAX {
                break;
            }
            touched.extend(self.readers.get(&digest).into_iter().flatten().cloned());
            holding.digests.insert(digest);
        }
        holding.is_known |= !said.more;
        if holding.is_known && !was_known {
            touched.extend(self.jobs.keys().cloned());
        }
        for job in touched {
            if let Some(inputs) = self.jobs.get(&job) {
                tell(world, worker, holding, &job, inputs);
            }
        }
    }

    /// Jobs of which nobody knows the inputs come a round closer to being placed all the same.
    pub(crate) fn rescore(&self, world: &mut World) {
        if self.workers.values().any(|holding| holding.is_known) {
            return;
        }
        for job in self.jobs.keys() {
            world.apply(Event::Unscored(job.clone()));
        }
    }
}

fn tell(world: &mut World, worker: &WorkerId, holding: &Holding, job: &JobId, inputs: &[Input]) {
    if !holding.is_known {
        return;
    }
    let missing = inputs.iter().filter(|input| !holding.digests.contains(&input.digest));
    let (paths, bytes) = missing.fold((0_u32, 0_u64), |(paths, bytes), input| {
        (paths.saturating_add(1), bytes.saturating_add(input.bytes))
    });
    let inputs = Inputs { missing_paths: Some(paths), missing_bytes: Some(bytes) };
    world.apply(Event::Inputs { worker: worker.clone(), job: job.clone(), inputs });
}
