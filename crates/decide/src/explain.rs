//! Why a job waits: the one reason, all that apply, the evidence, and what would change it.
//!
//! Reasons are looked for in the order of [`Reason`] in the world as a decision left it. What is
//! the same for all jobs of a class and a tenant is found out once.

mod audience;
mod applies;
mod checklist;
mod scarce;
mod turn;
mod nearest;
mod count;

use std::collections::BTreeMap;

use model::{Action, Decision, Defer, Freed, Hold, JobId, Snapshot, Timestamp};

use crate::table::{ClassIx, JobIx, TenantIx};
use crate::world::World;
pub(crate) use audience::Audience;
pub use checklist::Explanation;
pub use count::Waiters;
pub use nearest::Nearest;

/// What is the same for all jobs of a class and a tenant.
type Audiences = BTreeMap<(ClassIx, TenantIx), Audience>;

/// Decides on a snapshot, once, and says of every job that stays why it does.
pub fn decide(snapshot: &Snapshot) -> Decision {
    let mut world = World::from_snapshot(snapshot);
    let mut actions = match &snapshot.freed {
        Some(freed) => world.fetch(freed, snapshot.now),
        None => world.decide(snapshot.now),
    };
    let (holds, unplaced) = world.held_and_unplaced(snapshot.freed.as_ref(), snapshot.now);
    if snapshot.freed.is_none() {
        actions.extend(world.defers(unplaced));
    }
    Decision { actions, holds }
}

impl World {
    /// Every waiting job with its one reason, by id, as the last decision left it.
    pub fn holds(&mut self, freed: Option<&Freed>, now: Timestamp) -> Vec<Hold> {
        self.held_and_unplaced(freed, now).0
    }

    /// The same, and the jobs that found no worker.
    fn held_and_unplaced(
        &mut self,
        freed: Option<&Freed>,
        now: Timestamp,
    ) -> (Vec<Hold>, Vec<JobId>) {
        self.advance(now);
        let mut audiences = Audiences::new();
        let (mut holds, mut unplaced) = (Vec::new(), Vec::new());
        for ix in self.queue.jobs.indices() {
            self.enter_part(self.part_of(ix));
            let waiting = &self.queue.jobs[ix];
            let key = (waiting.class, waiting.tenant);
            let audience = audiences.entry(key).or_insert_with(|| self.audience(key));
            holds.push(self.hold(ix, audience, freed));
            if self.found_no_worker(waiting, audience, freed) {
                unplaced.push(waiting.id.clone());
            }
        }
        self.enter_part(None);
        holds.sort_by(|one, two| one.job.cmp(&two.job));
        unplaced.sort();
        (holds, unplaced)
    }

    /// Why one job waits; `None` if it does not wait here.
    pub fn explain(&mut self, job: &JobId, now: Timestamp) -> Option<Hold> {
        self.advance(now);
        let ix = self.register.waiting(job)?;
        self.enter_part(self.part_of(ix));
        let waiting = &self.queue.jobs[ix];
        let audience = self.audience((waiting.class, waiting.tenant));
        let hold = self.hold(ix, &audience, None);
        self.enter_part(None);
        Some(hold)
    }

    /// Jobs that found no worker are left alone for a while, where the policy says so.
    fn defers(&self, unplaced: Vec<JobId>) -> Vec<Action> {
        if self.policy.failure_backoff.0 == 0 {
            return Vec::new();
        }
        let until = self.now + self.policy.failure_backoff;
        unplaced.into_iter().map(|job| Action::Defer(Defer { job, until })).collect()
    }

    fn hold(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Hold {
        let reason = self.first_reason(ix, audience, freed);
        let waiting = &self.queue.jobs[ix];
        let detail = self.check(reason, waiting, audience).detail;
        Hold { job: waiting.id.clone(), reason, detail }
    }
}
