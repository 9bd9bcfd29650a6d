//! 3. Round: decide, and claim what was decided.

use std::fmt::Write as _;

use model::{Action, Ask, Ended, Event, Fixed, JobId, Placement, Record, Timestamp, WorkerId};
use proto::v1;
use store::{Claim, Claimed};

use crate::complete::Live;
use crate::scheduler::Scheduler;
use crate::share::Outcome;
use crate::timers::Timer;

/// A job that was placed, until the store has given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claiming {
    pub(crate) job: JobId,
    pub(crate) worker: WorkerId,
}

impl Claiming {
    pub(crate) fn of(claim: &Claim) -> Self {
        Self { job: claim.job.clone(), worker: claim.worker.clone() }
    }
}

impl Scheduler {
    /// Decides. What was decided is claimed at the end of the turn, in `dispatch.rs`.
    pub(crate) fn round(&mut self, now: Timestamp) {
        self.is_dirty = false;
        let mut claims = Vec::new();
        for action in self.world.decide(now) {
            match action {
                Action::Place(placement) => claims.extend(self.claim(placement)),
                Action::Preempt(preempt) => self.preempt(preempt),
                // Its backoff is only a hint for those who keep no world.
                Action::Defer(_) => {}
            }
        }
        self.counters.add("placed", claims.len());
        self.outgoing.claims.extend(claims);
    }

    fn claim(&mut self, placement: Placement) -> Option<Claim> {
        let seen = self.unsee(&placement.job)?;
        self.jobs.claim(placement.job.clone(), placement.worker.clone());
        let given = placement.resource.clone().map(Ask::Named);
        let pool = self.fleet.pool_of(&placement.worker);
        let holds = given.or_else(|| seen.ask.clone());
        let limits = if self.is_shared() {
            self.limits_of(&seen, &pool, holds.as_ref())
        } else {
            Vec::new()
        };
        Some(Claim {
            limits,
            holds,
            fence: seen.fence,
            why: why(&placement),
            pool,
            job: placement.job,
            worker: placement.worker,
        })
    }

    /// The store gave some, and kept others.
    pub(crate) fn claimed(
        &mut self,
        claiming: Vec<Claiming>,
        answer: Result<Vec<Claimed>, store::Error>,
    ) {
        self.n_claiming -= 1;
        let Some(answers) = self.ok(answer) else {
            // Nobody knows what became of them: they are looked at again before they count.
            for claim in claiming {
                self.take_back(&claim.job);
                self.refetch.insert(claim.job);
            }
            return;
        };
        for (claim, answer) in claiming.into_iter().zip(answers) {
            match answer {
                Claimed::Won(record) => {
                    self.counters.add("claims_won", 1);
                    self.count_claim(Outcome::Won);
                    self.minute.started(&record);
                    self.won(&record);
                }
                // The next look brings it back, and what others use is known by then.
                Claimed::Refused(limit) => {
                    tracing::debug!(job = %claim.job, limit, "a limit is used up elsewhere");
                    self.counters.add("claims_refused", 1);
                    self.take_back(&claim.job);
                }
                Claimed::Lost(record) => {
                    self.counters.add("claims_lost", 1);
                    self.count_claim(Outcome::Lost);
                    self.take_back(&claim.job);
                    if let Some(record) = record {
                        self.enqueue(&record);
                    }
                }
            }
        }
    }

    /// The world placed a job that nobody got.
    pub(crate) fn take_back(&mut self, job: &JobId) {
        self.jobs.unclaim(job);
        let (cost, at) = (Fixed::ZERO, self.store.now());
        let ended = Ended { job: job.clone(), cost, completed: false, at };
        self.world.apply(Event::Ended(ended));
    }

    fn won(&mut self, record: &Record) {
        let is_cancelled = self.jobs.unclaim(&record.id);
        self.changed(record);
        self.give(record);
        if is_cancelled {
            self.stop(&record.id, v1::StopReason::Cancelled);
        }
    }

    /// Lets a worker have its job.
    pub(crate) fn give(&mut self, record: &Record) {
        let job = record.id.clone();
        let Some(mut live) = Live::of(record) else { return };
        if let Some(at) = live.run_deadline(self.config.stop_grace) {
            self.timers.set(at, Timer::RunTimeout(job.clone()));
        }
        self.timers.set(live.claimed + self.config.accept_within(), Timer::Unaccepted(job.clone()));
        if let Some(stream) = self.fleet.stream_of(&live.worker) {
            live.is_offered = true;
            self.send(stream, offer(record));
        }
        self.jobs.give(job, live);
    }
}

/// Why a job goes where it goes, in a line: the score and the points of each rule.
pub(crate) fn why(placement: &Placement) -> String {
    // Most are no longer than this.
    let mut text = String::with_capacity(128);
    let _ = write!(text, "score {}", placement.score);
    for points in &placement.points {
        let _ = write!(text, ", {} {}", points.rule.name(), points.points);
    }
    text
}

/// The message that gives a worker its job.
pub(crate) fn offer(record: &Record) -> v1::server_message::Message {
    let holds = record.current.as_ref().and_then(|current| current.holds.clone());
    let resource = match holds {
        Some(Ask::Named(name)) => name.to_string(),
        Some(Ask::Any) | None => String::new(),
    };
    v1::server_message::Message::Offer(v1::Offer {
        job: record.id.as_number().unwrap_or_default(),
        attempt: record.counts.attempts,
        failures: record.counts.failures,
        resource,
        spec: Some(Box::new((&*record.spec).into())),
    })
}
