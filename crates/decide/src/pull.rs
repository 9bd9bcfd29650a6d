//! A worker looks for its best job.

use model::policy::Order;
use model::{Action, Freed, Timestamp};

use crate::table::{JobIx, WorkerIx};
use crate::turn::Scope;
use crate::world::World;

impl World {
    /// A worker finished jobs and asks for more: as many as it finished, or as many as it has
    /// room for, as the policy says.
    pub fn fetch(&mut self, freed: &Freed, now: Timestamp) -> Vec<Action> {
        self.begin(now);
        let mut actions = Vec::new();
        let Some(worker) = self.fleet.find(&freed.worker) else { return actions };
        self.keep_promises_of(worker, freed, &mut actions);
        let own = self.policies.part(Some(self.fleet.workers[worker].pool));
        for part in own.map(Some).into_iter().chain([None]) {
            self.enter_part(part);
            self.fetch_in_part(worker, freed, &mut actions);
        }
        self.enter_part(None);
        actions
    }

    /// The best jobs of this part for a worker that asks.
    fn fetch_in_part(&mut self, worker: WorkerIx, freed: &Freed, actions: &mut Vec<Action>) {
        self.pass += 1;
        while actions.len() < self.fetched_max(freed) {
            if std::mem::take(&mut self.is_unkept) {
                self.pass += 1;
            }
            let Some(job) = self.best_for(worker, true) else { break };
            actions.push(self.place(job, worker, Vec::new()));
        }
    }

    /// How many jobs a worker that asks may get in all, as the policy of this part says.
    pub(crate) fn fetched_max(&self, freed: &Freed) -> usize {
        if self.policy.proactive_fetch_to_capacity {
            usize::MAX
        } else {
            usize::try_from(freed.completed).unwrap_or(usize::MAX)
        }
    }

    /// Workers in seating order take one job each, again and again until none finds any.
    pub(crate) fn worker_first(&mut self, actions: &mut Vec<Action>) {
        let is_here =
            |ix: &WorkerIx| self.part.is_none_or(|pool| self.fleet.workers[*ix].pool == pool);
        let mut asking: Vec<WorkerIx> = self.fleet.with_slot().filter(is_here).collect();
        while !asking.is_empty() {
            asking.retain(|worker| {
                // What one worker may not take, for its pool or its rules, another may.
                self.pass += 1;
                let job = self.best_for(*worker, false);
                if let Some(job) = job {
                    actions.push(self.place(job, *worker, Vec::new()));
                }
                job.is_some()
            });
        }
    }

    /// The best job for a worker with room, if any may go there.
    fn best_for(&mut self, worker: WorkerIx, fetch: bool) -> Option<JobIx> {
        if self.fleet.workers[worker].slots_open() == 0 {
            return None;
        }
        let by_age = self.draws_age();
        let scope = Scope { worker: Some(worker), fetch, by_age, ..Scope::default() };
        if self.policy.order == Order::Rules {
            self.fleet.workers[worker].inputs.settle();
            return self.search(worker, scope);
        }
        loop {
            let pick = self.next_turn(scope)?;
            let waiting = &self.queue.jobs[pick.job];
            if !self.fleet.workers[worker].has_room(&self.class_of_job(pick.job).key) {
                self.reserve_on(worker, pick.job);
                self.block(pick.line);
                continue;
            }
            if !self.is_guarded(worker, waiting) && !self.is_reserved(worker, waiting) {
                return Some(pick.job);
            }
            let line = &self.queue.lines[pick.line];
            let another = self.first_covered(line, |waiting| {
                self.is_fetched(waiting, scope)
                    && !self.is_guarded(worker, waiting)
                    && !self.is_reserved(worker, waiting)
            });
            if another.is_some() {
                return another;
            }
            self.block(pick.line);
        }
    }
}
