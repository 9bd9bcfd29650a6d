//! The workers, and which of them have room.
//!
//! Workers sit in *seating order*: the order in which the policy prefers them, all else equal. Sets
//! of workers are bits by position in that order, so "the best worker with room that fits" is the
//! first bit that two sets have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::policy::{Entry, Policy, Seat};
use model::{Heartbeat, Name, Worker, WorkerId};

use crate::bits::{Bits, count_common, pick_common};
use crate::catalogue::{Catalogue, Class, ClassKey, FitKey};
use crate::index::{Lookup, Names};
use crate::seated::Seated;
use crate::table::{ClassIx, FitIx, JobIx, NameIx, Table, WorkerIx};

#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) workers: Table<WorkerIx, Seated>,
    pub(crate) catalogue: Catalogue,
    by_id: Lookup<WorkerId, WorkerIx>,
    seating: Vec<WorkerIx>,
    /// Pools with workers, in the order of their names.
    pub(crate) pools: Vec<NameIx>,
    /// Positions of serving workers with a free slot.
    open: Bits,
    /// Positions of serving workers.
    serving: Bits,
    /// Positions of the workers of each pool.
    members: BTreeMap<NameIx, Bits>,
    /// The seating order has to be made anew.
    is_stale: bool,
    /// All slots of serving workers, and the free ones.
    pub(crate) slots: u64,
    pub(crate) slots_free: u64,
}

