//! Who could run what: matched when a worker or a kind of jobs is new, settled before a decision.

use std::collections::BTreeSet;

use super::{Fleet, preference};
use crate::bits::Bits;
use crate::index::Names;
use crate::policies::Policies;
use crate::table::{AudienceIx, ClassIx, FitIx, Ix, WorkerIx};

impl Fleet {
    /// Finds the workers that match a new fit.
    pub(super) fn find_matches(&mut self, ix: FitIx) {
        for worker in self.workers.indices() {
            let seated = &self.workers[worker];
            let fit = &mut self.catalogue.fits[ix];
            if fit.matches(seated.pool, &seated.kinds, &seated.has) {
                fit.members.set(worker.at(), true);
            }
        }
        let (audience, is_new) = self.catalogue.audiences.intern(&self.catalogue.fits[ix].members);
        self.catalogue.fits[ix].audience = audience;
        if is_new {
            self.seat(audience);
        }
    }

    /// Finds the workers that could hold a job of a new class.
    pub(super) fn find_holders(&mut self, ix: ClassIx) {
        let class = &self.catalogue.classes[ix];
        let (fit, key) = (&self.catalogue.fits[class.key.fit], class.key.clone());
        let mut members = fit.members.clone();
        for at in fit.members.iter() {
            members.set(at, self.workers[WorkerIx::new(at)].could_hold(&key));
        }
        let (audience, is_new) = self.catalogue.audiences.intern(&members);
        let berth = self.catalogue.berth_of(&key, audience);
        let class = &mut self.catalogue.classes[ix];
        (class.members, class.berth) = (members, berth);
        if is_new {
            self.seat(audience);
        }
    }

    /// Counts the slots of an audience, and says who is in it.
    pub(super) fn seat(&mut self, ix: AudienceIx) {
        let audience = &mut self.catalogue.audiences.table[ix];
        (audience.slots, audience.slots_free) = (0, 0);
        audience.seats = Bits::below(self.seating.len());
        let members: Vec<usize> = audience.members().collect();
        for at in members {
            let seated = &mut self.workers[WorkerIx::new(at)];
            seated.audiences.push(ix);
            audience.slots_free += u64::from(seated.slots_open());
            audience.slots += u64::from(seated.slots_serving());
            audience.seats.set(seated.position, true);
        }
    }

    /// Takes a worker out of every set and count.
    pub(super) fn unmatch(&mut self, ix: WorkerIx) {
        let seated = &mut self.workers[ix];
        let (free, slots) = (u64::from(seated.slots_open()), u64::from(seated.slots_serving()));
        for audience in std::mem::take(&mut seated.audiences) {
            let audience = &mut self.catalogue.audiences.table[audience];
            audience.slots_free -= free;
            audience.slots -= slots;
        }
        self.slots_free -= free;
        self.slots -= slots;
        self.catalogue.forget_member(ix.at());
        self.is_stale = true;
    }

    /// Finds what a worker could run. Audiences know of it once the fleet has settled.
    pub(super) fn rematch(&mut self, ix: WorkerIx) {
        let seated = &self.workers[ix];
        for fit in self.catalogue.fits.indices() {
            let row = &mut self.catalogue.fits[fit];
            if !row.matches(seated.pool, &seated.kinds, &seated.has) {
                continue;
            }
            row.members.set(ix.at(), true);
            for class in &row.classes {
                let class = &mut self.catalogue.classes[*class];
                class.members.set(ix.at(), seated.could_hold(&class.key));
            }
        }
        self.slots_free += u64::from(seated.slots_open());
        self.slots += u64::from(seated.slots_serving());
        self.is_stale = true;
    }

    /// Makes the seating order anew if workers came or went. Says which classes have another
    /// audience then: their jobs are to be moved to its berth. What came lately is to be counted
    /// again.
    pub(crate) fn settle(
        &mut self,
        policies: &Policies,
        names: &Names,
    ) -> Option<Vec<(ClassIx, AudienceIx)>> {
        if !std::mem::take(&mut self.is_stale) {
            return None;
        }
        self.n_changes += 1;
        self.pools = self.workers.iter().map(|(_, seated)| seated.pool).collect();
        self.pools.sort_unstable();
        self.pools.dedup();
        self.pools.sort_by(|one, two| names.name(*one).cmp(names.name(*two)));
        self.seating = self.workers.indices();
        let workers = &self.workers;
        self.seating.sort_by_cached_key(|ix| {
            let seated = &workers[*ix];
            (preference(policies.of(Some(seated.pool)), seated), seated.worker.id.clone())
        });
        let bound = self.seating.len();
        (self.open, self.serving) = (Bits::below(bound), Bits::below(bound));
        self.members.clear();
        for (position, ix) in self.seating.iter().enumerate() {
            let seated = &mut self.workers[*ix];
            seated.position = position;
            seated.audiences.clear();
            self.open.set(position, seated.slots_open() > 0);
            self.serving.set(position, seated.is_serving());
            self.members.entry(seated.pool).or_default().set(position, true);
        }
        Some(self.find_audiences())
    }

    /// Finds the audience of each fit and class anew.
    fn find_audiences(&mut self) -> Vec<(ClassIx, AudienceIx)> {
        let catalogue = &mut self.catalogue;
        let mut workers = Bits::default();
        self.workers.indices().iter().for_each(|ix| workers.set(ix.at(), true));
        let mut used = catalogue.audiences.keep(workers);
        for ix in catalogue.fits.indices() {
            let members = &catalogue.fits[ix].members;
            catalogue.fits[ix].audience = catalogue.audiences.give_out(members, &mut used);
        }
        // Of a worker that left nothing is known any more: audiences with it are only left.
        let mut left = BTreeSet::new();
        let mut moved = Vec::new();
        for ix in catalogue.classes.indices() {
            let members = &catalogue.classes[ix].members;
            let audience = catalogue.audiences.give_out(members, &mut used);
            let (key, before) = (catalogue.classes[ix].key.clone(), catalogue.classes[ix].berth);
            let left_by = &catalogue.audiences.berths[before].key;
            left.extend([left_by.audience, left_by.fitting]);
            if catalogue.berth_of(&key, audience) != before {
                moved.push((ix, audience));
            }
        }
        catalogue.audiences.retain(|ix| used.has(ix) || left.contains(&ix));
        for ix in left.iter().filter(|ix| !used.has(**ix)) {
            catalogue.audiences.hide(*ix);
        }
        used.iter().for_each(|ix| self.seat(ix));
        moved
    }
}
