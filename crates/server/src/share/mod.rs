//! Several schedulers on one store. Each decides for its own workers, over a window: the first jobs
//! of each queue. Work is shared through the store, never handed from one to another.
//!
//! A scheduler claims what is in its *stripe*: each job is in one. Of the stripes of others it
//! takes what they should have claimed by now, and what its idle slots have room for.

mod elsewhere;
mod meet;
mod seats;
pub(crate) mod settings;
mod spare;
mod unstarted;
pub(crate) mod watched;

use std::collections::BTreeSet;

use foldhash::{HashSet, HashSetExt as _};
use futures_util::FutureExt as _;
use model::{JobId, Millis, Timestamp};
use store::{Claim, News, Reach, Seen, SettingKind, Window};

use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;
use elsewhere::Elsewhere;
use spare::Left;

/// Jobs of a window.
const JOBS_MAX: usize = 20_000;
/// All queues are looked at this often, whatever is heard: news may get lost.
const LOOK_EVERY: Millis = Millis::from_secs(1);
/// A look at all of them is followed by a pause that is so many times as long, up to a limit: there
/// are jobs of which nothing is heard.
const PAUSE_OF_LOOK: i64 = 20;
const PAUSE_MAX: Millis = Millis::from_secs(5);
/// So many claims are lost in a row before all queues are looked at again.
const LOSSES_MAX: u32 = 5;

/// What a scheduler knows that shares its store.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Sharing {
    /// The place of this one among so many.
    stripe: (usize, usize),
    /// Workers are connected here, and the others know: jobs are dealt to this one too.
    is_seated: bool,
    is_dealt: bool,
    /// When schedulers meet next.
    meets: Timestamp,
    /// A look at queues is wanted, and which.
    wanted: Option<Reach>,
    is_looking: bool,
    /// If fewer jobs wait here than this, there are more where they came from.
    low: Option<usize>,
    /// When the look that is under way began, and for which stripe.
    began: Timestamp,
    stripe_asked: (usize, usize),
    /// When all queues are looked at next.
    next: Option<Timestamp>,
    /// When claims of which nothing came are looked for next.
    unstarted_by: Timestamp,
    /// Claims that were lost in a row.
    losses: u32,
    /// Jobs of others that were not taken.
    left: Left,
    /// What others have under way.
    elsewhere: Elsewhere,
    /// Settings that hold now, and when they are read again.
    settings: BTreeSet<(SettingKind, String)>,
    settings_by: Timestamp,
    are_settings_wanted: bool,
    are_settings_asked: bool,
    /// What tells all of them together from others.
    seal: String,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Won,
    Lost,
}

impl Sharing {
    pub(crate) fn new() -> Self {
        Self {
            stripe: (0, 1),
            is_seated: false,
            is_dealt: false,
            meets: Timestamp(0),
            wanted: Some(Reach::All),
            is_looking: false,
            low: None,
            began: Timestamp(0),
            stripe_asked: (0, 1),
            next: None,
            unstarted_by: Timestamp(0),
            losses: 0,
            left: Left::default(),
            elsewhere: Elsewhere::default(),
            settings: BTreeSet::new(),
            settings_by: Timestamp(i64::MIN),
            are_settings_wanted: false,
            are_settings_asked: false,
            seal: String::new(),
        }
    }

    fn want(&mut self, reach: Reach) {
        self.wanted = match (self.wanted, reach) {
            (Some(Reach::All), _) | (_, Reach::All) => Some(Reach::All),
            (Some(Reach::More), _) | (_, Reach::More) => Some(Reach::More),
            (Some(Reach::News) | None, Reach::News) => Some(Reach::News),
        };
    }

    /// Whoever loses time and again has an old picture of the queues.
    fn count_claim(&mut self, outcome: Outcome) {
        self.losses = match outcome {
            Outcome::Won => 0,
            Outcome::Lost => self.losses + 1,
        };
        if self.losses >= LOSSES_MAX {
            self.losses = 0;
            self.want(Reach::All);
        }
    }

    /// Whether the job is this scheduler's to claim.
    fn is_own(&self, job: &JobId) -> bool {
        let (place, n_all) = self.stripe;
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        job.as_number().is_none_or(|job| job % number(n_all.max(1)) == number(place))
    }
}

