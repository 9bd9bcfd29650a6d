//! Which workers could ever run which jobs.
//!
//! A *fit* is a pool, a type and needs; a *class* is a fit with slots and amounts. Both are
//! interned: however many jobs wait, a worker is matched once against each fit. What a worker has
//! is a set of bits, one for each (key, value) pair ever seen, and matching is a subset test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Name;
use model::job::Needs;

use crate::bits::Bits;
use crate::index::{Lookup, QuickLookup};
use crate::table::{ClassIx, FitIx, LaneIx, NameIx, Table};

/// What decides which workers could ever run a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FitKey {
    /// `None` means any pool.
    pub(crate) pool: Option<NameIx>,
    /// `None` means that it runs on workers of any types.
    pub(crate) kind: Option<NameIx>,
    pub(crate) needs: Arc<Needs>,
}

#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) key: FitKey,
    needs: NeedBits,
    /// Positions of the workers that match.
    pub(crate) seats: Bits,
    /// Free slots of serving workers that match.
    pub(crate) slots_free: u64,
    /// All slots of serving workers that match.
    pub(crate) slots: u64,
    pub(crate) classes: Vec<ClassIx>,
    /// Jobs of it that stand in line.
    pub(crate) n_in_line: u64,
    /// Whether it stands for a type as such: kept even if no job of it waits.
    pub(crate) is_kind: bool,
}

/// Needs as bits: one set that a worker must have all of, and sets it must have one of each.
#[derive(Clone, Debug, Default)]
struct NeedBits {
    all: Vec<usize>,
    any: Vec<Vec<usize>>,
}

/// What decides where a job has room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    pub(crate) fit: FitIx,
    pub(crate) slots: u32,
    pub(crate) amounts: Vec<(NameIx, u64)>,
}

/// What tells classes without needs and amounts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlainKey {
    pub(crate) pool: Option<NameIx>,
    pub(crate) kind: Option<NameIx>,
    pub(crate) slots: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) key: ClassKey,
    /// Waiting jobs of it, whether in a line or not.
    pub(crate) n_jobs: usize,
    /// Lines of it that may have their turn, side by side.
    pub(crate) lanes: Vec<LaneIx>,
    /// Its place among the classes with lanes.
    pub(crate) active_at: usize,
}

impl Class {
    /// Whether it asks for more than one slot, and so may have to wait for several to be free.
    pub(crate) fn is_wide(&self) -> bool {
        self.key.slots > 1 || !self.key.amounts.is_empty()
    }
}

/// All fits and classes, and the pairs that needs are made of.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    pub(crate) fits: Table<FitIx, Fit>,
    pub(crate) classes: Table<ClassIx, Class>,
    by_key: Lookup<FitKey, FitIx>,
    by_class_key: QuickLookup<ClassKey, ClassIx>,
    /// Classes without needs and amounts once more: most jobs are of these, and are found without
    /// building a fit first.
    plain: QuickLookup<PlainKey, ClassIx>,
    pairs: BTreeMap<(Name, Name), usize>,
    /// Sweep away what is not used once there are so many classes.
    sweep_at: usize,
}

/// Fewer classes than this are never worth a sweep.
const SWEEP_AT_MIN: usize = 1_024;

