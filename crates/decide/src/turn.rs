//! Whose turn it is, and which of their jobs goes first.

use model::policy::Turn;

use crate::catalogue::Class;
use crate::lanes::{Lane, LaneKey};
use crate::order::OrderKey;
use crate::queue::Line;
use crate::rank::{Look, Rank, Shared, WhoseTurn};
use crate::table::{ClassIx, FitIx, JobIx, LineIx, NameIx, TenantIx, WorkerIx};
use crate::waiting::{Stage, Waiting};
use crate::world::World;

/// What a pass over the lines is about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    /// Only what this worker can run now.
    pub(crate) worker: Option<WorkerIx>,
    /// Only what can run in this pool.
    pub(crate) pool: Option<NameIx>,
    /// A worker that finished a job asks for another.
    pub(crate) fetch: bool,
    /// By age alone.
    pub(crate) by_age: bool,
}

/// A job whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) line: LineIx,
    pub(crate) job: JobIx,
}

impl Scope {
    /// Whether jobs at this stage of their backoff are looked at.
    pub(crate) fn takes(self, stage: Stage, fills_up: bool) -> bool {
        match stage {
            Stage::Fresh | Stage::Ending => true,
            Stage::Inside => self.fetch,
            Stage::Over => !self.fetch || fills_up,
        }
    }
}

impl World {
    /// The job whose turn it is, of those that limits allow and that could find room.
    ///
    /// Lines that limits close are marked, and not looked at again in this pass.
    pub(crate) fn next_turn(&mut self, scope: Scope) -> Option<Pick> {
        // Most rounds end here: the one slot that was free is taken.
        if self.fleet.slots_free == 0 {
            return None;
        }
        let mut look = Look::default();
        for class in self.queue.active() {
            let class = &self.fleet.catalogue.classes[*class];
            if !self.may_have_room(class.key.fit, scope)
                || scope.worker.is_some_and(|ix| !self.may_seat(ix, class))
            {
                continue;
            }
            for lane in self.queue.lanes_of(class) {
                if scope.by_age {
                    self.look_by_age(lane, scope, &mut look);
                } else {
                    self.look_along(lane, scope, &mut look);
                }
            }
        }
        let pick = look.found();
        let Look { closed, walked, .. } = look;
        for line in &walked {
            // Nobody was cheap enough: it is not walked again until a cheaper job comes.
            self.queue.tighten(*line);
        }
        for line in closed.into_iter().chain(walked) {
            self.block(line);
        }
        pick
    }

