//! Schedulers meet: each says that it is here, and finds out who else is.

use futures_util::FutureExt as _;
use model::{Millis, Timestamp};
use store::{Meeting, Reach};

use super::elsewhere::stripe;
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// Schedulers say this often that they are here, and what they have under way.
const MEET_EVERY: Millis = Millis(500);

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
            self.meet(now);
        }
    }

    /// Says that this scheduler is here, and finds out who else is, and what was called off.
    pub(crate) fn meet(&mut self, now: Timestamp) {
        let (said, is_watched) = (self.says(), self.hub.is_watched());
        let Some(sharing) = &mut self.sharing else { return };
        let is_news = !sharing.is_dealt || sharing.elsewhere.is_watched != is_watched;
        sharing.elsewhere.is_watched = is_watched;
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
        let Some(meeting) = self.ok(answer) else { return };
        let dealt = stripe(&meeting);
        let Some(sharing) = &mut self.sharing else { return };
        sharing.is_dealt |= dealt.is_some();
        // Who has no workers claims nothing, and looks at everything.
        let stripe = dealt.unwrap_or((0, 1));
        if sharing.stripe != stripe {
            tracing::info!(place = stripe.0, of = stripe.1, "schedulers that share the store");
            sharing.stripe = stripe;
            sharing.want(Reach::All);
            self.withdraw_others();
        }
        self.count_elsewhere(&meeting);
    }
}
