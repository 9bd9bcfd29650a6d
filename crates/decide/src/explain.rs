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

use model::{Action, Decision, Defer, Freed, Hold, JobId, Millis, Snapshot, Timestamp};

use crate::table::{ClassIx, JobIx, TenantIx};
use crate::waiting::Waiting;
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
    let (holds, defers) = world.held_and_deferred(snapshot.freed.as_ref(), snapshot.now);
    if snapshot.freed.is_none() {
        actions.extend(defers);
    }
    Decision { actions, holds }
}

impl World {
    /// Every waiting job with its one reason, by id, as the last decision left it.
    pub fn holds(&mut self, freed: Option<&Freed>, now: Timestamp) -> Vec<Hold> {
        self.held_and_deferred(freed, now).0
    }

    /// The same, and what is deferred because it found no worker.
    fn held_and_deferred(
        &mut self,
        freed: Option<&Freed>,
        now: Timestamp,
    ) -> (Vec<Hold>, Vec<Action>) {
        self.advance(now);
        let mut audiences = Audiences::new();
        let (mut holds, mut defers) = (Vec::new(), Vec::new());
        for ix in self.queue.jobs.indices() {
            self.enter_part(self.part_of(ix));
            let waiting = &self.queue.jobs[ix];
            let key = (waiting.class, waiting.tenant);
            let audience = audiences.entry(key).or_insert_with(|| self.audience(key));
            holds.push(self.hold(ix, audience, freed));
            if self.found_no_worker(waiting, audience, freed) {
                defers.extend(self.defer(waiting));
            }
        }
        self.enter_part(None);
        holds.sort_by(|one, two| one.job.cmp(&two.job));
        defers.sort_by(|one, two| one.job.cmp(&two.job));
        (holds, defers.into_iter().map(Action::Defer).collect())
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

    /// A job that found no worker is left alone for a while, if its policy says so.
    fn defer(&self, waiting: &Waiting) -> Option<Defer> {
        let (job, backoff) = (waiting.id.clone(), self.policy.failure_backoff);
        (backoff > Millis::ZERO).then(|| Defer { job, until: self.now + backoff })
    }

    fn hold(&self, ix: JobIx, audience: &Audience, freed: Option<&Freed>) -> Hold {
        let reason = self.first_reason(ix, audience, freed);
        let waiting = &self.queue.jobs[ix];
        let detail = self.check(reason, waiting, audience).detail;
        Hold { job: waiting.id.clone(), reason, detail }
    }
}
