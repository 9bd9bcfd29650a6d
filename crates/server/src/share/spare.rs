//! Jobs that are another scheduler's to claim, for slots that nothing of one's own has use for.
//!
//! A job that its owner can claim is gone in a moment. So one of another's is taken if its owner
//! cannot have heard of it yet, or has left it where it is for a while. If it is left for longer,
//! it may have a right to a slot that is taken here: only who has the victim can preempt it.
//!
//! **Invariant:** a slot does not stay idle because of jobs that it is not for. What is one's own
//! is seated first; of the slots that are free then, each look lets one more job have a try.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet};
use model::{JobId, Millis, Record, Timestamp, WorkerId};
use store::Reach;

use crate::fleet::Seat;
use crate::scheduler::Scheduler;

/// What is younger was not heard of elsewhere: news is told this much later.
const UNHEARD: Millis = Millis(10);
/// What its owner could claim is gone by then.
const LEFT_FOR: Millis = Millis(25);
/// What its owner can seat where it has workers is seated by then, if it has a right to a slot.
const STUCK_FOR: Millis = Millis(500);
/// Such jobs that stand in line here, where slots may be taken from others.
const STUCK_MAX: usize = 64;

/// Jobs of others that were not taken, and since when they have been seen.
pub(super) type Left = HashMap<JobId, Timestamp>;

impl Scheduler {
    /// Takes jobs of others, as many as there are slots for. While there may be more, all queues
    /// are looked at again soon.
    pub(super) fn take_spare(
        &mut self,
        reach: Reach,
        spare: &[Arc<Record>],
        window: &mut HashSet<JobId>,
    ) {
        let now = self.store.now();
        let mut n_more = self.n_idle(now);
        let n_before = self.world.n_queued();
        let has_room = n_more >= spare.len();
        let mut n_stuck = if self.world.may_preempt() { STUCK_MAX } else { 0 };
        let mut left = Left::new();
        let mut before = self.sharing.as_mut().map(|sharing| std::mem::take(&mut sharing.left));
        for record in spare {
            let since = before.as_mut().and_then(|left| left.remove(&record.id)).unwrap_or(now);
            // It had its try, and may have another as long as it is there.
            if self.jobs.seen(&record.id).is_some() {
                window.insert(record.id.clone());
                self.stand_in_line(record);
                continue;
            }
            let is_unheard = record.ready.is_some_and(|ready| now.since(ready) < UNHEARD);
            let is_left = is_unheard || now.since(since) >= LEFT_FOR;
            let is_stuck = n_stuck > 0 && now.since(since) >= STUCK_FOR;
            if (is_left && n_more > 0) || is_stuck {
                n_more = n_more.saturating_sub(1);
                n_stuck = n_stuck.saturating_sub(1);
                window.insert(record.id.clone());
                self.stand_in_line(record);
            } else {
                left.insert(record.id.clone(), since);
            }
        }
        if has_room && self.world.n_queued() > n_before {
            self.want_again(Reach::All);
        } else if n_more > 0 && !left.is_empty() {
            self.look_by(now + LEFT_FOR);
        }
        // A look at some queues says nothing of the others.
        if reach != Reach::All {
            left.extend(before.into_iter().flatten());
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.left = left;
        }
    }

    /// Slots that are free once what is one's own is seated, as far as that can be known now.
    fn n_idle(&mut self, now: Timestamp) -> usize {
        if self.may_claim() {
            self.round(now);
            self.n_free()
        } else {
            self.n_free().saturating_sub(self.world.n_queued())
        }
    }

    /// Slots of workers that are connected here and have nothing to do. A job that is being claimed
    /// takes one.
    pub(super) fn n_free(&self) -> usize {
        let seats = self.fleet.seats.iter().filter(|(_, seat)| seat.stream.is_some());
        let free = |(worker, seat): (&WorkerId, &Seat)| {
            let n_free = seat.said.slots.saturating_sub(self.jobs.slots_of(worker));
            usize::try_from(n_free).unwrap_or(usize::MAX)
        };
        seats.map(free).fold(0, usize::saturating_add).saturating_sub(self.jobs.n_claiming())
    }
}
