//! Schedulers meet: each says that it is here, and finds out who else is.

use foldhash::{HashSet, HashSetExt as _};
use futures_util::FutureExt as _;
use model::{Millis, Timestamp};
use store::{Meeting, Reach};

use super::elsewhere::{Deal, deal};
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// Schedulers say this often that they are here, and what they have under way.
const MEET_EVERY: Millis = Millis(500);
/// Who has workers from now on waits until the others have known for so long, which is how long
/// what they were claiming takes, but no longer than that. Of two claims of a job one is lost.
const KNOWN_FOR: Millis = Millis(15);
const KNOWN_WITHIN: Millis = Millis(100);

impl Scheduler {
    pub(super) fn meet_at(&mut self, at: Timestamp) {
        let Some(sharing) = &mut self.sharing else { return };
        self.timers.unset(sharing.meets, Timer::Meet);
        sharing.meets = at;
        self.timers.set(at, Timer::Meet);
    }

    /// The first worker came, or the last one went: jobs are dealt anew, and not claimed before
    /// the others know.
    pub(crate) fn meet_if_seated(&mut self) {
        let (is_seated, now) = (self.fleet.n_connected() > 0, self.store.now());
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.is_seated != is_seated {
            sharing.is_seated = is_seated;
            sharing.is_dealt = false;
            sharing.seated_at = None;
            self.meet(now);
        }
    }

    /// Says that this scheduler is here, and finds out who else is, and what was called off.
    pub(crate) fn meet(&mut self, now: Timestamp) {
        let (said, is_watched) = (self.says(), self.hub.is_watched());
        let Some(sharing) = &mut self.sharing else { return };
        let told = Some((sharing.is_seated, is_watched));
        let is_news = std::mem::replace(&mut sharing.told, told) != told;
        let workers = self.fleet.seats.keys().cloned().collect();
        self.call(|store| {
            async move {
                let Some(shared) = store.shared() else {
                    return Answer::CalledOff(Ok(Vec::new()));
                };
                Answer::Met(shared.meet(said, is_news).await)
            }
            .boxed()
        });
        self.call(|store| {
            async move {
                let called_off = match store.shared() {
                    Some(shared) => shared.called_off(workers).await,
                    None => Ok(Vec::new()),
                };
                Answer::CalledOff(called_off)
            }
            .boxed()
        });
        self.meet_at(now + MEET_EVERY);
    }

    pub(crate) fn met(&mut self, answer: Result<Meeting, store::Error>) {
        let meeting = self.ok(answer);
        let now = self.store.now();
        let Some(sharing) = &mut self.sharing else { return };
        let Some(meeting) = meeting else {
            // Nobody may have heard it.
            sharing.told = None;
            return;
        };
        // Who has no workers claims nothing, and looks at everything.
        let dealt = deal(&meeting);
        let stripe = dealt.as_ref().map_or((0, 1), |deal| deal.stripe);
        if sharing.stripe != stripe {
            tracing::info!(place = stripe.0, of = stripe.1, "schedulers that share the store");
            sharing.stripe = stripe;
            sharing.want(Reach::All);
            self.withdraw_others();
        }
        if let Some(deal) = dealt {
            self.dealt(&deal, now);
        }
        self.count_elsewhere(&meeting);
    }

    /// Claims what is its own from when the others know that it does. What it saw before is theirs
    /// by now.
    fn dealt(&mut self, deal: &Deal, now: Timestamp) {
        let Some(sharing) = self.sharing.as_mut().filter(|sharing| !sharing.is_dealt) else {
            return;
        };
        let since = *sharing.seated_at.get_or_insert(deal.said);
        let is_known = |said: Timestamp| said > since && deal.said.since(said) >= KNOWN_FOR;
        if !deal.others_said.is_none_or(is_known) && deal.said.since(since) < KNOWN_WITHIN {
            self.meet_at(now + KNOWN_FOR);
            return;
        }
        sharing.is_dealt = true;
        if deal.others_said.is_some() {
            sharing.want(Reach::All);
            self.withdraw_but(&HashSet::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Record;
    use store::Peer;

    use super::super::tests::{queued, scheduler, wanted};
    use super::*;

    const SEATED: &str = r#"{"workers": 1}"#;

    /// What this scheduler said of itself at a moment, and another before or after that.
    fn meeting(own: (&str, i64), other: (&str, i64)) -> Meeting {
        let peer = |(said, at): (&str, i64)| Peer { said: said.to_owned(), at: Timestamp(at) };
        Meeting { place: 0, all: vec![peer(own), peer(other)] }
    }

    async fn seated() -> Scheduler {
        let mut scheduler = scheduler().await;
        let sharing = scheduler.sharing.as_mut().unwrap();
        (sharing.is_seated, sharing.is_dealt) = (true, false);
        scheduler
    }

    fn is_dealt(scheduler: &Scheduler) -> bool {
        scheduler.sharing.as_ref().is_some_and(|sharing| sharing.is_dealt)
    }

    #[tokio::test]
    async fn who_comes_to_have_workers_waits_until_the_others_know_and_looks_then() {
        let mut scheduler = seated().await;
        let old: Record = queued(2);
        scheduler.stand_in_line(&old);
        let meetings = [
            (1_000, 900, false),
            (1_015, 1_000, false),
            (1_030, 1_016, false),
            (1_045, 1_016, true),
        ];
        for (own, other, knows) in meetings {
            scheduler.met(Ok(meeting((SEATED, own), (SEATED, other))));
            assert_eq!(is_dealt(&scheduler), knows, "{own}");
            assert_eq!(scheduler.jobs.seen(&old.id).is_none(), knows, "another may have it by now");
        }
        assert_eq!(wanted(&scheduler), Some(Reach::All));
    }

    #[tokio::test]
    async fn nobody_is_waited_for_for_long_nor_who_has_no_workers() {
        let mut scheduler = seated().await;
        scheduler.met(Ok(meeting((SEATED, 1_000), (SEATED, 900))));
        scheduler.met(Ok(meeting((SEATED, 1_099), (SEATED, 900))));
        assert!(!is_dealt(&scheduler));
        scheduler.met(Ok(meeting((SEATED, 1_100), (SEATED, 900))));
        assert!(is_dealt(&scheduler));
        let mut scheduler = seated().await;
        scheduler.met(Ok(meeting((SEATED, 1_000), ("{}", 900))));
        assert!(is_dealt(&scheduler));
    }

    #[tokio::test]
    async fn others_are_told_once_that_something_is_new_here() {
        let mut scheduler = scheduler().await;
        let told = |scheduler: &Scheduler| scheduler.sharing.as_ref().unwrap().told;
        assert_eq!(told(&scheduler), None);
        scheduler.meet(Timestamp(1));
        assert_eq!(told(&scheduler), Some((false, false)));
        let lost = store::Error::Unavailable { doing: "meet", cause: "gone".to_owned() };
        scheduler.met(Err(lost));
        assert_eq!(told(&scheduler), None, "nobody may have heard it");
    }
}
