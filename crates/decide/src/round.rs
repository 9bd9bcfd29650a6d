//! One decision: whose turn, which job, which worker, again and again until nothing more fits.
//!
//! What a round decides, it assumes: a placed job runs, as far as this world is concerned, from
//! then on, so each choice is seen by the next and no round over-commits anything. If it does not
//! come true, an event says so.

use std::sync::Arc;

use model::policy::{Entry, Order, Turn};
use model::{Action, Name, Placement, Points, Timestamp};

use crate::seat::Seating;
use crate::table::{JobIx, LineIx, NameIx, TenantIx, WorkerIx};
use crate::turn::{Pick, Scope};
use crate::waiting::AskIx;
use crate::world::{Running, World};

impl World {
    /// Decides at `now`: a full round over all jobs and workers.
    pub fn decide(&mut self, now: Timestamp) -> Vec<Action> {
        self.begin(now);
        let mut actions = Vec::new();
        self.keep_promises(&mut actions);
        let parts = self.parts();
        // A worker that a later part kept may be open to an earlier one again.
        while self.pass_over_parts(&parts, &mut actions) {}
        // No part takes the room that victims make for another one, so this comes last.
        for part in parts {
            self.enter_part(part);
            if self.policy.preemption.enabled {
                self.preempt(&mut actions);
            }
        }
        self.enter_part(None);
        actions
    }

    /// Places what can be placed, part by part. Says whether jobs of another part may have room
    /// that was kept when their part was decided on.
    fn pass_over_parts(&mut self, parts: &[Option<NameIx>], actions: &mut Vec<Action>) -> bool {
        let mut is_unkept = false;
        for (at, part) in parts.iter().enumerate() {
            self.enter_part(*part);
            self.pass_over(actions);
            while std::mem::take(&mut self.is_unkept) {
                is_unkept |= at > 0;
                self.pass_over(actions);
            }
        }
        is_unkept
    }

    /// Places what can be placed, as things stand.
    fn pass_over(&mut self, actions: &mut Vec<Action>) {
        match (self.policy.entry, self.policy.turn) {
            (Entry::WorkerFirst, _) => self.worker_first(actions),
            (Entry::JobFirst, Turn::QuotaFirst) => {
                let own = self.part.map(|pool| vec![pool]);
                for pool in own.unwrap_or_else(|| self.fleet.pools.clone()) {
                    self.job_first(Some(pool), actions);
                }
            }
            (
                Entry::JobFirst,
                Turn::FirstCome | Turn::Deficit | Turn::FairQueue | Turn::TypeGroups,
            ) => self.job_first(None, actions),
        }
    }

