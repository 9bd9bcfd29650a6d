//! Several schedulers on one store. Each decides for its own workers, over a window: the first jobs
//! of each queue. Work is shared through the store, never handed from one to another.
//!
//! A scheduler claims what is in its *stripe*: each job is in one. Of the stripes of others it
//! takes what they should have claimed by now, and what its idle slots have room for.

mod elsewhere;
mod limits;

use std::collections::{BTreeSet, HashSet};

use futures_util::FutureExt as _;
use model::{JobId, Millis, Record, Timestamp, WorkerId};
use store::{Meeting, News, Reach, Seen, Setting, SettingKind, Window};

use crate::fleet::Seat;
use crate::scheduler::{Answer, Scheduler};
use crate::settings::understand;
use crate::timers::Timer;
use elsewhere::{Elsewhere, stripe};
use limits::Limits;

/// Jobs of a window.
const JOBS_MAX: usize = 20_000;
/// Schedulers say this often that they are here, and what they have under way.
const MEET_EVERY: Millis = Millis(500);
/// All queues are looked at this often, whatever is heard: news may get lost.
const LOOK_EVERY: Millis = Millis::from_secs(1);
/// A look at all of them is followed by a pause that is so many times as long.
const PAUSE_OF_LOOK: i64 = 20;
/// So many claims are lost in a row before all queues are looked at again.
const LOSSES_MAX: u32 = 5;

