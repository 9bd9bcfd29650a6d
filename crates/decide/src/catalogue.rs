//! Which workers could ever run which jobs.
//!
//! A *fit* is a pool, a type and needs; a *class* is a fit with slots and amounts. Both are
//! interned: however many jobs wait, a worker is matched once against each fit. What a worker has
//! is a set of bits, one for each (key, value) pair ever seen, and matching is a subset test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Name;
use model::job::Needs;

use crate::audience::{Audience, Audiences, BerthKey};
use crate::bits::Bits;
use crate::index::{Lookup, QuickLookup};
use crate::table::{AudienceIx, BerthIx, ClassIx, FitIx, LineIx, NameIx, Table};

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
    /// The workers that match, by their places in the table of workers.
    pub(crate) members: Bits,
    /// The same, once the fleet has settled.
    pub(crate) audience: AudienceIx,
    pub(crate) classes: Vec<ClassIx>,
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
    /// The workers that could hold a job of it, by their places in the table of workers.
    pub(crate) members: Bits,
    /// Where its jobs stand.
    pub(crate) berth: BerthIx,
    /// Its lines.
    pub(crate) lines: Vec<LineIx>,
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
    pub(crate) audiences: Audiences,
    /// Types that may be held back by limits of their own, or by which turns go.
    pub(crate) kinds_apart: BTreeSet<NameIx>,
    pub(crate) are_kinds_apart: bool,
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
            audiences: Audiences::default(),
            kinds_apart: BTreeSet::new(),
            are_kinds_apart: false,
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
        let audience = self.audiences.nobody();
        let (members, classes) = (Bits::default(), Vec::new());
        let key_own = key.clone();
        let fit = Fit { key: key_own, needs, members, audience, classes, is_kind: false };
        let ix = self.fits.insert(fit);
        self.by_key.insert(key, ix);
        (ix, true)
    }

    /// The class of `key`, and whether it is new and the workers that could hold it are yet to be
    /// found.
    pub(crate) fn intern_class(&mut self, key: ClassKey) -> (ClassIx, bool) {
        if let Some(ix) = self.by_class_key.get(&key) {
            return (ix, false);
        }
        let audience = self.audiences.nobody();
        let berth = self.berth_of(&key, audience);
        let (members, lines) = (Bits::default(), Vec::new());
        let class = Class { key: key.clone(), n_jobs: 0, members, berth, lines };
        let ix = self.classes.insert(class);
        self.fits[key.fit].classes.push(ix);
        if let Some(plain) = self.plain_key(&key) {
            self.plain.insert(plain, ix);
        }
        self.by_class_key.insert(key, ix);
        (ix, true)
    }

    /// Where jobs of a class stand that this audience could hold.
    pub(crate) fn berth_of(&mut self, key: &ClassKey, audience: AudienceIx) -> BerthIx {
        let fit = &self.fits[key.fit];
        let kind = fit.key.kind;
        let is_apart = kind.is_some_and(|kind| self.kinds_apart.contains(&kind));
        let most = key.amounts.iter().map(|(_, amount)| *amount).max().unwrap_or(0);
        self.audiences.berth(BerthKey {
            audience,
            fitting: fit.audience,
            pool: fit.key.pool,
            kind: kind.filter(|_| is_apart || self.are_kinds_apart),
            room: room_class(key.slots, most),
        })
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
        self.classes.len() >= self.sweep_at.max(SWEEP_AT_MIN)
    }

    /// A worker is in no set any more.
    pub(crate) fn forget_member(&mut self, at: usize) {
        self.fits.iter_mut().for_each(|(_, fit)| fit.members.set(at, false));
        self.classes.iter_mut().for_each(|(_, class)| class.members.set(at, false));
    }

    /// Forgets classes that no waiting job has, and fits without classes.
    pub(crate) fn sweep(&mut self) {
        // One fit can have all the classes: its list is read once, not once for each of them.
        let classes = &self.classes;
        for (_, fit) in self.fits.iter_mut() {
            fit.classes.retain(|ix| classes[*ix].n_jobs > 0);
        }
        for ix in self.classes.indices() {
            if self.classes[ix].n_jobs > 0 {
                continue;
            }
            let class = self.classes.remove(ix);
            if let Some(plain) = self.plain_key(&class.key) {
                self.plain.remove(&plain);
            }
            self.by_class_key.remove(&class.key);
        }
        for ix in self.fits.indices() {
            if self.fits[ix].classes.is_empty() && !self.fits[ix].is_kind {
                let fit = self.fits.remove(ix);
                self.by_key.remove(&fit.key);
            }
        }
        self.sweep_at = self.classes.len() * 2;
    }

    /// The workers that match the fit of a class.
    pub(crate) fn fitting(&self, class: ClassIx) -> &Audience {
        &self.audiences.table[self.fit_of(class).audience]
    }

    /// Whether the audience of a class has more workers than could hold a job of it.
    pub(crate) fn is_mixed(&self, class: &Class) -> bool {
        self.audiences.is_mixed(self.audiences.berths[class.berth].key.audience)
    }

    /// The workers that could hold a job of a class.
    pub(crate) fn holding(&self, class: &Class) -> &Audience {
        &self.audiences.table[self.audiences.berths[class.berth].key.audience]
    }

    /// The same, to change what is counted.
    pub(crate) fn holding_mut(&mut self, class: ClassIx) -> &mut Audience {
        let berth = self.classes[class].berth;
        &mut self.audiences.table[self.audiences.berths[berth].key.audience]
    }

    /// The fit of a class.
    pub(crate) fn fit_of(&self, class: ClassIx) -> &Fit {
        &self.fits[self.classes[class].key.fit]
    }
}

/// The powers of two that slots and an amount are not above. What has room for a job is in no lower
/// class than the job.
pub(crate) fn room_class(slots: u32, most: u64) -> (u32, u32) {
    (log2_ceil(slots.into()), if most == 0 { 0 } else { 1 + log2_ceil(most) })
}

/// The power of two that a number is not above.
fn log2_ceil(number: u64) -> u32 {
    number.max(1).next_power_of_two().ilog2()
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
