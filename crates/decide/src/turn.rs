//! Whose turn it is, and which of their jobs goes first.

use model::policy::{Order, Turn};
use model::{JobId, Name, Timestamp};

use crate::catalogue::Class;
use crate::lanes::Lane;
use crate::order::OrderKey;
use crate::queue::{Head, Line, LineKey};
use crate::table::{FitIx, JobIx, LineIx, NameIx, WorkerIx};
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

/// Whose turn it is, as far as that does not depend on the job; smallest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct WhoseTurn<'a> {
    group: u8,
    is_served: bool,
    deficit: i128,
    name: Option<&'a Name>,
}

/// Where a job stands among all; smallest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    /// `None` where it is anybody's turn.
    turn: Option<WhoseTurn<'a>>,
    key: i64,
    ready: Timestamp,
    id: &'a JobId,
}

/// What a look at the lines has found so far.
#[derive(Default)]
struct Look<'a> {
    best: Option<(Rank<'a>, Pick)>,
    /// Lines that a limit closes.
    closed: Vec<LineIx>,
    /// Lines of which no job is cheap enough.
    walked: Vec<LineIx>,
}

impl<'a> Look<'a> {
    fn improves(&self, rank: &Rank<'a>) -> bool {
        self.best.as_ref().is_none_or(|(best, _)| rank < best)
    }
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
        let Look { best, closed, walked } = look;
        let pick = best.map(|(_, pick)| pick);
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
    fn look_along<'a>(&'a self, lane: &Lane, scope: Scope, look: &mut Look<'a>) {
        if self.is_settled_by(lane.first(), scope, look) {
            return;
        }
        for line in lane.others() {
            if self.is_settled_by(line, scope, look) {
                return;
            }
        }
    }

    /// Looks at one line of a lane. It settles the matter if its first job may start, or is no
    /// better than the best: those behind it are worse. Most lines lose before any limit is asked.
    fn is_settled_by<'a>(&'a self, ix: LineIx, scope: Scope, look: &mut Look<'a>) -> bool {
        let line = &self.queue.lines[ix];
        if !self.is_looked_at(line, scope) {
            return false;
        }
        let Head { key: OrderKey { major, ready, id }, job: head } = &line.head;
        let turn = self.turn(&line.key, scope);
        let rank = Rank { turn, key: self.job_key(&line.key, *major), ready: *ready, id };
        if !look.improves(&rank) {
            return true;
        }
        if !self.may_start_any(line, scope) {
            look.closed.push(ix);
            return false;
        }
        match self.first_of(line, scope) {
            None => look.walked.push(ix),
            Some(job) if job == *head => {
                look.best = Some((rank, Pick { line: ix, job }));
                return true;
            }
            Some(job) => self.compare(Pick { line: ix, job }, scope, look),
        }
        false
    }

    /// The same by age alone: lanes are not in that order, so every line is looked at.
    fn look_by_age<'a>(&'a self, lane: &Lane, scope: Scope, look: &mut Look<'a>) {
        for ix in lane.lines() {
            let line = &self.queue.lines[ix];
            if !self.is_looked_at(line, scope) {
                continue;
            }
            if !self.may_start_any(line, scope) {
                look.closed.push(ix);
                continue;
            }
            match self.oldest(line, scope) {
                None => look.walked.push(ix),
                Some(job) => self.compare(Pick { line: ix, job }, scope, look),
            }
        }
    }

    fn is_looked_at(&self, line: &Line, scope: Scope) -> bool {
        line.blocked_in != self.pass && self.takes(scope, line.key.stage)
    }

    fn compare<'a>(&'a self, pick: Pick, scope: Scope, look: &mut Look<'a>) {
        let Waiting { major, standing, id, .. } = &self.queue.jobs[pick.job];
        let line = &self.queue.lines[pick.line].key;
        let key = if scope.by_age { 0 } else { self.job_key(line, *major) };
        let rank = Rank { turn: self.turn(line, scope), key, ready: standing.ready, id };
        if look.improves(&rank) {
            look.best = Some((rank, pick));
        }
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
    fn turn(&self, key: &LineKey, scope: Scope) -> Option<WhoseTurn<'_>> {
        let turn = WhoseTurn { group: 0, is_served: false, deficit: 0, name: None };
        let turn = match self.policy.turn {
            Turn::FirstCome => return None,
            Turn::QuotaFirst => WhoseTurn { is_served: !self.is_owed(key, scope), ..turn },
            Turn::Deficit => {
                let sharer = &self.tenants[key.tenant];
                WhoseTurn {
                    group: u8::from(sharer.has_any()),
                    deficit: self.tenants.deficit(key.tenant),
                    name: Some(sharer.tenant.id.name()),
                    ..turn
                }
            }
            Turn::Guaranteed => WhoseTurn {
                group: u8::from(self.tenants[key.tenant].has_any()),
                is_served: !self.is_owed(key, scope),
                deficit: self.tenants.deficit(key.tenant),
                ..turn
            },
            Turn::TypeGroups => {
                let kind = self.fleet.catalogue.fit_of(key.class).key.kind;
                WhoseTurn { name: kind.map(|kind| self.names.name(kind)), ..turn }
            }
        };
        Some(turn)
    }

    /// Whether the tenant is below its minimum in the pool that this is about.
    fn is_owed(&self, key: &LineKey, scope: Scope) -> bool {
        let sharer = &self.tenants[key.tenant];
        if !sharer.has_quotas() {
            return false;
        }
        let asking = scope.worker.map(|ix| self.fleet.workers[ix].pool);
        let own = || self.fleet.catalogue.fit_of(key.class).key.pool;
        match scope.pool.or(asking).or_else(own) {
            Some(pool) => sharer.is_below_min(pool),
            // Room in another pool does not help where it is owed.
            None => sharer.pools_below_min().any(|pool| {
                let class = &self.fleet.catalogue.classes[key.class];
                self.fleet.with_room(class).any(|ix| self.fleet.workers[ix].pool == pool)
            }),
        }
    }

    /// The part of the rank that is about the job, by its key in line; smallest first.
    pub(crate) fn job_key(&self, key: &LineKey, major: i64) -> i64 {
        match self.policy.order {
            Order::Aging => {
                let slots_free = self.fleet.catalogue.fit_of(key.class).slots_free;
                major - key.mode.score_and_key(&self.policy.aging, self.now, slots_free)
            }
            Order::PriorityAge | Order::Proposal | Order::Rules => major,
        }
    }
}