impl Fleet {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            workers: Table::default(),
            catalogue: Catalogue::new(seed),
            by_id: Lookup::new(seed),
            seating: Vec::new(),
            pools: Vec::new(),
            open: Bits::default(),
            serving: Bits::default(),
            members: BTreeMap::new(),
            is_stale: false,
            slots: 0,
            slots_free: 0,
        }
    }

    pub(crate) fn find(&self, id: &WorkerId) -> Option<WorkerIx> {
        self.by_id.get(id)
    }

    /// Takes in a worker, or a known worker's new properties. Its attempts stay; what they use of
    /// its amounts is for the caller to say.
    pub(crate) fn join(&mut self, worker: &Worker, names: &mut Names) -> WorkerIx {
        let ix = if let Some(ix) = self.find(&worker.id) {
            self.unmatch(ix);
            ix
        } else {
            let ix = self.workers.insert(Seated::new(worker, names));
            self.by_id.insert(worker.id.clone(), ix);
            ix
        };
        let has = self.catalogue.has_bits(&worker.has);
        let seated = &mut self.workers[ix];
        seated.has = has;
        seated.pool = names.intern(&worker.pool);
        seated.kinds = worker.types.iter().map(|kind| names.intern(kind)).collect();
        seated.hints = worker.hints.iter().map(|hint| names.intern(hint)).collect();
        seated.amounts =
            worker.amounts.iter().map(|(name, all)| (names.intern(name), *all, 0)).collect();
        seated.worker = worker.clone();
        seated.has_no_arch = !worker.has.contains_key(&Name::new("arch"));
        seated.can_fetch = worker.has("feature", "fetch");
        seated.is_gone = false;
        seated.report_free(worker.slots_free);
        self.rematch(ix);
        self.is_stale = true;
        ix
    }

    /// Forgets a worker that has no attempts.
    pub(crate) fn forget(&mut self, ix: WorkerIx) -> Seated {
        self.unmatch(ix);
        let seated = self.workers.remove(ix);
        self.by_id.remove(&seated.worker.id);
        self.is_stale = true;
        seated
    }

    pub(crate) fn heartbeat(&mut self, ix: WorkerIx, heartbeat: Heartbeat, names: &mut Names) {
        let hints = heartbeat.hints.iter().map(|hint| names.intern(hint)).collect();
        self.change(ix, |seated| {
            seated.hints = hints;
            seated.worker.hints = heartbeat.hints;
            seated.worker.healthy = heartbeat.healthy;
            seated.worker.draining = heartbeat.draining;
            seated.worker.metrics = heartbeat.metrics;
            seated.report_free(heartbeat.slots_free);
        });
    }

    /// Changes a worker and keeps every count and set in step.
    pub(crate) fn change<R>(&mut self, ix: WorkerIx, with: impl FnOnce(&mut Seated) -> R) -> R {
        let seated = &mut self.workers[ix];
        let (free, slots) = (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        let answer = with(seated);
        let (free_now, slots_now) =
            (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        if free != free_now || slots != slots_now {
            for fit in &seated.fits {
                let fit = &mut self.catalogue.fits[*fit];
                fit.slots_free = fit.slots_free + free_now - free;
                fit.slots = fit.slots + slots_now - slots;
            }
            self.slots_free = self.slots_free + free_now - free;
            self.slots = self.slots + slots_now - slots;
        }
        if !self.is_stale {
            self.open.set(seated.position, free_now > 0);
            self.serving.set(seated.position, seated.is_serving());
        }
        answer
    }

    /// The class of these, matched against all workers if its fit is new.
    pub(crate) fn class(
        &mut self,
        fit: FitKey,
        slots: u32,
        amounts: Vec<(NameIx, u64)>,
    ) -> ClassIx {
        if self.catalogue.wants_sweep() {
            self.sweep();
        }
        let fit = self.fit(fit);
        self.catalogue.intern_class(ClassKey { fit, slots, amounts })
    }

    /// Counts the slots that could run a type, from now on.
    pub(crate) fn watch_kind(&mut self, kind: NameIx) {
        let key = FitKey { pool: None, kind: Some(kind), needs: Arc::default() };
        let fit = self.fit(key);
        self.catalogue.fits[fit].is_kind = true;
    }

    fn fit(&mut self, key: FitKey) -> FitIx {
        let (fit, is_new) = self.catalogue.intern_fit(key);
        if is_new {
            self.find_seats(fit);
        }
        fit
    }

    fn sweep(&mut self) {
        let gone = self.catalogue.sweep();
        for ix in self.workers.indices() {
            self.workers[ix].fits.retain(|fit| !gone.contains(fit));
        }
    }

    fn find_seats(&mut self, ix: FitIx) {
        for worker in self.workers.indices() {
            let seated = &mut self.workers[worker];
            let fit = &mut self.catalogue.fits[ix];
            if fit.matches(seated.pool, &seated.kinds, &seated.has) {
                seated.fits.push(ix);
                fit.slots_free += u64::from(seated.slots_open());
                fit.slots += u64::from(seated.slots_serving());
                fit.seats.set(seated.position, true);
            }
        }
    }

    /// Takes a worker out of every fit's counts.
    fn unmatch(&mut self, ix: WorkerIx) {
        let seated = &mut self.workers[ix];
        let (free, slots) = (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        for fit in std::mem::take(&mut seated.fits) {
            self.catalogue.fits[fit].slots_free -= free;
            self.catalogue.fits[fit].slots -= slots;
        }
        self.slots_free -= free;
        self.slots -= slots;
    }

    fn rematch(&mut self, ix: WorkerIx) {
        let seated = &mut self.workers[ix];
        let (free, slots) = (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        for fit in self.catalogue.fits.indices() {
            let row = &mut self.catalogue.fits[fit];
            if row.matches(seated.pool, &seated.kinds, &seated.has) {
                seated.fits.push(fit);
                row.slots_free += free;
                row.slots += slots;
            }
        }
        self.slots_free += free;
        self.slots += slots;
    }

    /// The seating order has to be made anew, because the policy changed.
    pub(crate) fn reseat(&mut self) {
        self.is_stale = true;
    }

    /// Makes the seating order anew if workers came or went.
    pub(crate) fn settle(&mut self, policy: &Policy, names: &Names) {
        if !self.is_stale {
            return;
        }
        self.pools = self.workers.iter().map(|(_, seated)| seated.pool).collect();
        self.pools.sort_unstable();
        self.pools.dedup();
        self.pools.sort_by(|one, two| names.name(*one).cmp(names.name(*two)));
        self.seating = self.workers.indices();
        let workers = &self.workers;
        self.seating.sort_by_cached_key(|ix| {
            let seated = &workers[*ix];
            (preference(policy, seated), seated.worker.id.clone())
        });
        let bound = self.seating.len();
        (self.open, self.serving) = (Bits::below(bound), Bits::below(bound));
        self.members.clear();
        for fit in self.catalogue.fits.indices() {
            self.catalogue.fits[fit].seats = Bits::below(bound);
        }
        for (position, ix) in self.seating.iter().enumerate() {
            let seated = &mut self.workers[*ix];
            seated.position = position;
            self.open.set(position, seated.slots_open() > 0);
            self.serving.set(position, seated.is_serving());
            self.members.entry(seated.pool).or_default().set(position, true);
            for fit in &seated.fits {
                self.catalogue.fits[*fit].seats.set(position, true);
            }
        }
        self.is_stale = false;
    }

    /// Serving workers with room for the class, in seating order.
    pub(crate) fn with_room<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = WorkerIx> + 'a {
        let seats = &self.catalogue.fits[class.key.fit].seats;
        seats
            .and(&self.open)
            .map(|position| self.seating[position])
            .filter(|ix| self.workers[*ix].has_room(&class.key))
    }

    /// Workers that could run the fit, whatever their state, in seating order.
    pub(crate) fn matching(&self, fit: FitIx) -> impl Iterator<Item = WorkerIx> {
        let seats = &self.catalogue.fits[fit].seats;
        seats.iter().map(|position| self.seating[position])
    }

    /// Whether some worker that matches the fit could hold a job of the class.
    pub(crate) fn is_shared(&self, fit: FitIx, class: ClassIx) -> bool {
        let key = &self.catalogue.classes[class].key;
        let fits = &self.catalogue.fits;
        let mut common = fits[fit].seats.and(&fits[key.fit].seats);
        common.any(|position| self.workers[self.seating[position]].could_hold(key))
    }

    /// How many serving workers match the fit, in `pool` if given, whatever room they have.
    pub(crate) fn n_serving(&self, fit: FitIx, pool: Option<NameIx>) -> usize {
        count_common(&self.serving_sets(fit, pool))
    }

    /// Those of them at these places in seating order, which are sorted.
    pub(crate) fn serving_at(
        &self,
        fit: FitIx,
        pool: Option<NameIx>,
        places: &[usize],
    ) -> impl Iterator<Item = WorkerIx> {
        let positions = pick_common(&self.serving_sets(fit, pool), places);
        positions.into_iter().map(|position| self.seating[position])
    }

    /// What serving workers that match the fit, in `pool` if given, have in common.
    fn serving_sets(&self, fit: FitIx, pool: Option<NameIx>) -> Vec<&Bits> {
        let mut sets = vec![&self.catalogue.fits[fit].seats, &self.serving];
        sets.extend(pool.and_then(|pool| self.members.get(&pool)));
        sets
    }

    /// Serving workers with a free slot, in seating order.
    pub(crate) fn with_slot(&self) -> impl Iterator<Item = WorkerIx> {
        self.open.and(&self.open).map(|position| self.seating[position])
    }

    /// Forgets what workers lack of the inputs of jobs that wait no longer.
    pub(crate) fn forget_inputs(&mut self, is_gone: impl Fn(JobIx) -> bool) {
        for ix in self.workers.indices() {
            self.workers[ix].inputs.retain(|job| !is_gone(job));
        }
    }

    pub(crate) fn id(&self, ix: WorkerIx) -> &WorkerId {
        &self.workers[ix].worker.id
    }
}

/// The part of the seating order that the policy decides; ids decide the rest.
fn preference(policy: &Policy, seated: &Seated) -> i64 {
    if policy.entry == Entry::WorkerFirst {
        return i64::from(seated.worker.rank);
    }
    match policy.seat {
        Seat::FewestTypes | Seat::Fit => i64::try_from(seated.n_types()).unwrap_or(i64::MAX),
        Seat::FirstMatch(_) | Seat::MostFree | Seat::Asking => 0,
    }
}
