//! One worker: what it offers, what it runs, what room it has.

use model::{Name, Worker};

use crate::bits::Bits;
use crate::catalogue::{ClassKey, room_class};
use crate::index::Names;
use crate::inputs::InputFacts;
use crate::table::{AttemptIx, AudienceIx, NameIx};

#[derive(Clone, Debug)]
pub(crate) struct Seated {
    pub(crate) worker: Worker,
    pub(crate) pool: NameIx,
    pub(crate) hints: Vec<NameIx>,
    pub(crate) kinds: Vec<NameIx>,
    pub(crate) has: Bits,
    /// The amounts it has in all, and those in use.
    pub(crate) amounts: Vec<(NameIx, u64, u64)>,
    /// Audiences that it is in.
    pub(crate) audiences: Vec<AudienceIx>,
    pub(crate) position: usize,
    /// Slots that its attempts take.
    pub(crate) slots_used: u64,
    /// Slots that it says are taken by others than its attempts.
    pub(crate) slots_foreign: u32,
    pub(crate) attempts: Vec<AttemptIx>,
    /// Attempts by type.
    n_by_kind: Vec<(NameIx, u32)>,
    /// The stream is gone; it stays only while attempts of it are not ended.
    pub(crate) is_gone: bool,
    /// Whether it reports no architecture.
    pub(crate) has_no_arch: bool,
    pub(crate) can_fetch: bool,
    pub(crate) inputs: InputFacts,
}

impl Seated {
    /// A worker that counts for nothing until it is matched.
    pub(crate) fn new(worker: &Worker, names: &mut Names) -> Self {
        Self {
            worker: worker.clone(),
            pool: names.intern(&Name::new("")),
            hints: Vec::new(),
            kinds: Vec::new(),
            has: Bits::default(),
            amounts: Vec::new(),
            audiences: Vec::new(),
            position: 0,
            slots_used: 0,
            slots_foreign: 0,
            attempts: Vec::new(),
            n_by_kind: Vec::new(),
            is_gone: true,
            has_no_arch: false,
            can_fetch: false,
            inputs: InputFacts::default(),
        }
    }

    /// Slots free for new work, whether it is well or not.
    pub(crate) fn slots_free(&self) -> u32 {
        u32::try_from(self.room()).unwrap_or(0)
    }

    /// Slots free for new work; below zero if more runs than it has slots for.
    pub(crate) fn room(&self) -> i64 {
        let used = i64::try_from(self.slots_used).unwrap_or(i64::MAX);
        i64::from(self.worker.slots).saturating_sub(used) - i64::from(self.slots_foreign)
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.worker.is_serving() && !self.is_gone
    }

    /// Slots that new work could take now.
    pub(crate) fn slots_open(&self) -> u32 {
        if self.is_serving() { self.slots_free() } else { 0 }
    }

    pub(crate) fn slots_serving(&self) -> u32 {
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

    /// Whether it could have room for a job of this class of room, as far as that class tells.
    pub(crate) fn may_have_room(&self, room: (u32, u32)) -> bool {
        let most = self.amounts.iter().map(|(_, all, used)| all.saturating_sub(*used)).max();
        let free = room_class(self.slots_free(), most.unwrap_or(0));
        free.0 >= room.0 && free.1 >= room.1
    }

    /// Whether there is room for a job of this class, if it is serving.
    pub(crate) fn has_room(&self, class: &ClassKey) -> bool {
        self.slots_free() >= class.slots
            && class.amounts.iter().all(|(name, amount)| self.amount_free(*name) >= *amount)
    }

    /// For how many jobs of this class there is room, if it is serving.
    pub(crate) fn n_room(&self, class: &ClassKey) -> u64 {
        let by_slots = u64::from(self.slots_free() / class.slots.max(1));
        let amounts = class.amounts.iter().filter(|(_, amount)| *amount > 0);
        let by_amounts = amounts.map(|(name, amount)| self.amount_free(*name) / amount);
        by_amounts.fold(by_slots, u64::min)
    }

    /// Whether there would be room for a job of this class if nothing else ran.
    pub(crate) fn could_hold(&self, class: &ClassKey) -> bool {
        self.worker.slots >= class.slots
            && class.amounts.iter().all(|(name, amount)| self.amount(*name) >= *amount)
    }

    /// How many attempts of the type it runs.
    pub(crate) fn n_of(&self, kind: NameIx) -> u32 {
        self.n_by_kind.iter().find(|(own, _)| *own == kind).map_or(0, |(_, count)| *count)
    }

    pub(crate) fn take(&mut self, slots: u32, amounts: &[(NameIx, u64)], kind: Option<NameIx>) {
        self.slots_used += u64::from(slots);
        for (name, amount) in amounts {
            if let Some((.., used)) = self.amounts.iter_mut().find(|(own, ..)| own == name) {
                *used = used.saturating_add(*amount);
            }
        }
        if let Some(kind) = kind {
            match self.n_by_kind.iter_mut().find(|(own, _)| *own == kind) {
                Some((_, count)) => *count += 1,
                None => self.n_by_kind.push((kind, 1)),
            }
        }
    }

    pub(crate) fn give_back(
        &mut self,
        slots: u32,
        amounts: &[(NameIx, u64)],
        kind: Option<NameIx>,
    ) {
        self.slots_used -= u64::from(slots);
        for (name, amount) in amounts {
            if let Some((.., used)) = self.amounts.iter_mut().find(|(own, ..)| own == name) {
                *used = used.saturating_sub(*amount);
            }
        }
        if let Some(kind) = kind {
            let own = self.n_by_kind.iter().position(|(own, _)| *own == kind);
            let at = own.expect("what is given back was taken");
            self.n_by_kind[at].1 -= 1;
            if self.n_by_kind[at].1 == 0 {
                self.n_by_kind.swap_remove(at);
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
    pub(crate) fn report_free(&mut self, slots_free: Option<u32>) {
        let left = u64::from(self.worker.slots).saturating_sub(self.slots_used);
        let left = u32::try_from(left).expect("it is at most all slots");
        self.slots_foreign = left.saturating_sub(slots_free.unwrap_or(left));
    }
}