    /// Looks for a better job in a lane. The first line settles it, unless a limit is in its way.
    fn look_along<'a>(&'a self, lane: &'a Lane, scope: Scope, look: &mut Look<'a>) {
        let shared = self.shared(lane.key(), scope);
        self.look_for_impatient(lane, shared.turn, scope, look);
        let best = look.best(shared.level.is_some()).as_ref();
        if best.is_some_and(|(best, _)| best.turn < shared.turn) {
            return;
        }
        if self.is_settled_by(lane.first(), shared, scope, look) {
            return;
        }
        for line in lane.others() {
            if self.is_settled_by(line, shared, scope, look) {
                return;
            }
        }
    }

    /// What all jobs of a lane have in common.
    pub(crate) fn shared(&self, lane: &LaneKey, scope: Scope) -> Shared<'_> {
        let yardstick = self.yardstick(lane);
        Shared { turn: self.turn(lane, scope), level: self.level(lane), yardstick }
    }

    /// Looks at one line of a lane. It settles the matter if its first job may start, or is no
    /// better than the best: those behind it are worse. Most lines lose before they are read.
    fn is_settled_by<'a>(
        &'a self,
        (key, ix): &'a (OrderKey, LineIx),
        shared: Shared<'a>,
        scope: Scope,
        look: &mut Look<'a>,
    ) -> bool {
        let rank = shared.rank(key);
        if !look.improves(&rank) {
            return true;
        }
        let line = &self.queue.lines[*ix];
        if !self.is_looked_at(line, scope) {
            return false;
        }
        if !self.may_start_any(line, scope) {
            look.closed.push(*ix);
            return false;
        }
        match self.first_of(line, scope) {
            None => look.walked.push(*ix),
            Some(job) if job == line.head.job => {
                look.compare(rank, Pick { line: *ix, job });
                return true;
            }
            Some(job) => {
                let Waiting { major, standing, id, .. } = &self.queue.jobs[job];
                let (key, ready) = (shared.yardstick.key(*major), standing.ready);
                look.compare(Rank { key, ready, id, ..rank }, Pick { line: *ix, job });
            }
        }
        false
    }

    /// Looks for the oldest job of a lane that has lost its patience and may start.
    fn look_for_impatient<'a>(
        &'a self,
        lane: &'a Lane,
        turn: Option<WhoseTurn<'a>>,
        scope: Scope,
        look: &mut Look<'a>,
    ) {
        let class = &self.fleet.catalogue.classes[lane.key().class];
        let Some(before) = self.impatient_before(class) else { return };
        if self.has_only_kept(lane.key().class) {
            return;
        }
        let mut first = before;
        for (oldest, ix) in lane.by_age() {
            // Lines whose oldest jobs are equally old are all looked at: ids tell those apart.
            if *oldest >= before || *oldest > first {
                return;
            }
            let line = &self.queue.lines[*ix];
            if !self.is_looked_at(line, scope) {
                continue;
            }
            if !self.may_start_any(line, scope) {
                look.closed.push(*ix);
                continue;
            }
            let Some(job) = self.oldest(line, scope) else { continue };
            let Waiting { standing, id, .. } = &self.queue.jobs[job];
            if standing.ready < before {
                let ready = standing.ready;
                // Of those who have waited for far too long the oldest goes, whatever the shares. A
                // job that one worker has to be emptied for will have, once that is done.
                let is_calm = !self.is_desperate(ready) && self.only_worker(class).is_none();
                let level = self.level(lane.key()).map(|level| if is_calm { level } else { 0 });
                let rank = Rank { turn, is_calm, is_patient: false, level, key: 0, ready, id };
                look.compare(rank, Pick { line: *ix, job });
                first = first.min(ready);
            }
        }
    }

    /// The same by age alone: lanes are not in that order, so every line is looked at.
    fn look_by_age<'a>(&'a self, lane: &'a Lane, scope: Scope, look: &mut Look<'a>) {
        let turn = self.turn(lane.key(), scope);
        for ix in lane.lines() {
            let line = &self.queue.lines[ix];
            if !self.is_looked_at(line, scope) {
                continue;
            }
            if !self.may_start_any(line, scope) {
                look.closed.push(ix);
                continue;
            }
            let Some(job) = self.oldest(line, scope) else {
                look.walked.push(ix);
                continue;
            };
            let Waiting { standing, id, .. } = &self.queue.jobs[job];
            let (ready, level) = (standing.ready, self.level(lane.key()));
            let rank = Rank { turn, is_calm: true, is_patient: true, level, key: 0, ready, id };
            look.compare(rank, Pick { line: ix, job });
        }
    }

    fn is_looked_at(&self, line: &Line, scope: Scope) -> bool {
        line.blocked_in != self.pass && self.takes(scope, line.key.stage)
    }

    pub(crate) fn takes(&self, scope: Scope, stage: Stage) -> bool {
        scope.takes(stage, self.policy.proactive_fetch_to_capacity)
    }

    /// Nothing more of this line can be placed in this pass.
    pub(crate) fn block(&mut self, line: LineIx) {
        self.queue.lines[line].blocked_in = self.pass;
    }

    fn may_have_room(&self, ix: FitIx, scope: Scope) -> bool {
        let fit = &self.fleet.catalogue.fits[ix];
        fit.slots_free > 0
            && match (scope.pool, fit.key.pool) {
                (Some(lane), Some(own)) => lane == own,
                (Some(_) | None, None) | (None, Some(_)) => true,
            }
            && scope.worker.is_none_or(|worker| self.fleet.workers[worker].runs(ix))
    }

    /// Whether the worker has room for the class; or will have, if it may be kept for wide jobs.
    fn may_seat(&self, ix: WorkerIx, class: &Class) -> bool {
        let seated = &self.fleet.workers[ix];
        let may_wait = self.policy.reserve && class.is_wide() && seated.could_hold(&class.key);
        seated.has_room(&class.key) || may_wait
    }

    /// Whether limits let any job of the line start, as far as the line can tell.
    fn may_start_any(&self, line: &Line, scope: Scope) -> bool {
        let key = &line.key;
        let class = &self.fleet.catalogue.classes[key.class];
        self.line_limit(key).is_none()
            && scope.worker.is_none_or(|worker| self.worker_allows(worker, class, key.tenant))
            && self.cost_max(key.tenant).is_none_or(|max| line.cost_min <= max)
    }

    /// The first job of the line that budgets cover.
    fn first_of(&self, line: &Line, scope: Scope) -> Option<JobIx> {
        // Without either, the head is at hand, and nothing else needs to be read.
        if self.cost_max(line.key.tenant).is_none() && !self.fetches_literally(scope) {
            return Some(line.head.job);
        }
        self.first_covered(line, |waiting| self.is_fetched(waiting, scope))
    }

    /// The longest ready job of the line that may start.
    pub(crate) fn oldest(&self, line: &Line, scope: Scope) -> Option<JobIx> {
        let cost_max = self.cost_max(line.key.tenant);
        line.by_age.values().copied().find(|ix| {
            let waiting = &self.queue.jobs[*ix];
            cost_max.is_none_or(|max| waiting.cost <= max) && self.is_fetched(waiting, scope)
        })
    }

    /// Whether a worker that asks may take this job. To the letter of its source, a job that never
    /// needed a backoff counts as if its backoff ended when it was submitted.
    pub(crate) fn is_fetched(&self, waiting: &Waiting, scope: Scope) -> bool {
        !self.fetches_literally(scope)
            || waiting.extra().backoff_until.is_some()
            || waiting.standing.created >= self.now
    }

    fn fetches_literally(&self, scope: Scope) -> bool {
        scope.fetch
            && self.policy.proactive_fetch_literal
            && !self.policy.proactive_fetch_to_capacity
    }

    /// The part of the rank that is about whose turn it is.
    fn turn(&self, lane: &LaneKey, scope: Scope) -> Option<WhoseTurn<'_>> {
        let tenant = || lane.tenant.expect("where tenants matter, each has lanes of its own");
        let is_served = || !self.is_owed(tenant(), lane.class, scope);
        let turn = WhoseTurn { group: 0, is_served: false, deficit: 0, name: None };
        let turn = match self.policy.turn {
            Turn::FirstCome => return None,
            Turn::QuotaFirst => WhoseTurn { is_served: is_served(), ..turn },
            Turn::Deficit => {
                let sharer = &self.tenants[tenant()];
                WhoseTurn {
                    group: u8::from(sharer.has_any()),
                    deficit: self.tenants.deficit(tenant()),
                    name: Some(sharer.tenant.id.name()),
                    ..turn
                }
            }
            Turn::Guaranteed => WhoseTurn {
                group: u8::from(self.tenants[tenant()].has_any()),
                is_served: is_served(),
                ..turn
            },
            Turn::TypeGroups => {
                let kind = self.fleet.catalogue.fit_of(lane.class).key.kind;
                WhoseTurn { name: kind.map(|kind| self.names.name(kind)), ..turn }
            }
        };
        Some(turn)
    }

    /// What a tenant that competes has had for its weight.
    pub(crate) fn level(&self, lane: &LaneKey) -> Option<i128> {
        if self.policy.turn != Turn::Guaranteed {
            return None;
        }
        let sharer = &self.tenants[lane.tenant?];
        sharer.competes().then(|| sharer.level(self.now))
    }

    /// Whether the tenant is below its minimum in the pool that this is about.
    fn is_owed(&self, tenant: TenantIx, class: ClassIx, scope: Scope) -> bool {
        let sharer = &self.tenants[tenant];
        if !sharer.has_quotas() {
            return false;
        }
        let asking = scope.worker.map(|ix| self.fleet.workers[ix].pool);
        let own = || self.fleet.catalogue.fit_of(class).key.pool;
        match scope.pool.or(asking).or_else(own) {
            Some(pool) => sharer.is_below_min(pool),
            // Room in another pool does not help where it is owed.
            None => sharer.pools_below_min().any(|pool| {
                let class = &self.fleet.catalogue.classes[class];
                self.fleet.with_room(class).any(|ix| self.fleet.workers[ix].pool == pool)
            }),
        }
    }
}
