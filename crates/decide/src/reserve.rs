//! Keeping a worker for a wide job until all the slots it asks for are free.
//!
//! Without this, narrow jobs would take each slot as it frees and a wide job would wait for ever.
//! A job that comes after the wide one may still use the free slots if it will be done before they
//! are needed, or if it takes only what the wide job leaves.
//!
//! Ends of attempts are expected at their limits where they have any: a wide job that counts on
//! limits is never too early. Once the wide job is overdue, only a job whose own limit ends in time
//! may use the slots.
//!
//! Waiting has an end: an attempt without a prediction is waited for until it has run twice as long
//! as jobs usually run, and at most for `reserve_wait_max`. Then other jobs can use the slots
//! beside it. An attempt that outran its prediction is expected to take twice as long, and so on,
//! so jobs can use the slots beside it.

use model::{JobId, Millis, Timestamp};

use crate::catalogue::{Class, ClassKey};
use crate::lengths::outrun;
use crate::queue::Line;
use crate::table::{AudienceIx, Ix, JobIx, NameIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::{Running, World};

/// A worker kept for a wide job.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) worker: WorkerIx,
    pub(crate) job: JobId,
    /// When the wide job is expected to start.
    pub(crate) until: Timestamp,
    /// Whether the wide job is overdue.
    pub(crate) is_firm: bool,
    /// How long jobs of unknown length count, where they may borrow slots: the wide job waits for
    /// an attempt that outran its prediction, and nobody knows for how long.
    pub(crate) unknown: Option<Millis>,
    /// What it will leave then.
    pub(crate) slots_left: u32,
    pub(crate) amounts_left: Vec<(NameIx, u64)>,
}

/// At most so many workers are looked at for one reservation.
const LOOKED_AT_MAX: usize = 256;
/// An attempt of unknown length is waited for until it has run so many times the usual length. At
/// most half of all jobs run longer than twice the mean (Markov's inequality), and those that do
/// have seldom much less to run than they ran already.
const USUAL_TIMES_MAX: i64 = 2;
/// At most so many wide jobs have a worker kept for them in one round, or are looked at for that.
const RESERVATIONS_MAX: usize = 64;

impl Reservation {
    /// Whether a job can run beside it without delaying the wide job.
    fn leaves_room(&self, class: &ClassKey, waiting: &Waiting, now: Timestamp) -> bool {
        self.outlasts(self.length(waiting), now) || self.has_left(class)
    }

    /// How long a job counts that wants to borrow slots.
    fn length(&self, waiting: &Waiting) -> Option<Millis> {
        if self.is_firm { waiting.lasts() } else { waiting.standing.estimate }
    }

    /// Whether the shortest job of a line might be done before the wide job starts.
    pub(crate) fn might_outlast(&self, line: &Line, now: Timestamp) -> bool {
        let length = if self.is_firm { line.lasts_min } else { line.length_min };
        now + self.unknown.map_or(length, |unknown| unknown.min(length)) <= self.until
    }

    /// Whether a job of this predicted length is done before the wide job starts. Once that is
    /// due at any moment, nobody is: who would be late then could be followed by others for ever.
    fn outlasts(&self, estimate: Option<Millis>, now: Timestamp) -> bool {
        let length = estimate.or(self.unknown);
        now < self.until && length.is_some_and(|length| now + length <= self.until)
    }

    fn has_left(&self, class: &ClassKey) -> bool {
        class.slots <= self.slots_left
            && class.amounts.iter().all(|(name, amount)| {
                let left = self.amounts_left.iter().find(|(own, _)| own == name);
                left.is_none_or(|(_, left)| amount <= left)
            })
    }
}

impl World {
    /// Whether the worker is kept from this job for a wider one.
    pub(crate) fn is_reserved(&self, worker: WorkerIx, waiting: &Waiting) -> bool {
        if self.reservations.is_empty() {
            return false;
        }
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let others = self.reservations.iter().filter(|own| own.job != waiting.id);
        let mut here = others.filter(|own| own.worker == worker);
        here.any(|own| !own.leaves_room(class, waiting, self.now))
    }

    /// Counts a job that was placed on a kept worker against what the wide job leaves.
    pub(crate) fn use_left(&mut self, worker: WorkerIx, job: JobIx) {
        let waiting = &self.queue.jobs[job];
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        for reservation in self.reservations.iter_mut().filter(|own| own.worker == worker) {
            if reservation.outlasts(reservation.length(waiting), self.now) {
                continue;
            }
            reservation.slots_left = reservation.slots_left.saturating_sub(class.slots);
            for (name, left) in &mut reservation.amounts_left {
                let own = class.amounts.iter().find(|(own, _)| own == name);
                *left = left.saturating_sub(own.map_or(0, |(_, amount)| *amount));
            }
        }
    }

    /// The job has a place: nothing is kept for it any longer.
    pub(crate) fn unkeep(&mut self, job: JobIx) {
        let id = &self.queue.jobs[job].id;
        let before = self.reservations.len();
        self.reservations.retain(|own| own.job != *id);
        self.is_unkept |= self.reservations.len() < before;
    }

    /// Whether every worker of an audience is kept already. A wide job that waits there stands
    /// behind another one that goes first.
    pub(crate) fn has_only_kept(&self, audience: AudienceIx) -> bool {
        self.are_kept(|| self.fleet.members(audience))
    }

    /// Whether every worker that could hold a job of the class is kept already.
    pub(crate) fn is_kept_from(&self, class: &Class) -> bool {
        self.are_kept(|| class.members.iter().map(WorkerIx::new))
    }

