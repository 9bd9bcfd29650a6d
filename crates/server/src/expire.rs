//! 6. Expire: what the passing of time brings about.

use futures_util::FutureExt as _;
use model::{Ending, Event, JobId, Millis, Record, Timestamp, WorkerId};
use proto::v1;
use store::{Old, Provided};

use crate::config::Config;
use crate::scheduler::{Answer, Scheduler};
use crate::series;
use crate::timers::Timer;

/// Attempts that are taken back in one go.
const EXPIRED_MAX: usize = 1_000;
/// Finished jobs that are forgotten in one go.
const FORGET_MAX: usize = 1_000;
/// Names that nobody uses, beyond as many as are in use, before they are forgotten.
const NAMES_SPARE: usize = 100_000;
/// How often what is old is forgotten.
const FORGET_EVERY: Millis = Millis::from_secs(60);
/// How often a job without word about its inputs comes a round closer to being placed.
const RESCORE_EVERY: Millis = Millis::from_secs(5);
/// Rules that look at the time are asked again this often, if jobs wait.
const SWEEP_EVERY: Millis = Millis::from_secs(1);

/// What tenants used is asked for at least so often, where several share a store.
const USAGE_EVERY: Millis = Millis::from_secs(5);

impl Scheduler {
    /// A timer's moment has come.
    pub(crate) fn fire(&mut self, timer: Timer, now: Timestamp) {
        match timer {
            Timer::TooLate(job) => {
                if self.jobs.seen(&job).is_some() {
                    self.outgoing.late.push(job);
                }
            }
            Timer::Unaccepted(job) => self.unaccepted(&job, now),
            Timer::RunTimeout(job) => self.run_timeout(&job, now),
            Timer::Silence(job) => self.silence(job, now),
            // Whatever wakes a turn has them written down.
            Timer::Starts => {}
            Timer::Expire => {
                self.expire(now);
                self.timers.set(now + self.config.expire_every, Timer::Expire);
            }
            Timer::Averages => {
                self.average(now);
                let every = self.config.averages_every;
                // What others are charged is only known by asking.
                let every = if self.is_shared() { every.min(USAGE_EVERY) } else { every };
                self.timers.set(now + every, Timer::Averages);
            }
            Timer::Minute => self.store_minute(now),
            Timer::Rescore => {
                self.inventories.rescore(&mut self.world);
                self.timers.set(now + RESCORE_EVERY, Timer::Rescore);
            }
            Timer::Forget => {
                self.forget(now);
                self.forget_names();
                self.timers.set(now + FORGET_EVERY, Timer::Forget);
            }
            Timer::Sweep => {
                self.is_dirty |= self.world.n_queued() > 0;
                self.timers.set(now + SWEEP_EVERY, Timer::Sweep);
            }
            Timer::Meet => self.meet(now),
            Timer::Look => self.look_at_all(),
            Timer::Due => self.want_look(),
            Timer::Leads => {
                self.renew_leads();
                self.lead_schedules();
                self.timers.set(now + self.renew_leads_every(), Timer::Leads);
            }
            Timer::Stale => {
                self.look_for_stale(now);
                self.timers.set(now + self.stale_every(), Timer::Stale);
            }
            Timer::Schedules => self.recurring.is_dirty = true,
            Timer::Lane(_) => self.detection.is_dirty = true,
        }
    }

    /// The worker neither took it nor refused it. Others should not wait for that.
    pub(crate) fn unaccepted(&mut self, job: &JobId, now: Timestamp) {
        let Some(live) = self.jobs.live(job) else { return };
        let is_over = live.claimed + self.config.accept_within() <= now;
        if !live.is_started && !live.is_ending && is_over {
            self.stop(job, v1::StopReason::Stale);
            // It may run all the same, and have told another scheduler.
            let refused = (Ending::Refused, Provided::NoStart);
            self.end_provided(job, refused, "the worker did not say that it runs");
        }
    }

    /// The worker should have ended it: it is told, in case it forgot.
    fn run_timeout(&mut self, job: &JobId, now: Timestamp) {
        let grace = self.config.stop_grace;
        let deadline = self.jobs.live(job).and_then(|live| live.run_deadline(grace));
        match deadline {
            Some(at) if at <= now => self.stop(job, v1::StopReason::Timeout),
            // A later attempt has a later deadline.
            Some(at) => self.timers.set(at, Timer::RunTimeout(job.clone())),
            None => {}
        }
    }

