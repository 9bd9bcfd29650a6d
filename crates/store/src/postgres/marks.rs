//! The position in each queue up to which it was scanned. The next scan begins there.
//!
//! A claimed row stays in the index until the last transaction that could see it ends. A scan from
//! the head of the queue would skip all of these rows, and would read known jobs again.
//!
//! **Invariant:** each waiting job was scanned, stands behind the mark of its queue, or has a
//! notification. A full scan finds the jobs whose notification was lost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;

use super::tell::Told;

/// The position of a job in its queue: its place, and its number among those with this place.
pub(super) type Spot = (i64, i64);

/// Before all positions.
pub(super) const BEGINNING: Spot = (i64::MIN, i64::MIN);

#[derive(Default)]
pub(super) struct Marks(Mutex<Places>);

#[derive(Default)]
struct Places {
    /// The shard that was scanned.
    stripe: (usize, usize),
    marks: HashMap<i64, Mark>,
    /// Queues with an arrival, and the lowest place of an arrival.
    news: HashMap<i64, i64>,
}

/// The state of the scan of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// The last scanned position.
    last: Spot,
    /// The scan stopped before the end of the queue.
    is_more: bool,
}

/// The result of a scan of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) last: Spot,
    /// The scan returned as many jobs as it asked for.
    pub(super) is_full: bool,
}

impl Places {
    /// Whether the next scan of the rest will reach this place. A scan must not jump over a place.
    fn has_its_turn(&self, queue: i64, place: i64) -> bool {
        self.marks.get(&queue).is_some_and(|mark| mark.is_more && place > mark.last.0)
    }
}

impl Marks {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the shard to scan. No job of a new shard was scanned.
    pub(super) fn look_for(&self, stripe: (usize, usize)) {
        let mut places = self.places();
        if places.stripe != stripe {
            places.stripe = stripe;
            places.marks.clear();
        }
    }

    /// Jobs arrived in queues. `true`: the next scan would not find all of them.
    pub(super) fn lower(&self, told: &Told) -> bool {
        let mut places = self.places();
        let mut is_news = false;
        for (queue, place) in &told.work {
            // Recorded in any case: a running scan may have begun before the job arrived, and may
            // reach the end of the queue.
            is_news |= !places.has_its_turn(*queue, *place);
            let first = places.news.entry(*queue).or_insert(*place);
            *first = (*first).min(*place);
        }
        is_news
    }

    /// Queues with arrivals, and the position after which a scan begins.
    pub(super) fn take_news(&self) -> Vec<(i64, Spot)> {
        let mut places = self.places();
        let mut news = std::mem::take(&mut places.news);
        // A place that the next scan of the rest will reach needs no scan of its own.
        news.retain(|queue, place| !places.has_its_turn(*queue, *place));
        let mut after: Vec<(i64, Spot)> =
            news.into_iter().map(|(queue, place)| (queue, (place, i64::MIN))).collect();
        after.sort_unstable();
        after
    }

    /// The same, and the queues whose scan stopped before the end.
    pub(super) fn take_more(&self) -> Vec<(i64, Spot)> {
        let mut after: HashMap<i64, Spot> = self.take_news().into_iter().collect();
        for (queue, mark) in self.places().marks.iter().filter(|(_, mark)| mark.is_more) {
            let spot = after.entry(*queue).or_insert(mark.last);
            *spot = (*spot).min(mark.last);
        }
        let mut after: Vec<(i64, Spot)> = after.into_iter().collect();
        after.sort_unstable();
        after
    }

    /// Records the result of a scan after these positions.
    pub(super) fn move_on(&self, after: &[(i64, Spot)], found: &HashMap<i64, Found>) {
        let mut places = self.places();
        for (queue, after) in after {
            let before = places.marks.get(queue).map_or(BEGINNING, |mark| mark.last);
            let mark = match found.get(queue) {
                // The next scan reads again from here to the old mark.
                Some(Found { last, is_full: true }) => Mark { last: *last, is_more: true },
                Some(Found { last, is_full: false }) => {
                    Mark { last: before.max(*last), is_more: false }
                }
                None => Mark { last: before.max(*after), is_more: false },
            };
            places.marks.insert(*queue, mark);
        }
    }

    /// A full scan begins. It covers all notifications so far.
    pub(super) fn take_all_news(&self) -> HashMap<i64, i64> {
        std::mem::take(&mut self.places().news)
    }

    /// Records the result of a full scan. Marks that are further on stay, and so do notifications
    /// that the scan did not reach.
    pub(super) fn begin_again(&self, news: HashMap<i64, i64>, found: &HashMap<i64, Found>) {
        let mut places = self.places();
        for (queue, place) in news {
            if found.get(&queue).is_some_and(|found| found.is_full && found.last.0 <= place) {
                let first = places.news.entry(queue).or_insert(place);
                *first = (*first).min(place);
            }
        }
        let before = std::mem::take(&mut places.marks);
        for (queue, Found { last, is_full }) in found {
            let mark = match before.get(queue) {
                Some(mark) if *is_full && mark.last > *last => *mark,
                Some(_) | None => Mark { last: *last, is_more: *is_full },
            };
            places.marks.insert(*queue, mark);
        }
    }

