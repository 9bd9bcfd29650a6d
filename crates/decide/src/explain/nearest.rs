//! The workers that come nearest to running a job, and what each lacks.

use std::fmt;

use model::{Name, WorkerId};

use crate::seated::Seated;
use crate::waiting::Waiting;
use crate::world::World;

/// So many are told.
const NEAREST_MAX: usize = 3;

/// A worker, and what keeps a job from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The worker.
    pub worker: WorkerId,
    /// What it lacks, one by one. Empty if it lacks nothing.
    pub lacks: Vec<String>,
}

/// One thing that a worker lacks.
enum Lack<'a> {
    Pool { own: &'a Name, asked: &'a Name },
    Kind(&'a Name),
    Requirement { key: &'a Name, asked: &'a [Name], own: &'a [Name] },
    Slots { own: u32, asked: u32 },
    Amount { name: &'a Name, own: u64, asked: u64 },
    Drains,
    IsUnhealthy,
    Quota,
    TypeMax,
    FreeSlots { free: u32, all: u32, asked: u32 },
    FreeAmount { name: &'a Name, free: u64, all: u64, asked: u64 },
}

impl World {
    /// At most so many workers, those that lack least first. One that is gone is not near.
    pub(super) fn nearest(&self, waiting: &Waiting) -> Vec<Nearest> {
        let here = self.fleet.workers.iter().filter(|(_, seated)| !seated.is_gone);
        let mut all: Vec<(usize, &WorkerId, &Seated)> = here
            .map(|(_, seated)| (self.lacks(seated, waiting).len(), &seated.worker.id, seated))
            .collect();
        all.sort_by_key(|(n_lacks, id, _)| (*n_lacks, *id));
        all.truncate(NEAREST_MAX);
        let near = |(_, id, seated): (usize, &WorkerId, &Seated)| Nearest {
            worker: id.clone(),
            lacks: self.lacks(seated, waiting).iter().map(ToString::to_string).collect(),
        };
        all.into_iter().map(near).collect()
    }

    fn lacks<'a>(&'a self, seated: &'a Seated, waiting: &Waiting) -> Vec<Lack<'a>> {
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let fit = &self.fleet.catalogue.fits[class.fit].key;
        let mut lacks = Vec::new();
        if let Some(pool) = fit.pool.filter(|pool| *pool != seated.pool) {
            let asked = self.names.name(pool);
            lacks.push(Lack::Pool { own: &seated.worker.pool, asked });
        }
        let takes = |kind| seated.kinds.is_empty() || seated.kinds.contains(&kind);
        if let Some(kind) = fit.kind.filter(|kind| !takes(*kind)) {
            lacks.push(Lack::Kind(self.names.name(kind)));
        }
        for (key, asked) in &*fit.needs {
            let own = seated.worker.has.get(key).map_or(&[][..], Vec::as_slice);
            if !asked.iter().any(|value| own.contains(value)) {
                lacks.push(Lack::Requirement { key, asked, own });
            }
        }
        let all = seated.worker.slots;
        if all < class.slots {
            lacks.push(Lack::Slots { own: all, asked: class.slots });
        } else if seated.slots_free() < class.slots {
            let free = seated.slots_free();
            lacks.push(Lack::FreeSlots { free, all, asked: class.slots });
        }
        for (name, asked) in &class.amounts {
            let (free, asked, name) = (seated.amount_free(*name), *asked, self.names.name(*name));
            let all = seated.worker.amounts.get(name).copied().unwrap_or(0);
            if all < asked {
                lacks.push(Lack::Amount { name, own: all, asked });
            } else if free < asked {
                lacks.push(Lack::FreeAmount { name, free, all, asked });
            }
        }
        lacks.extend(seated.worker.draining.then_some(Lack::Drains));
        lacks.extend((!seated.worker.healthy).then_some(Lack::IsUnhealthy));
        if !self.quota_allows(waiting.tenant, seated.pool, class.slots) {
            lacks.push(Lack::Quota);
        }
        let max = fit.kind.filter(|kind| !self.kind_leaves(seated, *kind));
        lacks.extend(max.map(|_| Lack::TypeMax));
        lacks
    }

    fn kind_leaves(&self, seated: &Seated, kind: crate::table::NameIx) -> bool {
        let set = self.kinds.get(kind).and_then(|kind| kind.settings.worker_max);
        let declared = seated.worker.type_max.get(self.names.name(kind)).copied();
        [set, declared].into_iter().flatten().all(|max| seated.n_of(kind) < max)
    }
}

impl fmt::Display for Lack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool { own, asked } => write!(f, "is in pool {own}, not {asked}"),
            Self::Kind(kind) => write!(f, "does not run type {kind}"),
            Self::Requirement { key, asked, own } => {
                let list = |names: &[Name]| {
                    names.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
                };
                if own.is_empty() {
                    write!(f, "has no {key}={}", list(asked))
                } else {
                    write!(f, "has {key}={}, not {}", list(own), list(asked))
                }
            }
            Self::Slots { own, asked } => write!(f, "has {own} of the {asked} slots"),
            Self::Amount { name, own, asked } => write!(f, "has {own} of the {asked} {name}"),
            Self::Drains => f.write_str("takes no new jobs"),
            Self::IsUnhealthy => f.write_str("is not healthy"),
            Self::Quota => f.write_str("is in a pool where the tenant is at its quota"),
            Self::TypeMax => f.write_str("runs as many jobs of the type as it may"),
            Self::FreeSlots { free, all, asked: 1 } => write!(f, "{free} of {all} slots free"),
            Self::FreeSlots { free, all, asked } => {
                write!(f, "{free} of {all} slots free, {asked} needed")
            }
            Self::FreeAmount { name, free, all, asked } => {
                write!(f, "{free} of {all} {name} free, {asked} needed")
            }
        }
    }
}
