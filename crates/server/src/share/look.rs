//! Looks at queues: which jobs of the store stand in line here.

use foldhash::{HashSet, HashSetExt as _};
use futures_util::FutureExt as _;
use model::{JobId, Millis, Record, Timestamp};
use store::{Reach, Seen, Window};

use super::Sharing;
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// Jobs of a window.
const JOBS_MAX: usize = 20_000;
/// All queues are looked at this often, whatever is heard: news may get lost.
const LOOK_EVERY: Millis = Millis::from_secs(1);
/// A look at all of them is followed by a pause that is so many times as long, up to a limit: there
/// are jobs of which nothing is heard.
const PAUSE_OF_LOOK: i64 = 20;
const PAUSE_MAX: Millis = Millis::from_secs(5);
/// Beside so many jobs that wait here, new ones are taken in without a look.
const AT_ONCE_MAX: usize = 1_000;

/// Jobs of others that are looked at although no slot is free.
const OVERDUE_MAX: usize = 8;

/// A look that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    began: Timestamp,
    /// For whom.
    stripe: (usize, usize),
}

impl Sharing {
    pub(super) fn want(&mut self, reach: Reach) {
        self.wanted = match (self.wanted, reach) {
            (Some(Reach::All), _) | (_, Reach::All) => Some(Reach::All),
            (Some(Reach::More), _) | (_, Reach::More) => Some(Reach::More),
            (Some(Reach::News) | None, Reach::News) => Some(Reach::News),
        };
    }
}

impl Scheduler {
    /// Something waits that may not be in the window.
    pub(crate) fn want_look(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.want(Reach::News);
        }
    }

    /// Whether a job that came just now can stand in line without a look: it is this scheduler's to
    /// claim, and so few are that all of them stand in line. A look that is under way may have
    /// begun before it came, and would take it for gone. Should somebody have claimed it before
    /// this was heard, its claim is lost, and nothing else.
    pub(crate) fn comes_next(&self, record: &Record) -> bool {
        let Some(sharing) = &self.sharing else { return true };
        let is_new = record.fence == 1 && record.spec.not_before.is_none();
        let is_whole = sharing.look.is_none()
            && sharing.low.is_none()
            && matches!(sharing.wanted, None | Some(Reach::News));
        let has_few = self.world.n_queued() < AT_ONCE_MAX;
        let is_own = sharing.is_seated && sharing.is_dealt && sharing.is_own(&record.id);
        is_new && is_whole && has_few && is_own
    }

    /// Looks at queues, if that is wanted and nobody does. Who has no workers only looks now and
    /// then: to be able to say why jobs wait.
    pub(crate) fn look_if_wanted(&mut self) {
        let n_queued = self.world.n_queued();
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.low.is_some_and(|low| n_queued <= low) {
            sharing.low = None;
            sharing.want(Reach::More);
        }
        if sharing.look.is_some() || (!sharing.is_seated && sharing.wanted != Some(Reach::All)) {
            return;
        }
        // What is seen before the others know is theirs by then.
        if sharing.is_seated && !sharing.is_dealt {
            return;
        }
        let Some(reach) = sharing.wanted.take() else { return };
        let stripe = sharing.stripe;
        sharing.look = Some(Look { began: self.store.now(), stripe });
        let ask = Window { stripe, jobs_max: JOBS_MAX, spare_max: self.spare_max(reach), reach };
        self.call(|store| {
            async move {
                let seen = match store.shared() {
                    Some(shared) => shared.window(ask).await,
                    None => Ok(Seen::default()),
                };
                Answer::Window(reach, seen)
            }
            .boxed()
        });
    }

    /// Jobs of others are for slots that are free, and one more shows that there are more; a few
    /// show whether any is overdue. Whatever is free, all are looked at now and then.
    fn spare_max(&self, reach: Reach) -> usize {
        match reach {
            Reach::All => JOBS_MAX,
            Reach::News | Reach::More => (self.n_free() + 1).max(OVERDUE_MAX),
        }
    }

    /// The first jobs of queues, as they are now.
    pub(crate) fn seen(&mut self, reach: Reach, answer: Result<Seen, store::Error>) {
        let look = self.sharing.as_mut().and_then(|sharing| sharing.look.take());
        let Some(seen) = self.ok(answer) else {
            // What there was news of is not known any more.
            self.want_again(Reach::All);
            return;
        };
        let stripe = self.sharing.as_ref().map(|sharing| sharing.stripe);
        if look.map(|look| look.stripe) != stripe {
            // What it took for one's own was dealt to others meanwhile.
            self.want_again(Reach::All);
            return;
        }
        let mut window: HashSet<JobId> = HashSet::with_capacity(seen.own.len() + seen.spare.len());
        for record in seen.own.iter().chain(&seen.overdue) {
            window.insert(record.id.clone());
            self.stand_in_line(record);
        }
        self.take_spare(reach, &seen.spare, &mut window);
        if reach == Reach::All {
            self.look_again_later(look);
            // What is further on in a queue than this look went may still wait.
            if seen.is_whole {
                self.withdraw_but(&window);
            }
        }
        let n_queued = self.world.n_queued();
        if let Some(sharing) = &mut self.sharing {
            sharing.low = seen.is_more.then_some(n_queued / 2);
        }
        if let Some(at) = seen.next_due {
            self.timers.set(at.max(self.store.now() + Millis(1)), Timer::Due);
        }
    }

    /// What waits here and was not seen waits no longer, or is another's.
    pub(super) fn withdraw_but(&mut self, window: &HashSet<JobId>) {
        let gone = self.jobs.waiting().filter(|job| !window.contains(*job));
        for job in gone.cloned().collect::<Vec<JobId>>() {
            self.withdraw(&job);
        }
    }

    pub(super) fn want_again(&mut self, reach: Reach) {
        if let Some(sharing) = &mut self.sharing {
            sharing.want(reach);
        }
    }

    /// All queues are looked at now and then, whatever is heard: the longer it takes, the more
    /// seldom.
    fn look_again_later(&mut self, last: Option<Look>) {
        let now = self.store.now();
        let took = last.map_or(Millis(0), |look| now.since(look.began));
        self.look_by(now + pause_after(took));
    }

    /// All queues are looked at then, if not before.
    pub(super) fn look_by(&mut self, at: Timestamp) {
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.next.is_some_and(|next| next <= at) {
            return;
        }
        if let Some(next) = sharing.next.replace(at) {
            self.timers.unset(next, Timer::Look);
        }
        self.timers.set(at, Timer::Look);
    }

    pub(crate) fn look_at_all(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.next = None;
            sharing.want(Reach::All);
        }
    }
}

