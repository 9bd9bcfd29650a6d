//! The workers, and which of them have room.
//!
//! Workers sit in *seating order*: the order in which the policy prefers them, all else equal. Sets
//! of workers are bits by position in that order, so "the best worker with room that fits" is the
//! first bit that two sets have in common.

mod settle;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::policy::{Entry, Policy, RARE_SPAN, Seat};
use model::{Heartbeat, Name, Recent, Worker, WorkerId};

use crate::bits::{Bits, count_common, pick_common};
use crate::catalogue::{Catalogue, Class, ClassKey, FitKey};
use crate::index::{Lookup, Names};
use crate::seated::Seated;
use crate::table::{AudienceIx, ClassIx, FitIx, Ix, JobIx, NameIx, Table, WorkerIx};

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
    /// Counts changes of who serves with how many slots.
    pub(crate) n_changes: u64,
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
            n_changes: 0,
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
        self.n_changes += u64::from(slots != slots_now);
        if free != free_now || slots != slots_now {
            for audience in &seated.audiences {
                let audience = &mut self.catalogue.audiences.table[*audience];
                audience.slots_free = audience.slots_free + free_now - free;
                audience.slots = audience.slots + slots_now - slots;
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
        let (class, is_new) = self.catalogue.intern_class(ClassKey { fit, slots, amounts });
        if is_new {
            self.find_holders(class);
        }
        class
    }

    /// Counts the slots that could run a type, from now on, by the fit that stands for it.
    pub(crate) fn watch_kind(&mut self, kind: NameIx) -> FitIx {
        let key = FitKey { pool: None, kind: Some(kind), needs: Arc::default() };
        let fit = self.fit(key);
        self.catalogue.fits[fit].is_kind = true;
        fit
    }

    /// Counts anew what came for whom: the caller says it all again.
    pub(crate) fn forget_recent(&mut self) {
        for (_, audience) in self.catalogue.audiences.table.iter_mut() {
            audience.recent = Recent::default();
        }
    }

    /// Counts what came of a type for those that could run it.
    pub(crate) fn count_recent(&mut self, fit: FitIx, recent: &Recent) {
        let audience = self.catalogue.fits[fit].audience;
        self.catalogue.audiences.table[audience].recent.merge(recent, RARE_SPAN);
    }

    fn fit(&mut self, key: FitKey) -> FitIx {
        let (fit, is_new) = self.catalogue.intern_fit(key);
        if is_new {
            self.find_matches(fit);
        }
        fit
    }

    fn sweep(&mut self) {
        self.catalogue.sweep();
        self.is_stale = true;
    }

    /// The seating order has to be made anew, because the policy changed.
    pub(crate) fn reseat(&mut self) {
        self.is_stale = true;
    }

    /// Serving workers with room for the class, in seating order.
    pub(crate) fn with_room<'a>(&'a self, class: &'a Class) -> impl Iterator<Item = WorkerIx> + 'a {
        let seats = &self.catalogue.holding(class).seats;
        seats
            .and(&self.open)
            .map(|position| self.seating[position])
            .filter(|ix| self.workers[*ix].has_room(&class.key) && self.could_hold(*ix, class))
    }

    /// Workers that could run the fit, whatever their state, in seating order.
    pub(crate) fn matching(&self, fit: FitIx) -> impl Iterator<Item = WorkerIx> {
        let members = &self.catalogue.fits[fit].members;
        let all = self.members(self.catalogue.fits[fit].audience);
        all.filter(|ix| members.has(ix.at()))
    }

    /// Whether this worker of the audience of a class could hold a job of it: of a mixed audience,
    /// not all could.
    pub(crate) fn could_hold(&self, worker: WorkerIx, class: &Class) -> bool {
        !self.catalogue.is_mixed(class) || class.members.has(worker.at())
    }

    /// Workers that could hold a job of the class, whatever their state, in seating order.
    pub(crate) fn holding(&self, class: &Class) -> impl Iterator<Item = WorkerIx> {
        let berth = &self.catalogue.audiences.berths[class.berth];
        self.members(berth.key.audience).filter(|ix| self.could_hold(*ix, class))
    }

    /// Workers of an audience, whatever their state, in seating order.
    pub(crate) fn members(&self, ix: AudienceIx) -> impl Iterator<Item = WorkerIx> {
        let seats = &self.catalogue.audiences.table[ix].seats;
        seats.iter().map(|position| self.seating[position])
    }

    /// Whether a worker of the audience is in the pool.
    pub(crate) fn has_member_in(&self, ix: AudienceIx, pool: NameIx) -> bool {
        let seats = &self.catalogue.audiences.table[ix].seats;
        self.members.get(&pool).is_some_and(|members| seats.and(members).next().is_some())
    }

    /// Whether some worker that matches the fit could hold a job of the class.
    pub(crate) fn is_shared(&self, fit: FitIx, class: ClassIx) -> bool {
        let matching = &self.catalogue.fits[fit].members;
        matching.and(&self.catalogue.classes[class].members).next().is_some()
    }

    /// Whether the worker matches the fit, whatever room it has.
    pub(crate) fn runs(&self, worker: WorkerIx, fit: FitIx) -> bool {
        self.catalogue.fits[fit].members.has(worker.at())
    }

    /// How many serving workers match the fit, in `pool` if given, whatever room they have.
    pub(crate) fn n_serving(&self, fit: FitIx, pool: Option<NameIx>) -> usize {
        let seats = self.seats(fit);
        count_common(&self.serving_sets(&seats, pool))
    }

    /// Those of them at these places in seating order, which are sorted.
    pub(crate) fn serving_at(
        &self,
        fit: FitIx,
        pool: Option<NameIx>,
        places: &[usize],
    ) -> impl Iterator<Item = WorkerIx> {
        let seats = self.seats(fit);
        let positions = pick_common(&self.serving_sets(&seats, pool), places);
        positions.into_iter().map(|position| self.seating[position])
    }

    /// The positions of the workers that match the fit.
    fn seats(&self, fit: FitIx) -> Cow<'_, Bits> {
        let audience = self.catalogue.fits[fit].audience;
        if !self.catalogue.audiences.is_mixed(audience) {
            return Cow::Borrowed(&self.catalogue.audiences.table[audience].seats);
        }
        let mut seats = Bits::below(self.seating.len());
        self.matching(fit).for_each(|ix| seats.set(self.workers[ix].position, true));
        Cow::Owned(seats)
    }

    /// The sets whose common positions are those of serving workers, in `pool` if given.
    fn serving_sets<'a>(&'a self, seats: &'a Bits, pool: Option<NameIx>) -> Vec<&'a Bits> {
        let mut sets = vec![seats, &self.serving];
        sets.extend(pool.and_then(|pool| self.members.get(&pool)));
        sets
    }

    /// Those of an audience.
    pub(crate) fn with_slot_of(&self, ix: AudienceIx) -> impl Iterator<Item = WorkerIx> {
        let seats = &self.catalogue.audiences.table[ix].seats;
        seats.and(&self.open).map(|position| self.seating[position])
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
