//! When each waiting job is to be looked at again.
//!
//! A job that goes leaves its timer behind: most do, long before their moment, and finding it would
//! cost more than passing over it once. What was left behind is cleared before it is most of all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Timestamp;

use crate::table::JobIx;

#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, JobIx)>>,
    /// How many of them still count.
    n_live: usize,
}

/// Fewer than this are never worth clearing.
const CLEARED_MIN: usize = 1_024;

impl Timers {
    pub(crate) fn set(&mut self, moment: Timestamp, job: JobIx) {
        self.heap.push(Reverse((moment, job)));
        self.n_live += 1;
    }

    /// The timer of some job counts no longer.
    pub(crate) fn cancel(&mut self) {
        self.n_live -= 1;
    }

    /// The next moment; the job may be gone by then.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((moment, _))| *moment)
    }

    /// Takes out the next whose moment came by `now`, whether it still counts or not.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, JobIx)> {
        let Reverse((moment, _)) = self.heap.peek()?;
        if *moment > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }

    /// Whether most of them count no longer.
    pub(crate) fn wants_clearing(&self) -> bool {
        self.heap.len() >= CLEARED_MIN && self.heap.len() > 2 * self.n_live
    }

    /// Keeps each that `counts`, once.
    pub(crate) fn clear(&mut self, counts: impl Fn(Timestamp, JobIx) -> bool) {
        let mut timers = std::mem::take(&mut self.heap).into_vec();
        timers.retain(|Reverse((moment, job))| counts(*moment, *job));
        timers.sort_unstable();
        timers.dedup();
        self.heap = timers.into();
    }
}
