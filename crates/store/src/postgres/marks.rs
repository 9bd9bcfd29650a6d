//! Where looking for work begins in each queue: behind what was claimed long ago.
//!
//! What was claimed leaves traces in the index until the last transaction that could see it has
//! ended. Whoever began at the very beginning each time would pass by all of them.
//!
//! **Invariant:** no job that waits stands before the mark of its queue, but for those whose news
//! got lost; a look at everything finds them.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tell::Told;

#[derive(Default)]
pub(super) struct Marks(Mutex<Places>);

#[derive(Default)]
struct Places {
    first: HashMap<i64, i64>,
    /// Queues that are worth another look.
    fresh: HashSet<i64>,
}

impl Marks {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs came to stand in queues.
    pub(super) fn lower(&self, told: &Told) {
        let mut places = self.places();
        for (queue, place) in &told.work {
            let first = places.first.entry(*queue).or_insert(*place);
            *first = (*first).min(*place);
            places.fresh.insert(*queue);
        }
    }

    /// Queues that are worth another look, and where it begins.
    pub(super) fn take_fresh(&self) -> Vec<(i64, i64)> {
        let mut places = self.places();
        let fresh: Vec<i64> = places.fresh.drain().collect();
        let mut from: Vec<(i64, i64)> = fresh
            .into_iter()
            .map(|queue| (queue, places.first.get(&queue).copied().unwrap_or(i64::MIN)))
            .collect();
        from.sort_unstable();
        from
    }

    /// A look began at `from` and found these to be the first. What came to stand before them in
    /// the meantime is kept.
    pub(super) fn raise(&self, from: &[(i64, i64)], first: &HashMap<i64, i64>, full: &[i64]) {
        let mut places = self.places();
        for (queue, from) in from {
            let is_lower = places.first.get(queue).is_some_and(|place| place < from);
            if is_lower {
                continue;
            }
            match first.get(queue) {
                Some(place) => drop(places.first.insert(*queue, *place)),
                None => drop(places.first.remove(queue)),
            }
        }
        places.fresh.extend(full);
    }

    /// A look at everything found these to be the first.
    pub(super) fn set(&self, first: HashMap<i64, i64>, full: &[i64]) {
        let mut places = self.places();
        places.first = first;
        places.fresh.extend(full);
    }
}