/// What a scheduler knows that shares its store.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// The place of this one among so many.
    stripe: (usize, usize),
    /// A look at queues is wanted, and which.
    wanted: Option<Reach>,
    is_looking: bool,
    /// If fewer jobs wait here than this, there are more where they came from.
    low: Option<usize>,
    /// When the look that is under way began.
    began: Timestamp,
    /// When all queues are looked at next.
    next: Option<Timestamp>,
    /// Claims that were lost in a row.
    losses: u32,
    /// What others have under way.
    elsewhere: Elsewhere,
    limits: Limits,
    /// Settings that hold now.
    settings: BTreeSet<(SettingKind, String)>,
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
            wanted: Some(Reach::All),
            is_looking: false,
            low: None,
            began: Timestamp(0),
            next: None,
            losses: 0,
            elsewhere: Elsewhere::default(),
            limits: Limits::default(),
            settings: BTreeSet::new(),
        }
    }

    fn want(&mut self, reach: Reach) {
        self.wanted = match (self.wanted, reach) {
            (Some(Reach::All), _) | (_, Reach::All) => Some(Reach::All),
            (Some(Reach::More), _) | (_, Reach::More) => Some(Reach::More),
            (Some(Reach::News) | None, Reach::News) => Some(Reach::News),
        };
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
            self.timers.set(now, Timer::Meet);
        }
    }

    pub(crate) fn hear_news(&mut self, news: News) {
        match news {
            News::Work => self.want_look(),
            News::CalledOff(job) => {
                let is_here = self.jobs.is_placed(&job) || self.jobs.seen(&job).is_some();
                if is_here {
                    self.cancel(&job);
                }
            }
            News::Settings => {
                self.call(|store| async move { Answer::Settings(store.settings().await) }.boxed());
            }
        }
    }

    /// Looks at queues, if that is wanted and nobody does. Who has no workers only looks now and
    /// then: to be able to say why jobs wait.
    pub(crate) fn look_if_wanted(&mut self) {
        let (n_queued, has_slots) = (self.world.n_queued(), self.n_slots() > 0);
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.low.is_some_and(|low| n_queued <= low) {
            sharing.low = None;
            sharing.want(Reach::More);
        }
        if sharing.is_looking || (!has_slots && sharing.wanted != Some(Reach::All)) {
            return;
        }
        let Some(reach) = sharing.wanted.take() else { return };
        sharing.is_looking = true;
        sharing.began = self.store.now();
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
            self.want_again(reach);
            return;
        };
        let mut window: HashSet<JobId> = HashSet::new();
        for record in seen.own.iter().chain(&seen.overdue) {
            window.insert(record.id.clone());
            self.stand_in_line(record);
        }
        self.take_spare(&seen.spare, &mut window);
        if reach == Reach::All {
            self.look_again_later();
            // What is further on in a queue than this look went was seen by others.
            if !seen.is_more {
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

    /// Slots that nothing of one's own has use for take jobs of others. While there is enough for
    /// all of them, the next look follows at once.
    fn take_spare(&mut self, spare: &[Record], window: &mut HashSet<JobId>) {
        let n_used = self.seated().map(|(worker, _)| self.jobs.slots_of(worker)).sum::<u32>();
        let n_free = usize::try_from(self.n_slots().saturating_sub(n_used)).unwrap_or(0);
        let n_more = n_free.saturating_sub(self.world.n_queued());
        let n_before = self.world.n_queued();
        for (place, record) in spare.iter().enumerate() {
            if place < n_more || self.jobs.seen(&record.id).is_some() {
                window.insert(record.id.clone());
                self.stand_in_line(record);
            }
        }
        if self.world.n_queued() > n_before && spare.len() <= n_more {
            self.want_again(Reach::All);
        }
    }

    /// Workers that are connected here.
    fn seated(&self) -> impl Iterator<Item = (&WorkerId, &Seat)> {
        self.fleet.seats.iter().filter(|(_, seat)| seat.stream.is_some())
    }

    /// Slots of all of them.
    fn n_slots(&self) -> u32 {
        self.seated().map(|(_, seat)| seat.said.slots).sum()
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
        let next = now + Millis(took.0.saturating_mul(PAUSE_OF_LOOK)).max(LOOK_EVERY);
        if let Some(before) = sharing.next.replace(next) {
            self.timers.unset(before, Timer::Look);
        }
        self.timers.set(next, Timer::Look);
    }

    pub(crate) fn look_at_all(&mut self) {
        self.want_again(Reach::All);
    }

    /// A claim was won, or lost to somebody else.
    pub(crate) fn count_claim(&mut self, outcome: Outcome) {
        let Some(sharing) = &mut self.sharing else { return };
        sharing.losses = match outcome {
            Outcome::Won => 0,
            Outcome::Lost => sharing.losses + 1,
        };
        if sharing.losses >= LOSSES_MAX {
            sharing.losses = 0;
            sharing.want(Reach::All);
        }
    }

    /// Says that this scheduler is here, and finds out who else is, and what was called off.
    pub(crate) fn meet(&mut self, now: Timestamp) {
        let said = self.says();
        let workers = self.fleet.seats.keys().cloned().collect();
        self.call(|store| {
            async move {
                let Some(shared) = store.shared() else {
                    return Answer::CalledOff(Ok(Vec::new()));
                };
                Answer::Met(shared.meet(said).await)
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
        self.timers.set(now + MEET_EVERY, Timer::Meet);
    }

    pub(crate) fn met(&mut self, answer: Result<Meeting, store::Error>) {
        let Some(meeting) = self.ok(answer) else { return };
        let stripe = stripe(&meeting);
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.stripe != stripe {
            tracing::info!(place = stripe.0, of = stripe.1, "schedulers that share the store");
            sharing.stripe = stripe;
            sharing.want(Reach::All);
        }
        self.count_elsewhere(&meeting);
    }

    pub(crate) fn calls_off(&mut self, answer: Result<Vec<JobId>, store::Error>) {
        for job in self.ok(answer).into_iter().flatten() {
            self.cancel(&job);
        }
    }

    /// A setting is there: should it be gone later, what it said holds no longer.
    pub(crate) fn note_setting(&mut self, setting: &Setting) {
        if let Some(sharing) = &mut self.sharing {
            sharing.settings.insert((setting.kind, setting.name.clone()));
        }
    }

    /// All settings were read: those that are there hold, and those that are gone do not.
    pub(crate) fn read_settings(&mut self, answer: Result<Vec<Setting>, store::Error>) {
        let Some(mut settings) = self.ok(answer) else { return };
        // Doors look after tokens themselves.
        settings.retain(|setting| setting.kind != SettingKind::Token);
        let named = |setting: &Setting| (setting.kind, setting.name.clone());
        let now: BTreeSet<(SettingKind, String)> = settings.iter().map(named).collect();
        let before = match &mut self.sharing {
            Some(sharing) => std::mem::replace(&mut sharing.settings, now.clone()),
            None => return,
        };
        let gone = before.difference(&now).cloned();
        let gone = gone.map(|(kind, name)| Setting { kind, name, document: None });
        for setting in gone.chain(settings) {
            match understand(&setting) {
                Ok(understood) => self.set(understood),
                Err(error) => {
                    let name = setting.name;
                    tracing::warn!(%error, name, "a setting is not understood and does not count");
                }
            }
        }
    }
}
