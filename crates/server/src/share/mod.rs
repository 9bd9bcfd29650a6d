//! Several schedulers on one store. Each decides for its own workers, over a window: the first jobs
//! of each queue. Work is shared through the store, never handed from one to another.
//!
//! A scheduler claims what is in its *stripe*: each job is in one. Of the stripes of others it
//! takes what they should have claimed by now, and what its idle slots have room for.

mod elsewhere;
mod look;
mod meet;
mod seats;
pub(crate) mod settings;
mod spare;
mod unstarted;
pub(crate) mod watched;

use model::{JobId, Timestamp};
use store::{Claim, News, Reach};

use crate::scheduler::Scheduler;
use elsewhere::Elsewhere;
use look::Look;
use settings::Known;
use spare::Left;

/// So many claims are lost in a row before all queues are looked at again.
const LOSSES_MAX: u32 = 5;

/// What a scheduler knows that shares its store.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// The place of this one among so many.
    stripe: (usize, usize),
    /// Workers are connected here, and the others know: jobs are dealt to this one too.
    is_seated: bool,
    is_dealt: bool,
    /// When the others could first read that workers are here, while some may not have.
    seated_at: Option<Timestamp>,
    /// What the others were told of as it happened: whether workers are connected here, and whether
    /// somebody watches all jobs.
    told: Option<(bool, bool)>,
    /// When schedulers meet next.
    meets: Timestamp,
    /// A look at queues is wanted, and which.
    wanted: Option<Reach>,
    /// The one that is under way.
    look: Option<Look>,
    /// If fewer jobs wait here than this, there are more where they came from.
    low: Option<usize>,
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
    settings: Known,
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
            seated_at: None,
            told: None,
            meets: Timestamp(0),
            wanted: Some(Reach::All),
            look: None,
            low: None,
            next: None,
            unstarted_by: Timestamp(0),
            losses: 0,
            left: Left::default(),
            elsewhere: Elsewhere::default(),
            settings: Known::default(),
        }
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

    /// Whether this scheduler has a part of the queue for itself, or all of it.
    pub(crate) fn has_stripe(&self) -> bool {
        self.sharing.as_ref().is_none_or(|sharing| sharing.is_seated && sharing.is_dealt)
    }

    /// Whether a job is another scheduler's to claim.
    pub(crate) fn is_others(&self, job: &JobId) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.is_own(job))
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

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use model::{Current, Name, Record, Spec, State, TenantId, WorkerId};
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

    /// A scheduler that shares a store with others, and has looked at everything.
    pub(crate) async fn scheduler() -> Scheduler {
        let store = Arc::new(Memory::new(Options::default()));
        let scheduler = recover(Arc::new(Config::default()), store, Hub::new()).await;
        let mut scheduler = scheduler.expect("memory does not fail");
        scheduler.sharing = Some(Sharing { wanted: None, ..Sharing::new() });
        scheduler
    }

    /// A job that was just submitted.
    pub(crate) fn queued(number: u64) -> Record {
        let spec = Spec::new(TenantId::new("a"), Name::new("noop"));
        store::first_record(JobId::number(number), spec, 0, Timestamp(1))
    }

    /// The same, claimed for a worker.
    pub(crate) fn claimed(number: u64, worker: &str) -> Record {
        let mut claimed = Record { state: State::Claimed, fence: 2, ..queued(number) };
        claimed.counts.attempts += 1;
        claimed.current = Some(Current {
            worker: WorkerId::new(worker),
            pool: Name::new("default"),
            claimed: Timestamp(2),
            started: None,
            holds: None,
            progress: None,
            why: String::new(),
        });
        claimed
    }

    pub(super) fn wanted(scheduler: &Scheduler) -> Option<Reach> {
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
        assert!(sharing.is_some_and(|sharing| sharing.settings.is_wanted));
    }
}