    /// A new round at `now`.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.advance(now);
        self.round += 1;
        self.pass += 1;
        self.reservations.clear();
        self.n_tried = 0;
        self.reserve_promised();
        self.has_kept = false;
        self.has_unread = false;
        self.settle_shares();
        if self.policies.any_is_literal() {
            self.tenants.begin_round(self.queue.crowd.tenants().map(|(ix, _)| ix));
        }
    }

    /// Jobs in turn look for their best worker, in one pool or in all.
    fn job_first(&mut self, pool: Option<NameIx>, actions: &mut Vec<Action>) {
        self.pass += 1;
        loop {
            let scope = Scope { pool, by_age: self.draws_age(), ..Scope::default() };
            let Some(pick) = self.next_turn(scope) else { break };
            match self.seat(pick.job, pool) {
                Seating::At(worker, points) => actions.push(self.place(pick.job, worker, points)),
                Seating::Kept => {
                    self.has_kept = true;
                    self.place_another(pick, scope, actions);
                }
                Seating::Nowhere => {
                    if self.policy.reserve && self.class_of_job(pick.job).is_wide() {
                        self.reserve(pick.job, pool);
                    }
                    self.block(pick.line);
                }
            }
        }
    }

    /// The slots are kept from the head of a line on purpose, but perhaps not from another job of
    /// the line: one that has waited long enough, or one that is short enough.
    fn place_another(&mut self, pick: Pick, scope: Scope, actions: &mut Vec<Action>) {
        let another = self.another(pick.line, scope);
        match another.map(|job| (job, self.seat(job, scope.pool))) {
            Some((job, Seating::At(worker, points))) => {
                actions.push(self.place(job, worker, points));
            }
            Some((_, Seating::Kept | Seating::Nowhere)) | None => self.block(pick.line),
        }
    }

    /// The first job of a line that no worker with room is kept from.
    fn another(&mut self, line_ix: LineIx, scope: Scope) -> Option<JobIx> {
        let line = &self.queue.lines[line_ix];
        let is_short = self.reservations.iter().any(|own| own.might_outlast(line, self.now));
        let class = &self.fleet.catalogue.classes[line.key.class];
        let tenant = line.key.tenant;
        let shortest = if line.key.is_known { line.scored_min } else { self.usual_length() };
        let is_open =
            |ix: WorkerIx| !self.would_be_guarded((ix, class), tenant, line.ready_min, shortest);
        if !is_short && !self.fleet.with_room(class).any(is_open) {
            return None;
        }
        let another = self.first_covered(line, |waiting| self.is_open(waiting, scope.pool));
        if another.is_none() {
            // Nobody was short or old enough: remember how short and old they are.
            self.queue.tighten(line_ix);
        }
        another
    }

    /// Whether this choice goes by age alone, which chance decides.
    pub(crate) fn draws_age(&mut self) -> bool {
        let percentage = self.policy.priority_percentage;
        self.policy.order == Order::PriorityAge
            && percentage < 100
            && self.chance.below(100) >= u64::from(percentage)
    }

    /// Places a job: from here on it runs, as far as this world is concerned.
    pub(crate) fn place(
        &mut self,
        job: JobIx,
        worker: WorkerIx,
        seat_points: Vec<Points>,
    ) -> Action {
        self.n_events += 1;
        let points = self.placement_points(job, worker, seat_points);
        self.use_left(worker, job);
        self.unkeep(job);
        let waiting = self.dequeue(job);
        let (holds, given) = self.held(waiting.extra().ask, waiting.tenant);
        let is_contested = self.is_contested(worker, waiting.tenant);
        let class = &self.fleet.catalogue.classes[waiting.class].key;
        let fit = &self.fleet.catalogue.fits[class.fit].key;
        let running = Running {
            job: waiting.id.clone(),
            entry: waiting.entry,
            tenant: waiting.tenant,
            worker,
            pool: self.fleet.workers[worker].pool,
            kind: fit.kind,
            needs: Arc::clone(&fit.needs),
            slots: class.slots,
            amounts: class.amounts.clone(),
            priority: waiting.standing.priority,
            ready: waiting.standing.ready,
            started: self.now,
            cost: waiting.cost,
            estimate: waiting.standing.estimate,
            on_demand: waiting.standing.on_demand,
            is_contested,
            limit: waiting.extra().limit,
            evictions: waiting.extra().evictions,
            traits: waiting.traits,
            holds,
            stopping_for: None,
            placed_in: self.round,
        };
        self.start(running);
        Action::Place(Placement {
            job: waiting.id,
            worker: self.fleet.id(worker).clone(),
            score: points.iter().map(|said| said.points).sum(),
            points,
            resource: given,
        })
    }

    /// What the rules say about a job on the worker that it gets.
    fn placement_points(
        &self,
        job: JobIx,
        worker: WorkerIx,
        seat_points: Vec<Points>,
    ) -> Vec<Points> {
        match self.policy.order {
            Order::Aging => {
                let waiting = &self.queue.jobs[job];
                let slots_free = self.fleet.catalogue.fitting(waiting.class).slots_free;
                let mut said = waiting.standing.points(&self.policy.aging, self.now, slots_free);
                said.extend(seat_points);
                said
            }
            Order::Rules => crate::rule::Asker::new(self, worker).candidate(job).points(),
            Order::Shortest => {
                let standing = &self.queue.jobs[job].standing;
                let mut said = standing.points_shortest(&self.policy, self.usual_length());
                said.extend(seat_points);
                said
            }
            Order::PriorityAge | Order::Proposal => seat_points,
        }
    }

    /// What a job that asks for `ask` gets to hold, and its name if it asked for any.
    fn held(&self, ask: Option<AskIx>, tenant: TenantIx) -> (Option<AskIx>, Option<Name>) {
        let Some(AskIx::Any) = ask else { return (ask, None) };
        let free = self.resources_free.get(&tenant).and_then(|free| free.first());
        match free.and_then(|name| Some((self.names.find(name)?, name.clone()))) {
            Some((ix, name)) => (Some(AskIx::Named(ix)), Some(name)),
            None => (Some(AskIx::Any), None),
        }
    }
}