    /// Whether no job can keep any of these workers: all are kept, or enough was tried.
    fn are_kept<I: Iterator<Item = WorkerIx>>(&self, workers: impl FnOnce() -> I) -> bool {
        if self.n_tried.max(self.reservations.len()) >= RESERVATIONS_MAX {
            return true;
        }
        let is_kept = |ix: WorkerIx| self.reservations.iter().any(|own| own.worker == ix);
        !self.reservations.is_empty() && workers().all(is_kept)
    }

    /// Keeps the worker, of `pool` if given, that will have room for the job first, if any will.
    pub(crate) fn reserve(&mut self, job: JobIx, pool: Option<NameIx>) {
        self.n_tried += 1;
        let waiting = &self.queue.jobs[job];
        let has_one = self.reservations.iter().any(|own| own.job == waiting.id);
        if has_one || self.reservations.len() >= RESERVATIONS_MAX {
            return;
        }
        let class = &self.fleet.catalogue.classes[waiting.class];
        let serving = self.fleet.holding(class).filter(|ix| {
            let seated = &self.fleet.workers[*ix];
            seated.is_serving()
                && pool.is_none_or(|pool| seated.pool == pool)
                && self.reservations.iter().all(|own| own.worker != *ix)
                && self.worker_allows(*ix, class, waiting.tenant)
        });
        let starts = serving.take(LOOKED_AT_MAX).filter_map(|ix| self.starts_at(ix, job));
        if let Some(first) = starts.min_by_key(|reservation| reservation.until) {
            self.reservations.push(first);
        }
    }

    /// Keeps this worker for the job, if it will have room and is not kept already.
    pub(crate) fn reserve_on(&mut self, worker: WorkerIx, job: JobIx) {
        let is_kept = self.reservations.iter().any(|own| own.worker == worker);
        if let Some(reservation) = self.starts_at(worker, job).filter(|_| !is_kept) {
            self.reservations.push(reservation);
        }
    }

    /// When the worker will have room for the job, by the predicted ends of its attempts.
    fn starts_at(&self, worker: WorkerIx, job: JobIx) -> Option<Reservation> {
        let waiting = &self.queue.jobs[job];
        let own = &self.fleet.catalogue.classes[waiting.class];
        let is_firm = self.is_overdue(waiting.tenant, waiting.standing.ready);
        let class = &own.key;
        let seated = &self.fleet.workers[worker];
        let mut slots = seated.slots_free();
        let mut amounts: Vec<(NameIx, u64)> =
            class.amounts.iter().map(|(name, _)| (*name, seated.amount_free(*name))).collect();
        let running = seated.attempts.iter().map(|ix| &self.attempts[*ix]);
        let mut ends: Vec<(Timestamp, &Running)> =
            running.filter_map(|running| Some((self.expected_end(running)?, running))).collect();
        ends.sort_by(|one, two| (one.0, &one.1.job).cmp(&(two.0, &two.1.job)));
        for (at, (end, running)) in ends.iter().enumerate() {
            slots += running.slots;
            for (name, free) in &mut amounts {
                let own = running.amounts.iter().find(|(own, _)| own == name);
                *free += own.map_or(0, |(_, amount)| *amount);
            }
            let all_at_once = ends.get(at + 1).is_none_or(|(next, _)| next > end);
            let has_room = slots >= class.slots
                && amounts.iter().zip(&class.amounts).all(|((_, free), (_, need))| free >= need);
            if all_at_once && has_room {
                let left = amounts.iter().zip(&class.amounts);
                let mut last = ends[..=at].iter().filter(|(other, _)| other == end);
                let is_late = last.any(|(_, running)| self.is_late(running));
                return Some(Reservation {
                    worker,
                    job: waiting.id.clone(),
                    until: *end,
                    is_firm,
                    unknown: is_late.then_some(Millis(self.policy.reserve_wait_max.0 / 2)),
                    slots_left: slots.saturating_sub(class.slots),
                    amounts_left: left
                        .map(|((name, free), (_, need))| (*name, free - need))
                        .collect(),
                });
            }
        }
        None
    }

    /// When an attempt is expected to end; `None` if it is not waited for any longer.
    fn expected_end(&self, running: &Running) -> Option<Timestamp> {
        let elapsed = self.now.since(running.started);
        match running.limit {
            Some(limit) => Some(running.started + limit.max(elapsed)),
            None => self.predicted_end(running),
        }
    }

    /// The same by its prediction. One that nobody predicted is expected to run for as long again
    /// as it has. One that outran its prediction is expected to take twice as long as predicted,
    /// and twice that once it outruns that: a job that is late is seldom about to end, and
    /// meanwhile short jobs can use the free slots.
    fn predicted_end(&self, running: &Running) -> Option<Timestamp> {
        let elapsed = self.now.since(running.started);
        let Some(Millis(estimate)) = running.estimate else {
            let unusual = self.usual.map(|usual| Millis(usual.0.saturating_mul(USUAL_TIMES_MAX)));
            let is_awaited =
                elapsed < unusual.into_iter().fold(self.policy.reserve_wait_max, Ord::min);
            return is_awaited.then(|| self.now + elapsed);
        };
        Some(running.started + outrun(elapsed, Millis(estimate)))
    }

    /// Whether an attempt has outrun its prediction, and has no limit.
    fn is_late(&self, running: &Running) -> bool {
        let is_outrun = |estimate| estimate < self.now.since(running.started);
        running.limit.is_none() && running.estimate.is_some_and(is_outrun)
    }
}