impl Catalogue {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            fits: Table::default(),
            classes: Table::default(),
            by_key: Lookup::new(seed),
            by_class_key: QuickLookup::default(),
            plain: QuickLookup::default(),
            pairs: BTreeMap::new(),
            sweep_at: 0,
        }
    }

    /// The number of what `has` says, one bit for each pair.
    pub(crate) fn has_bits(&mut self, has: &BTreeMap<Name, Vec<Name>>) -> Bits {
        let mut bits = Bits::default();
        for (key, values) in has {
            for value in values {
                bits.set(self.pair(key, value), true);
            }
        }
        bits
    }

    fn pair(&mut self, key: &Name, value: &Name) -> usize {
        let next = self.pairs.len();
        *self.pairs.entry((key.clone(), value.clone())).or_insert(next)
    }

    /// The fit of `key`, and whether it is new and its workers are yet to be found.
    pub(crate) fn intern_fit(&mut self, key: FitKey) -> (FitIx, bool) {
        if let Some(ix) = self.by_key.get(&key) {
            return (ix, false);
        }
        let mut needs = NeedBits::default();
        for (name, values) in &*key.needs {
            let bits: Vec<usize> = values.iter().map(|value| self.pair(name, value)).collect();
            match bits.as_slice() {
                [bit] => needs.all.push(*bit),
                _ => needs.any.push(bits),
            }
        }
        let ix = self.fits.insert(Fit {
            key: key.clone(),
            needs,
            seats: Bits::default(),
            slots_free: 0,
            slots: 0,
            classes: Vec::new(),
            n_in_line: 0,
            is_kind: false,
        });
        self.by_key.insert(key, ix);
        (ix, true)
    }

    pub(crate) fn intern_class(&mut self, key: ClassKey) -> ClassIx {
        if let Some(ix) = self.by_class_key.get(&key) {
            return ix;
        }
        let class = Class { key: key.clone(), n_jobs: 0, lanes: Vec::new(), active_at: 0 };
        let ix = self.classes.insert(class);
        self.fits[key.fit].classes.push(ix);
        if let Some(plain) = self.plain_key(&key) {
            self.plain.insert(plain, ix);
        }
        self.by_class_key.insert(key, ix);
        ix
    }

    /// The class of jobs without needs and amounts, if it is known.
    pub(crate) fn plain_class(&self, key: &PlainKey) -> Option<ClassIx> {
        self.plain.get(key)
    }

    fn plain_key(&self, key: &ClassKey) -> Option<PlainKey> {
        let FitKey { pool, kind, needs } = &self.fits[key.fit].key;
        let is_plain = needs.is_empty() && key.amounts.is_empty();
        is_plain.then_some(PlainKey { pool: *pool, kind: *kind, slots: key.slots })
    }

    /// Whether there are so many classes that unused ones should go.
    pub(crate) fn wants_sweep(&self) -> bool {
        self.classes.bound() >= self.sweep_at.max(SWEEP_AT_MIN)
    }

    /// Forgets classes that no waiting job has, and returns the fits that went with them.
    pub(crate) fn sweep(&mut self) -> BTreeSet<FitIx> {
        for ix in self.classes.indices() {
            let class = &self.classes[ix];
            if class.n_jobs > 0 {
                continue;
            }
            let class = self.classes.remove(ix);
            if let Some(plain) = self.plain_key(&class.key) {
                self.plain.remove(&plain);
            }
            self.fits[class.key.fit].classes.retain(|other| *other != ix);
            self.by_class_key.remove(&class.key);
        }
        let mut gone = BTreeSet::new();
        for ix in self.fits.indices() {
            if self.fits[ix].classes.is_empty() && !self.fits[ix].is_kind {
                let fit = self.fits.remove(ix);
                self.by_key.remove(&fit.key);
                gone.insert(ix);
            }
        }
        self.sweep_at = self.classes.len() * 2;
        gone
    }

    /// The fit of a class.
    pub(crate) fn fit_of_mut(&mut self, class: ClassIx) -> &mut Fit {
        &mut self.fits[self.classes[class].key.fit]
    }

    /// The fit of a class.
    pub(crate) fn fit_of(&self, class: ClassIx) -> &Fit {
        &self.fits[self.classes[class].key.fit]
    }
}

impl Fit {
    /// Whether a worker of `pool` with these types and pairs could run it.
    pub(crate) fn matches(&self, pool: NameIx, kinds: &[NameIx], has: &Bits) -> bool {
        self.key.pool.is_none_or(|own| own == pool)
            && self.key.kind.is_none_or(|kind| kinds.is_empty() || kinds.contains(&kind))
            && self.needs.all.iter().all(|bit| has.has(*bit))
            && self.needs.any.iter().all(|bits| bits.iter().any(|bit| has.has(*bit)))
    }
}