    /// An attempt that said nothing for so long is stopped. Its worker looks at this itself. Who
    /// has to wait until what it puts out is kept is not silent.
    fn silence(&mut self, job: JobId, now: Timestamp) {
        let stream = self.jobs.live(&job).and_then(|live| self.fleet.stream_of(&live.worker));
        let is_unheard = stream.is_some_and(|stream| self.outgoing.output.is_unheard(stream));
        let may_wait = is_unheard || self.health.is_failing(now);
        let Some(live) = self.jobs.live_mut(&job) else { return };
        let Some(timeout) = live.silence_timeout else { return };
        let heard = if may_wait { now } else { live.heard };
        let at = heard + timeout + self.config.stop_grace;
        live.silence_at = (at > now).then_some(at);
        if at <= now {
            self.stop(&job, v1::StopReason::Timeout);
        } else {
            self.timers.set(at, Timer::Silence(job));
        }
    }

    /// Looks for workers that gave no sign of life.
    fn expire(&mut self, now: Timestamp) {
        self.silent_workers(now);
        // Where others renew too, whoever could not only waits before it judges.
        if self.are_leases_old && !self.is_shared() {
            self.are_leases_old = false;
            let lease = self.config.lease;
            self.call(|store| {
                async move { Answer::RenewedAll(store.renew_all(lease).await) }.boxed()
            });
        }
        if now < self.leases_from {
            return;
        }
        self.call(|store| async move { Answer::Expired(store.expired(EXPIRED_MAX).await) }.boxed());
        self.look_for_unstarted(now);
    }

    /// Their attempts are lost. One that never was on its worker's stream is only refused: it
    /// did its worker no harm.
    ///
    /// This may be old news: one that is not known here, or not any more, is read again first.
    pub(crate) fn expired(&mut self, answer: Result<Vec<Record>, store::Error>) {
        for record in self.ok(answer).into_iter().flatten() {
            let job = record.id.clone();
            // One of those that share the store does it; if it does not, it is soon not one of
            // them any more.
            if self.is_others(&job) {
                continue;
            }
            if self.is_shared() {
                self.take_over(std::slice::from_ref(&record));
            }
            // It was heard: not the worker is silent, its renewal is slow.
            if record.current.as_ref().is_some_and(|current| self.is_heard(&current.worker)) {
                continue;
            }
            let number = record.counts.attempts;
            let Some(live) = self.jobs.live(&job).filter(|live| live.number == number) else {
                self.refetch.insert(job);
                continue;
            };
            let was_given = live.is_offered || live.is_started;
            let worker = live.worker.clone();
            self.counters.add("leases_lost", 1);
            if was_given {
                let lost = (Ending::Lost, Provided::Silence);
                self.end_provided(&job, lost, &format!("worker {worker} gave no sign of life"));
            } else {
                let refused = (Ending::Refused, Provided::Silence);
                let error = format!("worker {worker} was gone before it was told");
                self.end_provided(&job, refused, &error);
            }
        }
    }

    /// Whether a worker that is here gave a sign of life within a lease.
    fn is_heard(&self, worker: &WorkerId) -> bool {
        let seat = self.fleet.seats.get(worker).filter(|seat| seat.stream.is_some());
        seat.is_some_and(|seat| self.store.now().since(seat.heard) < self.config.lease)
    }

    /// Whoever may submit may make up names: what nobody uses any more is forgotten before it is
    /// most of all.
    fn forget_names(&mut self) {
        if self.world.n_names() < 2 * self.n_names_used + NAMES_SPARE {
            return;
        }
        self.world.forget_unused();
        for worker in self.jobs.workers() {
            if !self.fleet.seats.contains_key(worker) {
                self.world.apply(Event::Left(worker.clone()));
            }
        }
        self.leave_elsewhere();
        self.n_names_used = self.world.n_names();
        self.counters.add("names_forgotten", 1);
    }

    fn forget(&self, now: Timestamp) {
        let Config { retention, usage_window, .. } = *self.config;
        let (before, charged_before) = (now - retention, now - retention.max(usage_window));
        let counted_before = now - series::KEPT;
        let old = Old { before, charged_before, counted_before, max: FORGET_MAX };
        self.call(|store| async move { Answer::Forgotten(store.forget(old).await) }.boxed());
    }

    /// If it was a full load, there is more.
    pub(crate) fn forgotten(&mut self, answer: Result<usize, store::Error>) {
        let n = self.ok_beside(answer).unwrap_or(0);
        self.counters.add("forgotten", n);
        if n >= FORGET_MAX {
            self.forget(self.store.now());
        }
    }
}
