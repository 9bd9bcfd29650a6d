//! How long anybody waits while shorter jobs go first.
//!
//! Shortest first is best for most and worst for the longest. So whoever has waited for longer than
//! its patience goes before all others, oldest first. Patience lasts for as long as the fleet would
//! need for all who wait, more or less: then nobody waits for much longer than if all had been
//! served as they came. In a crowd it lasts longer, for otherwise all would lose it and the short
//! jobs would wait for the long ones again.
//!
//! A wide job that only one worker could run has a patience of its own. Once it has lost that, the
//! worker is emptied for it: slots stand idle until the last of them is free, which takes about as
//! long as what runs there. So its patience goes by that length. How many wait hardly matters: one
//! such job is waited for at a time, and behind it the shortest go on. The wider a job is, the
//! sooner it has to begin. Only in a flood, when the oldest alone would keep the fleet busy, it
//! lasts longer. With attempts that nobody predicted it has a last patience, which is as long as
//! everybody's would be if it were known how long things run there.

use model::policy::{LENGTH_UNKNOWN, Order};
use model::{Millis, Timestamp};

use crate::catalogue::Class;
use crate::demand::ASKED_SPAN_MAX;
use crate::table::WorkerIx;
use crate::world::World;

/// However large the crowd, patience lasts no longer than so many thousandths of the time that the
/// fleet needs for it, beyond what it lasts anyway.
const CROWD_MAX: i128 = 4_000;

/// The patience of wide jobs lasts for so many thousandths of the usual length …
const WIDE_LENGTHS: i128 = 2_250;

/// … less so many thousandths of that for one that takes a whole worker, and so on.
const WIDTH_COUNTS: i128 = 500;

/// It is a flood if the fleet needs longer for all who wait than so many times the usual length …
const FLOOD_LENGTHS: i128 = 10;

/// … and what is beyond that lengthens the patience of wide jobs so many times.
const FLOOD_COUNTS: i128 = 5;

/// What has run for so many times the usual length is not expected to end if nobody predicted it.
const UNENDING_LENGTHS: i64 = 32;

/// Among more workers than this, there are several for everybody.
const LOOKED_AT_MAX: usize = 64;

/// What ended is remembered for so many times the usual length.
const MEMORY: i128 = 5;

impl World {
    /// Takes in how long everybody is patient in this round.
    pub(crate) fn set_patience(&mut self) {
        let has_any = self.policy.order == Order::Shortest;
        self.patience = has_any.then(|| self.patience_if(LENGTH_UNKNOWN));
    }