    /// Whether a scan of some queue stopped before its end.
    pub(super) fn is_more(&self) -> bool {
        let places = self.places();
        let is_news = |(queue, place): (&i64, &i64)| !places.has_its_turn(*queue, *place);
        places.marks.values().any(|mark| mark.is_more) || places.news.iter().any(is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(queue: i64, place: i64) -> Told {
        Told { work: vec![(queue, place)], ..Told::default() }
    }

    fn found(last: Spot, is_full: bool) -> HashMap<i64, Found> {
        HashMap::from_iter([(1, Found { last, is_full })])
    }

    #[test]
    fn scan_continues_where_the_last_one_ended() {
        let marks = Marks::default();
        assert!(marks.lower(&work(1, 5)));
        let after = marks.take_news();
        assert_eq!(after, [(1, (5, i64::MIN))]);
        marks.move_on(&after, &found((8, 3), true));
        assert_eq!((marks.take_news(), marks.is_more()), (vec![], true));
        assert_eq!(marks.take_more(), [(1, (8, 3))]);
        // A place behind the mark needs no notification, one before it does.
        assert!(!marks.lower(&work(1, 9)));
        assert!(marks.lower(&work(1, 8)) && marks.lower(&work(1, 2)));
        assert_eq!(marks.take_more(), [(1, (2, i64::MIN))]);
    }

    #[test]
    fn notification_during_a_scan_loses_no_job() {
        let marks = Marks::default();
        marks.lower(&work(1, 5));
        let after = marks.take_news();
        marks.lower(&work(1, 20));
        marks.move_on(&after, &found((8, 3), true));
        assert_eq!(marks.take_news(), []);
        assert_eq!(marks.take_more(), [(1, (8, 3))]);
    }

    #[test]
    fn notification_during_the_last_scan_of_a_queue_is_scanned() {
        let marks = Marks::default();
        marks.begin_again(HashMap::default(), &found((8, 3), true));
        let after = marks.take_more();
        assert!(!marks.lower(&work(1, 20)), "it would have its turn");
        marks.move_on(&after, &found((15, 1), false));
        assert!(marks.is_more());
        assert_eq!(marks.take_news(), [(1, (20, i64::MIN))]);
        assert!(!marks.is_more());
    }

    #[test]
    fn finished_queue_is_scanned_again_after_a_notification() {
        let marks = Marks::default();
        marks.begin_again(HashMap::default(), &found((8, 3), false));
        assert_eq!((marks.take_more(), marks.is_more()), (vec![], false));
        assert!(marks.lower(&work(1, 9)));
        assert_eq!(marks.take_more(), [(1, (9, i64::MIN))]);
    }

    #[test]
    fn full_scan_keeps_marks_that_are_further_on() {
        let marks = Marks::default();
        let begin_again = |found| marks.begin_again(HashMap::default(), &found);
        begin_again(found((8, 3), true));
        begin_again(found((4, 1), true));
        assert_eq!(marks.take_more(), [(1, (8, 3))]);
        marks.look_for((0, 2));
        begin_again(found((4, 1), true));
        assert_eq!(marks.take_more(), [(1, (4, 1))], "others were seen, but not these");
        begin_again(HashMap::default());
        assert_eq!(marks.take_more(), []);
    }

    #[test]
    fn full_scan_clears_only_notifications_that_it_reached() {
        for (last, is_full, remains) in
            [((8, 3), false, false), ((8, 3), true, false), ((5, 9), true, true)]
        {
            let marks = Marks::default();
            marks.begin_again(HashMap::default(), &found((9, 1), true));
            marks.lower(&work(1, 5));
            let news = marks.take_all_news();
            marks.begin_again(news, &found(last, is_full));
            let expected = if remains { vec![(1, (5, i64::MIN))] } else { Vec::new() };
            assert_eq!(marks.take_news(), expected);
        }
        // A job that arrives during the scan keeps its notification.
        let marks = Marks::default();
        marks.lower(&work(1, 5));
        let news = marks.take_all_news();
        marks.lower(&work(1, 6));
        marks.begin_again(news, &found((8, 3), false));
        assert_eq!(marks.take_news(), [(1, (6, i64::MIN))]);
        // The map does not grow if only full scans run.
        for queue in 0..9 {
            marks.lower(&work(queue, 1));
            marks.begin_again(marks.take_all_news(), &HashMap::default());
        }
        assert_eq!(marks.take_all_news().len(), 0);
    }
}
