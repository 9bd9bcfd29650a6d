//! The workers, and which of them have room.
//!
//! Workers sit in *seating order*: the order in which the policy prefers them, all else equal. Sets
//! of workers are bits by position in that order, so "the best worker with room that fits" is the
//! first bit that two sets have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::policy::{Entry, Policy, Seat};
use model::{Heartbeat, Name, Worker, WorkerId};

use crate::bits::Bits;
use crate::fits::{Class, ClassKey, FitKey, Fits};
use crate::index::{Lookup, Names};
use crate::inputs::InputFacts;
use crate::table::{AttemptIx, ClassIx, FitIx, JobIx, NameIx, Table, WorkerIx};

#[derive(Clone, Debug)]
pub(crate) struct Seated {
    pub(crate) worker: Worker,
    pub(crate) pool: NameIx,
    pub(crate) hints: Vec<NameIx>,
    kinds: Vec<NameIx>,
    has: Bits,
    /// The amounts it has in all, and those in use.
    amounts: Vec<(NameIx, u64, u64)>,
    fits: Vec<FitIx>,
    position: usize,
    /// Slots that its attempts take.
    pub(crate) slots_used: u32,
    /// Slots that it says are taken by others than its attempts.
    slots_foreign: u32,
    pub(crate) attempts: Vec<AttemptIx>,
    /// Attempts by type.
    pub(crate) n_by_kind: BTreeMap<NameIx, u32>,
    /// The stream is gone; it stays only while attempts of it are not ended.
    pub(crate) is_gone: bool,
    /// Whether it reports no architecture.
    pub(crate) has_no_arch: bool,
    pub(crate) can_fetch: bool,
    pub(crate) inputs: InputFacts,
}

impl Seated {
    /// Slots free for new work, whether it is well or not.
    pub(crate) fn slots_free(&self) -> u32 {
        self.worker.slots.saturating_sub(self.slots_used).saturating_sub(self.slots_foreign)
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.worker.is_serving() && !self.is_gone
    }

    /// Slots that new work could take now.
    pub(crate) fn slots_open(&self) -> u32 {
        if self.is_serving() { self.slots_free() } else { 0 }
    }

    fn slots_serving(&self) -> u32 {
        if self.is_serving() { self.worker.slots } else { 0 }
    }

    /// How many types it runs; a worker that runs any counts as the least specialised.
    pub(crate) fn n_types(&self) -> usize {
        if self.kinds.is_empty() { usize::MAX } else { self.kinds.len() }
    }

    pub(crate) fn amount_free(&self, name: NameIx) -> u64 {
        let own = self.amounts.iter().find(|(own, ..)| *own == name);
        own.map_or(0, |(_, all, used)| all.saturating_sub(*used))
    }

    fn amount(&self, name: NameIx) -> u64 {
        self.amounts.iter().find(|(own, ..)| *own == name).map_or(0, |(_, all, _)| *all)
    }

    /// Whether there is room for a job of this class, if it is serving.
    pub(crate) fn has_room(&self, class: &ClassKey) -> bool {
        self.slots_free() >= class.slots
            && class.amounts.iter().all(|(name, amount)| self.amount_free(*name) >= *amount)
    }

    /// Whether there would be room for a job of this class if nothing else ran.
    pub(crate) fn could_hold(&self, class: &ClassKey) -> bool {
        self.worker.slots >= class.slots
            && class.amounts.iter().all(|(name, amount)| self.amount(*name) >= *amount)
    }

    /// Whether it runs jobs of this fit, whatever room it has.
    pub(crate) fn runs(&self, fit: FitIx) -> bool {
        self.fits.contains(&fit)
    }

    pub(crate) fn fits(&self) -> &[FitIx] {
        &self.fits
    }

    pub(crate) fn take(&mut self, slots: u32, amounts: &[(NameIx, u64)], kind: Option<NameIx>) {
        self.slots_used += slots;
        for (name, amount) in amounts {
            if let Some((.., used)) = self.amounts.iter_mut().find(|(own, ..)| own == name) {
                *used += amount;
            }
        }
        if let Some(kind) = kind {
            *self.n_by_kind.entry(kind).or_default() += 1;
        }
    }

    pub(crate) fn give_back(
        &mut self,
        slots: u32,
        amounts: &[(NameIx, u64)],
        kind: Option<NameIx>,
    ) {
        self.slots_used -= slots;
        for (name, amount) in amounts {
            if let Some((.., used)) = self.amounts.iter_mut().find(|(own, ..)| own == name) {
                *used -= amount;
            }
        }
        if let Some(kind) = kind {
            let count = self.n_by_kind.entry(kind).or_default();
            *count -= 1;
            if *count == 0 {
                self.n_by_kind.remove(&kind);
            }
        }
    }

    /// The worker as it would describe itself now.
    pub(crate) fn told(&self) -> Worker {
        let slots_free = (self.slots_foreign > 0).then(|| self.slots_free());
        let (healthy, draining) = (self.worker.healthy, self.worker.draining);
        Worker {
            slots_free,
            healthy: healthy && !self.is_gone,
            draining: draining || self.is_gone,
            ..self.worker.clone()
        }
    }

    /// Takes in how many slots it says are free. Fewer than its attempts leave means that others
    /// use them; more is not believed.
    fn report_free(&mut self, slots_free: Option<u32>) {
        let left = self.worker.slots.saturating_sub(self.slots_used);
        self.slots_foreign = left.saturating_sub(slots_free.unwrap_or(left));
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) workers: Table<WorkerIx, Seated>,
    pub(crate) fits: Fits,
    by_id: Lookup<WorkerId, WorkerIx>,
    seating: Vec<WorkerIx>,
    /// Positions of serving workers with a free slot.
    open: Bits,
    /// The seating order has to be made anew.
    is_stale: bool,
    /// All slots of serving workers, and the free ones.
    pub(crate) slots: u64,
    pub(crate) slots_free: u64,
}

