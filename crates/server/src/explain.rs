//! Why a job waits: the one reason, all that apply, the evidence, and what would change it.

use decide::{Ahead, Explanation, Nearest, World};
use model::{Ask, Check, Fixed, JobId, Name, Reason, Record, Spec, State, Timestamp, Worker};

use crate::estimate::{Estimate, Pace, Wait, estimate, slots_that_fit};
use crate::queue::job_of;
use crate::scheduler::Scheduler;

/// Why a job waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The reason's permanent name; empty if it does not wait.
    pub(crate) reason: String,
    pub(crate) detail: String,
    /// Jobs that go before it; `None` if it stands in no line.
    pub(crate) ahead: Option<u64>,
    /// When it may start.
    pub(crate) estimate: Option<Estimate>,
    /// All reasons that apply, the one above first.
    pub(crate) checks: Vec<Check>,
    /// Workers that come near to running it.
    pub(crate) nearest: Vec<Nearest>,
}

impl Explained {
    /// There is nothing to say: it does not wait.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// The first of these is the reason.
    pub(crate) fn of(mut checks: Vec<Check>, nearest: Vec<Nearest>) -> Self {
        checks.sort_by_key(|check| check.reason);
        let first = checks.first();
        let reason = first.map(|first| first.reason.name().to_owned()).unwrap_or_default();
        let detail = first.map(|first| first.detail.clone()).unwrap_or_default();
        Self { reason, detail, checks, nearest, ..Self::default() }
    }

    /// One reason alone.
    pub(crate) fn one(reason: Reason, detail: String) -> Self {
        Self::of(vec![Check::new(reason, detail)], Vec::new())
    }

    fn first(&self) -> Reason {
        self.checks.first().map_or(Reason::Outranked, |first| first.reason)
    }
}

impl Scheduler {
    /// Why a job waits; `None` if it does not, as far as is known here.
    pub(crate) fn explain(&mut self, record: &Record) -> Option<Explained> {
        match record.state {
            State::Blocked => {
                let held = record.on_hold.then(on_hold);
                let checks = held.into_iter().chain([not_ready(record.n_blockers)]);
                Some(self.beside_lasting(record, checks.collect()))
            }
            State::Queued if record.on_hold => Some(self.beside_lasting(record, vec![on_hold()])),
            State::Queued => self.explain_queued(record),
            State::Claimed
            | State::Running
            | State::Succeeded
            | State::Failed
            | State::Cancelled => None,
        }
    }

    /// What is known of a job without a decision, beside what would keep it waiting all the same.
    fn beside_lasting(&mut self, record: &Record, known: Vec<Check>) -> Explained {
        let job = job_of(record, &self.histories);
        let Explanation { mut checks, nearest } =
            self.world.explain_lasting(&job, self.store.now());
        checks.extend(known);
        let explained = self.elsewhere_too(record, Explained::of(checks, nearest));
        let checks = explained.checks.into_iter();
        // What ends when a slot is free is no matter yet.
        let checks = checks.filter(|one| one.reason <= Reason::NotReady).collect();
        Explained::of(checks, explained.nearest)
    }

    fn explain_queued(&mut self, record: &Record) -> Option<Explained> {
        let job = &record.id;
        if self.jobs.live(job).is_some() {
            return None;
        }
        let now = self.store.now();
        let is_guest = self.is_shared() && !self.jobs.knows(job);
        let mut seen = self.look_at(record, is_guest, now);
        if is_idle(seen.0.as_ref()) && !is_guest && self.may_decide() {
            // Something happened since the last round, or a round does not look past all jobs
            // before it.
            self.round(now);
            seen = self.look_at(record, is_guest, now);
        } else if is_idle(seen.0.as_ref()) {
            seen.0 = None;
        }
        let (Some(Explanation { checks, nearest }), ahead) = seen else {
            return Some(Explained::one(Reason::Claiming, self.claimed_by(job)));
        };
        let checks = checks.into_iter().map(|check| retried(check, record, now)).collect();
        let explained = self.elsewhere_too(record, Explained::of(checks, nearest));
        let wait = Wait {
            spec: &record.spec,
            reason: explained.first(),
            ahead,
            share: self.world.share_of(&record.spec.tenant),
            backoff_until: record.backoff_until,
            now,
        };
        let estimate = estimate(&wait, &self.pace(record));
        let ahead = ahead.and_then(|ahead| u64::try_from(ahead.n_jobs).ok());
        Some(Explained { ahead, estimate, ..explained })
    }

    /// Explains a job and counts the jobs before it. A job that another scheduler is to claim
    /// stands in line here for that moment.
    fn look_at(
        &mut self,
        record: &Record,
        is_guest: bool,
        now: Timestamp,
    ) -> (Option<Explanation>, Option<Ahead>) {
        let job = &record.id;
        let look = |world: &mut World| (world.explain_all(job, now), world.ahead_by(job, now));
        if is_guest {
            let guest = job_of(record, &self.histories);
            self.world.with_guest(&guest, look)
        } else {
            look(&mut self.world)
        }
    }

    /// Whether a round may place jobs now.
    fn may_decide(&self) -> bool {
        !self.is_stopping && !self.is_paused() && self.may_claim()
    }