/// How long after a look that took so long all queues are looked at again.
fn pause_after(took: Millis) -> Millis {
    Millis(took.0.saturating_mul(PAUSE_OF_LOOK)).max(LOOK_EVERY).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{queued, scheduler, wanted};
    use super::*;

    #[test]
    fn all_queues_are_looked_at_every_second_or_five() {
        let pauses = [0, 50, 100, 60_000].map(|took| pause_after(Millis(took)).0);
        assert_eq!(pauses, [1_000, 1_000, 2_000, 5_000]);
    }

    #[tokio::test]
    async fn what_a_look_that_failed_knew_of_is_looked_for_everywhere() {
        let mut scheduler = scheduler().await;
        let lost = store::Error::Unavailable { doing: "look", cause: "gone".to_owned() };
        scheduler.seen(Reach::News, Err(lost));
        assert_eq!(wanted(&scheduler), Some(Reach::All));
    }

    #[tokio::test]
    async fn who_is_not_dealt_jobs_yet_looks_once_it_is() {
        let mut scheduler = scheduler().await;
        let look = |is_dealt: bool, scheduler: &mut Scheduler| {
            let sharing = scheduler.sharing.as_mut().unwrap();
            (sharing.is_seated, sharing.is_dealt) = (true, is_dealt);
            sharing.want(Reach::News);
            scheduler.look_if_wanted();
            scheduler.sharing.as_ref().unwrap().look.is_some()
        };
        assert!(!look(false, &mut scheduler));
        assert_eq!(wanted(&scheduler), Some(Reach::News));
        assert!(look(true, &mut scheduler));
        assert_eq!(scheduler.spare_max(Reach::News), OVERDUE_MAX, "there are no slots here");
    }

    #[tokio::test]
    async fn a_job_of_ones_own_stands_in_line_at_once_where_all_do() {
        let mut scheduler = scheduler().await;
        let is_taken_in = |change: fn(&mut Sharing), record: &Record, scheduler: &mut Scheduler| {
            let sharing = scheduler.sharing.as_mut().unwrap();
            *sharing = Sharing { stripe: (0, 2), wanted: None, ..Sharing::new() };
            (sharing.is_seated, sharing.is_dealt) = (true, true);
            change(sharing);
            scheduler.told(record);
            let stands = scheduler.jobs.seen(&record.id).is_some();
            assert_ne!(stands, wanted(scheduler).is_some(), "it stands there, or is looked for");
            stands
        };
        assert!(is_taken_in(|_| (), &queued(2), &mut scheduler));
        assert!(!is_taken_in(|_| (), &queued(3), &mut scheduler), "it is another's");
        let old = Record { fence: 2, ..queued(4) };
        assert!(!is_taken_in(|_| (), &old, &mut scheduler), "it may be old news");
        assert!(!is_taken_in(|one| one.is_seated = false, &queued(4), &mut scheduler));
        assert!(!is_taken_in(|one| one.low = Some(0), &queued(4), &mut scheduler), "some do not");
        assert!(!is_taken_in(|one| one.wanted = Some(Reach::All), &queued(4), &mut scheduler));
        let look = |one: &mut Sharing| {
            one.look = Some(Look { began: Timestamp(0), stripe: one.stripe });
        };
        assert!(!is_taken_in(look, &queued(4), &mut scheduler), "the look would not know it");
        for number in 2..=AT_ONCE_MAX {
            let number = 2 * u64::try_from(number).unwrap();
            assert!(is_taken_in(|_| (), &queued(number), &mut scheduler));
        }
        assert!(!is_taken_in(|_| (), &queued(10_000), &mut scheduler), "so many are many");
    }
}