impl Fleet {
    pub(crate) fn find(&self, id: &WorkerId) -> Option<WorkerIx> {
        self.by_id.get(id)
    }

    /// Takes in a worker, or a known worker's new properties. Its attempts stay.
    pub(crate) fn join(&mut self, worker: &Worker, names: &mut Names) -> WorkerIx {
        let ix = if let Some(ix) = self.find(&worker.id) {
            self.unmatch(ix);
            ix
        } else {
            let ix = self.workers.insert(blank(worker, names));
            self.by_id.insert(worker.id.clone(), ix);
            ix
        };
        let has = self.fits.has_bits(&worker.has);
        let seated = &mut self.workers[ix];
        seated.has = has;
        seated.pool = names.intern(&worker.pool);
        seated.kinds = worker.types.iter().map(|kind| names.intern(kind)).collect();
        seated.hints = worker.hints.iter().map(|hint| names.intern(hint)).collect();
        let old = std::mem::take(&mut seated.amounts);
        for (name, amount) in &worker.amounts {
            let name = names.intern(name);
            let used = old.iter().find(|(own, ..)| *own == name).map_or(0, |(.., used)| *used);
            seated.amounts.push((name, *amount, used));
        }
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
    pub(crate) fn forget(&mut self, ix: WorkerIx) {
        self.unmatch(ix);
        let seated = self.workers.remove(ix);
        self.by_id.remove(&seated.worker.id);
        self.is_stale = true;
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
                let fit = &mut self.fits.fits[*fit];
                fit.slots_free = fit.slots_free + free_now - free;
                fit.slots = fit.slots + slots_now - slots;
            }
            self.slots_free = self.slots_free + free_now - free;
            self.slots = self.slots + slots_now - slots;
        }
        if !self.is_stale && (free == 0) != (free_now == 0) {
            self.open.set(seated.position, free_now > 0);
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
        if self.fits.wants_sweep() {
            self.sweep();
        }
        let fit = self.fit(fit);
        self.fits.intern_class(ClassKey { fit, slots, amounts })
    }

    /// Counts the slots that could run a type, from now on.
    pub(crate) fn watch_kind(&mut self, kind: NameIx) {
        let key = FitKey { pool: None, kind: Some(kind), needs: Arc::default() };
        let fit = self.fit(key);
        self.fits.fits[fit].is_kind = true;
    }

    fn fit(&mut self, key: FitKey) -> FitIx {
        let (fit, is_new) = self.fits.intern_fit(key);
        if is_new {
            self.find_seats(fit);
        }
        fit
    }

    fn sweep(&mut self) {
        let gone = self.fits.sweep();
        for ix in self.workers.indices() {
            self.workers[ix].fits.retain(|fit| !gone.contains(fit));
        }
    }

    fn find_seats(&mut self, ix: FitIx) {
        for worker in self.workers.indices() {
            let seated = &mut self.workers[worker];
            let fit = &mut self.fits.fits[ix];
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
            self.fits.fits[fit].slots_free -= free;
            self.fits.fits[fit].slots -= slots;
        }
        self.slots_free -= free;
        self.slots -= slots;
    }

    fn rematch(&mut self, ix: WorkerIx) {
        let seated = &mut self.workers[ix];
        let (free, slots) = (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        for fit in self.fits.fits.indices() {
            let row = &mut self.fits.fits[fit];
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
    pub(crate) fn settle(&mut self, policy: &Policy) {
        if !self.is_stale {
            return;
        }
        self.seating = self.workers.indices();
        let workers = &self.workers;
        self.seating.sort_by_cached_key(|ix| {
            let seated = &workers[*ix];
            (preference(policy, seated), seated.worker.id.clone())
        });
        let bound = self.seating.len();
        self.open = Bits::below(bound);
        for fit in self.fits.fits.indices() {
            self.fits.fits[fit].seats = Bits::below(bound);
        }
        for (position, ix) in self.seating.iter().enumerate() {
            let seated = &mut self.workers[*ix];
            seated.position = position;
            self.open.set(position, seated.slots_open() > 0);
            for fit in &seated.fits {
                self.fits.fits[*fit].seats.set(position, true);
            }
        }
        self.is_stale = false;
    }

    /// Serving workers with room for the class, in seating order.
    pub(crate) fn with_room(&self, class: &Class) -> impl Iterator<Item = WorkerIx> {
        let seats = &self.fits.fits[class.key.fit].seats;
        let key = class.key.clone();
        seats
            .and(&self.open)
            .map(|position| self.seating[position])
            .filter(move |ix| self.workers[*ix].has_room(&key))
    }

    /// Workers that could run the fit, whatever their state, in seating order.
    pub(crate) fn matching(&self, fit: FitIx) -> impl Iterator<Item = WorkerIx> {
        let seats = &self.fits.fits[fit].seats;
        seats.iter().map(|position| self.seating[position])
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

fn blank(worker: &Worker, names: &mut Names) -> Seated {
    Seated {
        worker: worker.clone(),
        pool: names.intern(&Name::new("")),
        hints: Vec::new(),
        kinds: Vec::new(),
        has: Bits::default(),
        amounts: Vec::new(),
        fits: Vec::new(),
        position: 0,
        slots_used: 0,
        slots_foreign: 0,
        attempts: Vec::new(),
        n_by_kind: BTreeMap::new(),
        // Counts for nothing until it is matched.
        is_gone: true,
        has_no_arch: false,
        can_fetch: false,
        inputs: InputFacts::default(),
    }
}