    /// The scheduler that claims a job if nothing keeps the job waiting.
    fn claimed_by(&self, job: &JobId) -> String {
        if let Some(worker) = self.jobs.claimer(job) {
            format!("it is being claimed for worker `{worker}`")
        } else if self.is_others(job) {
            "another scheduler is about to claim it".to_owned()
        } else if self.is_paused() {
            "the store does not answer, and the scheduler claims it once the store does".to_owned()
        } else {
            "the scheduler is about to claim it".to_owned()
        }
    }

    /// What is true of the workers that are known here: of those of other schedulers as well, and
    /// told as paused where their pools are.
    fn elsewhere_too(&self, record: &Record, explained: Explained) -> Explained {
        let Explained { checks, nearest, .. } = explained;
        let pool = self.pool_for(&record.spec);
        let away = self.away(record, pool.as_ref());
        let slots = self.slots_elsewhere(record);
        let mut is_elsewhere = false;
        let checks = checks.into_iter().map(|check| {
            let is_missing = matches!(
                check.reason,
                Reason::NoWorkerEver | Reason::NoWorkerNow | Reason::WorkerUnhealthy
            );
            if slots > 0 && is_missing {
                is_elsewhere = true;
                at_others(slots)
            } else if is_missing {
                away.told(check)
            } else if check.reason == Reason::ResourceHeld {
                self.held_elsewhere(record, check)
            } else if check.reason == Reason::WorkersFull && slots > 0 {
                let more = n_slots(slots);
                let detail = format!(
                    "{}; other schedulers have workers for it as well, with {more} in all",
                    check.detail
                );
                Check { detail, ..check }
            } else {
                check
            }
        });
        let checks: Vec<Check> = checks.collect();
        Explained::of(checks, if is_elsewhere { Vec::new() } else { nearest })
    }

    /// In the world, what other schedulers have under way has no numbers: this names the holder.
    fn held_elsewhere(&self, record: &Record, check: Check) -> Check {
        let Some(Ask::Named(name)) = &record.spec.resource else { return check };
        let Some(holder) = self.holder_elsewhere(&name.to_string()) else { return check };
        let detail = format!("{name} is held by job {holder}; it starts when it is free");
        Check { detail, jobs: vec![holder], ..check }
    }

    /// How fast those who could run a job run jobs.
    fn pace(&self, record: &Record) -> Pace {
        let spec = &record.spec;
        let seats = self.fleet.seats.values();
        let workers: Vec<Worker> =
            seats.filter(|seat| seat.runs_jobs).map(|seat| seat.worker(&self.closed)).collect();
        let lately = self.samples.mean_duration(self.store.now());
        let of_its_own = || self.histories.length(spec);
        let slots = slots_that_fit(workers.iter(), spec, self.pool_for(spec).as_ref());
        let slots = slots + self.slots_elsewhere(record);
        let spread = lately.and_then(|_| self.samples.spread());
        Pace { slots, mean: lately.or_else(of_its_own), spread }
    }

    /// The pool that such a job goes to, if it goes to one in particular.
    pub(crate) fn pool_for(&self, spec: &Spec) -> Option<Name> {
        let of_type = || self.types.borrow().get(&spec.kind).and_then(|kind| kind.pool.clone());
        spec.pool.clone().or_else(of_type)
    }
}

fn on_hold() -> Check {
    let detail = "an operator holds it; it waits until it is released (`maitre release`)";
    Check::new(Reason::OnHold, detail.to_owned())
}

fn not_ready(n_blockers: u32) -> Check {
    let jobs = if n_blockers == 1 { "1 job".to_owned() } else { format!("{n_blockers} jobs") };
    let detail = format!("it waits for {jobs} to finish first");
    let numbers = [("blockers", Fixed::whole(n_blockers.into()))].into();
    Check { numbers, ..Check::new(Reason::NotReady, detail) }
}

/// Whether a worker has room for the job, and nothing keeps the job from it.
fn is_idle(explanation: Option<&Explanation>) -> bool {
    let first = explanation.and_then(|one| one.checks.first());
    first.is_some_and(|first| first.reason == Reason::Outranked)
}

/// A reason that is true of the workers here alone is none, if others have workers that fit.
fn at_others(slots: u64) -> Check {
    let detail = format!(
        "workers of other schedulers could run it, with {} in all; it starts when one of them has \
         room",
        n_slots(slots)
    );
    let slots = Fixed::whole(i64::try_from(slots).unwrap_or(i64::MAX));
    let numbers = [("slots_elsewhere", slots)].into();
    Check { numbers, ..Check::new(Reason::WorkersFull, detail) }
}

fn n_slots(slots: u64) -> String {
    if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") }
}

/// A job that backs off does so after an attempt: which, where, and what became of it.
fn retried(check: Check, record: &Record, now: Timestamp) -> Check {
    let is_delayed = record.spec.not_before.is_some_and(|moment| moment > now);
    let until = record.backoff_until.filter(|until| *until > now && !is_delayed);
    let (Reason::NotBefore, Some(until)) = (check.reason, until) else { return check };
    let error = record.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
    let on = record.last_worker.as_ref();
    let on = on.map(|worker| format!(" on {worker}")).unwrap_or_default();
    let detail = format!(
        "attempt {}{on} did not succeed{error}; it is tried again in {} s",
        record.counts.attempts,
        Fixed::thousandths(until.since(now).0)
    );
    let workers = record.last_worker.iter().cloned().collect();
    Check { detail, workers, ..check }
}
