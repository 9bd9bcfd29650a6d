//! Room that is made for a job: victims stop, their room is kept, and the job gets it first.

use std::collections::BTreeSet;

use model::{Action, Freed, JobId};

use crate::reserve::Reservation;
use crate::table::{AttemptIx, JobIx, WorkerIx};
use crate::turn::Scope;
use crate::world::World;

impl World {
    /// An attempt was told to stop to make room for `preemptor`.
    pub(crate) fn stop(&mut self, victim: &JobId, preemptor: &JobId) {
        let Some(ix) = self.register.running(victim) else { return };
        if let Some(before) = self.attempts[ix].stopping_for.replace(preemptor.clone()) {
            self.forget_victim(&before, ix);
        }
        self.stopping.entry(preemptor.clone()).or_default().insert(ix);
    }

    /// An attempt goes on that was to stop for `preemptor`.
    pub(crate) fn spare(&mut self, victim: &JobId, preemptor: &JobId) {
        let Some(ix) = self.register.running(victim) else { return };
        if self.attempts[ix].stopping_for.as_ref() == Some(preemptor) {
            self.attempts[ix].stopping_for = None;
            self.forget_victim(preemptor, ix);
        }
    }

    /// A victim stopped: once all of them have, their room waits for the job that needed it.
    pub(crate) fn stopped(&mut self, preemptor: &JobId, victim: AttemptIx, worker: WorkerIx) {
        let is_last = self.forget_victim(preemptor, victim);
        if is_last && self.register.waiting(preemptor).is_some() {
            self.promised.insert(preemptor.clone(), worker);
        }
    }

    /// An attempt stops for this job no longer. Says whether it was the last that did.
    fn forget_victim(&mut self, preemptor: &JobId, victim: AttemptIx) -> bool {
        let Some(victims) = self.stopping.get_mut(preemptor) else { return false };
        victims.remove(&victim);
        let is_last = victims.is_empty();
        if is_last {
            self.stopping.remove(preemptor);
        }
        is_last
    }

    /// Keeps the room that victims make for a job until the last of them has stopped: nobody is to
    /// have stopped in vain.
    pub(crate) fn reserve_promised(&mut self) {
        let mut kept = Vec::new();
        for (job, victims) in &self.stopping {
            let Some(ix) = self.register.waiting(job) else { continue };
            let class = &self.fleet.catalogue.classes[self.queue.jobs[ix].class].key;
            let workers: BTreeSet<WorkerIx> =
                victims.iter().map(|ix| self.attempts[*ix].worker).collect();
            for worker in workers {
                let seated = &self.fleet.workers[worker];
                let here = || {
                    let victims = victims.iter().map(|ix| &self.attempts[*ix]);
                    victims.filter(move |running| running.worker == worker)
                };
                let slots = here().map(|running| i64::from(running.slots)).sum::<i64>();
                let left = seated.room() + slots - i64::from(class.slots);
                let amounts_left = class.amounts.iter().map(|(name, need)| {
                    let own = here().flat_map(|running| &running.amounts);
                    let own = own.filter(|(own, _)| own == name).map(|(_, amount)| *amount);
                    let all = own.fold(seated.amount_free(*name), u64::saturating_add);
                    (*name, all.saturating_sub(*need))
                });
                kept.push(Reservation {
                    worker,
                    job: job.clone(),
                    until: self.now,
                    is_firm: false,
                    unknown: None,
                    slots_left: u32::try_from(left.max(0)).unwrap_or(u32::MAX),
                    amounts_left: amounts_left.collect(),
                });
            }
        }
        self.reservations.extend(kept);
    }

    /// Room that was made for a job is given to it before anything else is decided. A promise that
    /// cannot be kept now is none any more.
    pub(crate) fn keep_promises(&mut self, actions: &mut Vec<Action>) {
        for (job, worker) in std::mem::take(&mut self.promised) {
            self.enter_part_of(&job);
            actions.extend(self.keep_promise(&job, worker, Scope::default()));
        }
        self.enter_part(None);
    }

    /// The same for one worker that asks for jobs. What it does not get stays
    /// promised: a full round may see it otherwise.
    pub(crate) fn keep_promises_of(
        &mut self,
        worker: WorkerIx,
        freed: &Freed,
        actions: &mut Vec<Action>,
    ) {
        let promised = self.promised.iter().filter(|(_, own)| **own == worker);
        let jobs: Vec<JobId> = promised.map(|(job, _)| job.clone()).collect();
        for job in jobs {
            let scope = Scope { fetch: true, ..Scope::default() };
            self.enter_part_of(&job);
            if actions.len() < self.fetched_max(freed) {
                actions.extend(self.keep_promise(&job, worker, scope));
            }
        }
    }

    /// A promise is kept as the policy says that decides on the job.
    fn enter_part_of(&mut self, job: &JobId) {
        if let Some(ix) = self.register.waiting(job) {
            self.enter_part(self.part_of(ix));
        }
    }

    fn keep_promise(&mut self, job: &JobId, worker: WorkerIx, scope: Scope) -> Option<Action> {
        let ix = self.register.waiting(job)?;
        self.may_start_on(ix, worker, scope).then(|| self.place(ix, worker, Vec::new()))
    }

    /// Whether the job's moment has come and every limit lets it start on the worker.
    fn may_start_on(&self, ix: JobIx, worker: WorkerIx, scope: Scope) -> bool {
        let waiting = &self.queue.jobs[ix];
        let Some(line) = waiting.line else { return false };
        let class = &self.fleet.catalogue.classes[waiting.class];
        let seated = &self.fleet.workers[worker];
        self.takes(scope, waiting.stage(self.now))
            && self.is_fetched(waiting, scope)
            && seated.is_serving()
            && self.fleet.runs(worker, class.key.fit)
            && seated.has_room(&class.key)
            && self.worker_allows(worker, class, waiting.tenant)
            && self.line_limit(&self.queue.lines[line].key).is_none()
            && self.cost_max(waiting.tenant).is_none_or(|max| waiting.cost <= max)
    }
}