impl Scheduler {
    /// Whether others share the store.
    pub(crate) const fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// Whether a job is another scheduler's to claim.
    pub(crate) fn is_others(&self, job: &JobId) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.is_own(job))
    }

    /// Something waits that may not be in the window.
    pub(crate) fn want_look(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.want(Reach::News);
        }
    }

    /// Starts what goes on for as long as the store is shared.
    pub(crate) fn begin_sharing(&mut self, now: Timestamp) {
        if self.is_shared() {
            self.meet_at(now);
        }
    }

    pub(crate) fn hear_news(&mut self, news: News) {
        match news {
            News::Work => self.want_look(),
            News::Listening => {
                self.look_at_all();
                self.want_settings();
                self.meet_at(self.store.now());
            }
            News::CalledOff(job) => self.hear_called_off(job),
            News::Settings => self.want_settings(),
            News::Peers => self.meet_at(self.store.now()),
            // Whoever watches reads it: nothing is decided by it.
            News::Changed(_) | News::Missed => {}
        }
    }

    /// Somebody says that a job was called off. Whoever may connect to the database may say so: it
    /// is asked what really was.
    fn hear_called_off(&mut self, job: JobId) {
        if self.jobs.is_placed(&job) {
            self.meet_at(self.store.now());
        } else if self.jobs.seen(&job).is_some() {
            self.refetch.insert(job);
        }
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
        if sharing.is_looking || (!sharing.is_seated && sharing.wanted != Some(Reach::All)) {
            return;
        }
        let Some(reach) = sharing.wanted.take() else { return };
        sharing.is_looking = true;
        sharing.began = self.store.now();
        sharing.stripe_asked = sharing.stripe;
        let ask = Window { stripe: sharing.stripe, jobs_max: JOBS_MAX, reach };
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

    /// The first jobs of queues, as they are now.
    pub(crate) fn seen(&mut self, reach: Reach, answer: Result<Seen, store::Error>) {
        if let Some(sharing) = &mut self.sharing {
            sharing.is_looking = false;
        }
        let Some(seen) = self.ok(answer) else {
            // What there was news of is not known any more.
            self.want_again(Reach::All);
            return;
        };
        if self.sharing.as_ref().is_some_and(|sharing| sharing.stripe_asked != sharing.stripe) {
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
            self.look_again_later();
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
    fn withdraw_but(&mut self, window: &HashSet<JobId>) {
        let gone = self.jobs.waiting().filter(|job| !window.contains(*job));
        for job in gone.cloned().collect::<Vec<JobId>>() {
            self.withdraw(&job);
        }
    }

    /// What was one's own and is not any longer.
    fn withdraw_others(&mut self) {
        let others = self.jobs.waiting().filter(|job| self.is_others(job));
        for job in others.cloned().collect::<Vec<JobId>>() {
            self.withdraw(&job);
        }
        let (own, others): (Vec<Claim>, Vec<Claim>) = std::mem::take(&mut self.outgoing.claims)
            .into_iter()
            .partition(|claim| !self.is_others(&claim.job));
        self.outgoing.claims = own;
        for claim in others {
            self.take_back(&claim.job);
        }
    }

    fn want_again(&mut self, reach: Reach) {
        if let Some(sharing) = &mut self.sharing {
            sharing.want(reach);
        }
    }

    /// All queues are looked at now and then, whatever is heard: the longer it takes, the more
    /// seldom.
    fn look_again_later(&mut self) {
        let now = self.store.now();
        let Some(sharing) = &mut self.sharing else { return };
        let took = now.since(sharing.began);
        self.look_by(now + pause_after(took));
    }

    /// All queues are looked at then, if not before.
    fn look_by(&mut self, at: Timestamp) {
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

    /// A claim was won, or lost to somebody else.
    pub(crate) fn count_claim(&mut self, outcome: Outcome) {
        if let Some(sharing) = &mut self.sharing {
            sharing.count_claim(outcome);
        }
    }

    /// Whether what is decided can be claimed now.
    pub(crate) fn may_claim(&self) -> bool {
        let sharing = self.sharing.as_ref();
        sharing.is_none_or(|sharing| sharing.is_dealt && self.outgoing.claims.is_empty())
    }

    pub(crate) fn calls_off(&mut self, answer: Result<Vec<JobId>, store::Error>) {
        for job in self.ok(answer).into_iter().flatten() {
            self.cancel(&job);
        }
    }
}

/// How long after a look that took so long all queues are looked at again.
fn pause_after(took: Millis) -> Millis {
    Millis(took.0.saturating_mul(PAUSE_OF_LOOK)).max(LOOK_EVERY).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{Memory, Options};

    use super::*;
    use crate::config::Config;
    use crate::recover::recover;
    use crate::watch::Hub;

    #[test]
    fn after_five_losses_in_a_row_everything_is_looked_at() {
        let mut sharing = Sharing { wanted: None, ..Sharing::new() };
        let lose = |n_times: usize, sharing: &mut Sharing| {
            (0..n_times).for_each(|_| sharing.count_claim(Outcome::Lost));
            sharing.wanted
        };
        assert_eq!(lose(4, &mut sharing), None);
        sharing.count_claim(Outcome::Won);
        assert_eq!(lose(4, &mut sharing), None);
        assert_eq!(lose(1, &mut sharing), Some(Reach::All));
        sharing.wanted = None;
        assert_eq!(lose(4, &mut sharing), None, "it is counted anew");
    }

    #[test]
    fn all_queues_are_looked_at_every_second_or_five() {
        let pauses = [0, 50, 100, 60_000].map(|took| pause_after(Millis(took)).0);
        assert_eq!(pauses, [1_000, 1_000, 2_000, 5_000]);
    }

    /// A scheduler that shares a store with others, and has looked at everything.
    async fn scheduler() -> Scheduler {
        let store = Arc::new(Memory::new(Options::default()));
        let scheduler = recover(Arc::new(Config::default()), store, Hub::new()).await;
        let mut scheduler = scheduler.expect("memory does not fail");
        scheduler.sharing = Some(Sharing { wanted: None, ..Sharing::new() });
        scheduler
    }

    fn wanted(scheduler: &Scheduler) -> Option<Reach> {
        scheduler.sharing.as_ref().and_then(|sharing| sharing.wanted)
    }

    #[tokio::test]
    async fn whoever_did_not_listen_for_a_while_looks_at_everything() {
        let mut scheduler = scheduler().await;
        scheduler.hear_news(News::Work);
        assert_eq!(wanted(&scheduler), Some(Reach::News));
        scheduler.hear_news(News::Listening);
        assert_eq!(wanted(&scheduler), Some(Reach::All));
        let sharing = scheduler.sharing.as_ref();
        assert!(sharing.is_some_and(|sharing| sharing.are_settings_wanted));
    }

    #[tokio::test]
    async fn what_a_look_that_failed_knew_of_is_looked_for_everywhere() {
        let mut scheduler = scheduler().await;
        let lost = store::Error::Unavailable { doing: "look", cause: "gone".to_owned() };
        scheduler.seen(Reach::News, Err(lost));
        assert_eq!(wanted(&scheduler), Some(Reach::All));
    }
}