    /// How long everybody is patient, if what nobody predicted takes so long.
    fn patience_if(&self, unknown: Millis) -> Millis {
        let shortest = &self.policy.shortest;
        let slots = i128::from(self.fleet.slots.max(1));
        let n_waiting = i128::from(self.queue.crowd.all);
        let crowd = i128::from(shortest.patience_crowd.in_thousandths().max(1));
        let part = i128::from(shortest.patience_drain.in_thousandths())
            + (n_waiting * 1_000_000 / (crowd * slots)).min(CROWD_MAX);
        let more = self.drain(unknown) * part / 1_000;
        let min = shortest.patience_min.0;
        Millis(min.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)))
    }

    /// How long the fleet needs for all who wait, in milliseconds, if what nobody predicted takes
    /// so long.
    fn drain(&self, unknown: Millis) -> i128 {
        self.queue.backlog.work(unknown) / i128::from(self.fleet.slots.max(1))
    }

    /// Something has run for so long. A mean over slot-time: how long a slot that is busy is taken.
    pub(crate) fn learn_usual(&mut self, slots: u32, ran: Millis) {
        let ran = ran.clamp(Millis::ZERO, ASKED_SPAN_MAX);
        let usual = self.usual.unwrap_or(ran);
        let work = i128::from(slots) * i128::from(ran.0);
        let memory = MEMORY * i128::from(self.fleet.slots) * i128::from(usual.0);
        let change = i128::from(ran.0 - usual.0) * work / (memory + work).max(1);
        self.usual = Some(Millis(usual.0 + i64::try_from(change).unwrap_or(0)));
    }

    /// How long anybody was patient in the last round, at most; `None` where nobody needs to be.
    pub fn patience(&self) -> Option<Millis> {
        let classes = self.queue.active().iter().map(|ix| &self.fleet.catalogue.classes[*ix]);
        let wide = classes.filter(|class| class.key.slots > 1);
        wide.filter_map(|class| self.last_patience(class)).max().max(self.patience)
    }

    /// How long a job of this class is patient with what nobody predicted, where one worker has to
    /// be emptied for it: as anybody would be who knew how long things run there.
    fn last_patience(&self, class: &Class) -> Option<Millis> {
        let own = self.patience_of(class)?;
        let is_only = self.only_worker(class).is_some();
        Some(if is_only { own.max(self.patience_if(self.usual_length())) } else { own })
    }

    /// How long a job of this class is patient; `None` where nobody needs to be.
    fn patience_of(&self, class: &Class) -> Option<Millis> {
        let Some(worker) = self.only_worker(class) else { return self.patience };
        let slots = self.fleet.workers[worker].worker.slots;
        let usual = self.usual_length();
        let width = i128::from(class.key.slots) * 1_000 / i128::from(slots.max(1));
        let part = WIDE_LENGTHS * (1_000 - WIDTH_COUNTS * width / 1_000) / 1_000;
        let flood = (self.drain(usual) - FLOOD_LENGTHS * i128::from(usual.0)).max(0);
        let more = i128::from(usual.0) * part / 1_000 + FLOOD_COUNTS * flood;
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let min = self.policy.shortest.patience_min;
        self.patience.map(|_| Millis(min.0.saturating_add(more)))
    }

    /// How long a slot that is busy is taken, by what ended, or else by what runs.
    fn usual_length(&self) -> Millis {
        self.usual.or_else(|| self.occupied.length()).unwrap_or(Millis::ZERO)
    }

    /// What has run for so long, and nobody predicted it, is not expected to end.
    pub(crate) fn unending(&self) -> Millis {
        Millis(self.usual_length().0.saturating_mul(UNENDING_LENGTHS))
    }

    /// The one worker that could hold a wide job of this class, if it is kept for such jobs; `None`
    /// if there are several, or it is not wide.
    pub(crate) fn only_worker(&self, class: &Class) -> Option<WorkerIx> {
        if class.key.slots <= 1 || !self.policy.reserve || self.patience.is_none() {
            return None;
        }
        let matching = || self.fleet.matching(class.key.fit);
        let could_hold = |ix: &WorkerIx| self.fleet.workers[*ix].could_hold(&class.key);
        let mut holding = matching().take(LOOKED_AT_MAX).filter(could_hold);
        let first = holding.next()?;
        let is_only = holding.next().is_none() && matching().nth(LOOKED_AT_MAX).is_none();
        is_only.then_some(first)
    }

    /// Jobs of this class that became ready before this have lost their patience; `None` if nobody
    /// does.
    pub(crate) fn impatient_before(&self, class: &Class) -> Option<Timestamp> {
        self.patience_of(class).map(|patience| self.now - patience)
    }

    /// Whether a job of this class that became ready then has waited for twice its last patience.
    pub(crate) fn is_despairing(&self, class: &Class, ready: Timestamp) -> bool {
        let waited = self.now.since(ready);
        self.last_patience(class).is_none_or(|patience| waited.0 / 2 >= patience.0)
    }

    /// Whether a job that became ready then has waited for twice its patience: no slot is kept
    /// from it for rare work, and it goes before all others, whatever the shares of tenants.
    pub(crate) fn is_desperate(&self, ready: Timestamp) -> bool {
        let waited = self.now.since(ready);
        self.patience.is_none_or(|patience| waited.0 / 2 >= patience.0)
    }
}
