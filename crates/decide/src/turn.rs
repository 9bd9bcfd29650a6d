//! Whose turn it is, and which of their jobs goes first.

use model::policy::{Order, Turn};
use model::{JobId, Name, Timestamp};

use crate::queue::{Line, LineKey, Stage, Waiting};
use crate::table::{FitIx, JobIx, LineIx, NameIx, WorkerIx};
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

/// Where a job stands among all; smallest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    group: u8,
    is_served: bool,
    deficit: i128,
    name: Option<&'a Name>,
    key: i64,
    ready: Timestamp,
    id: &'a JobId,
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
        let mut closed = Vec::new();
        let mut best: Option<(Rank<'_>, Pick)> = None;
        for class in &self.queue.active {
            let class = &self.fleet.catalogue.classes[*class];
            if !self.may_have_room(class.key.fit, scope) {
                continue;
            }
            if scope.worker.is_some_and(|ix| !self.fleet.workers[ix].has_room(&class.key)) {
                continue;
            }
            for line_ix in &class.lines {
                let line = &self.queue.lines[*line_ix];
                if line.blocked_in == self.pass || !self.takes(scope, line.key.stage) {
                    continue;
                }
                let is_better = |job: JobIx| {
                    let rank = self.rank(line, &self.queue.jobs[job], scope);
                    best.as_ref().is_none_or(|(best, _)| rank < *best).then_some(rank)
                };
                // Most lines lose by their first job already, before any limit is asked.
                if line.first(scope.by_age).and_then(is_better).is_none() {
                    continue;
                }
                let Some(job) = self.head(line, scope) else {
                    closed.push(*line_ix);
                    continue;
                };
                if let Some(rank) = is_better(job) {
                    best = Some((rank, Pick { line: *line_ix, job }));
                }
            }
        }
        let pick = best.map(|(_, pick)| pick);
        for line in closed {
            self.block(line);
        }
        pick
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

    /// The first job of the line that may start, as far as the line can tell.
    fn head(&self, line: &Line, scope: Scope) -> Option<JobIx> {
        if self.line_limit(&line.key).is_some() {
            return None;
        }
        if let Some(worker) = scope.worker {
            let class = &self.fleet.catalogue.classes[line.key.class];
            if !self.worker_allows(worker, class, line.key.tenant) {
                return None;
            }
        }
        if scope.by_age {
            return self.oldest(line, scope);
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
        let is_literal = scope.fetch
            && self.policy.proactive_fetch_literal
            && !self.policy.proactive_fetch_to_capacity;
        !is_literal || waiting.backoff_until.is_some() || waiting.standing.created >= self.now
    }

    fn rank<'a>(&'a self, line: &'a Line, waiting: &'a Waiting, scope: Scope) -> Rank<'a> {
        let (group, is_served, deficit, name) = self.turn(&line.key, scope);
        Rank {
            group,
            is_served,
            deficit,
            name,
            key: if scope.by_age { 0 } else { self.job_key(&line.key, waiting) },
            ready: waiting.standing.ready,
            id: &waiting.id,
        }
    }

    /// The part of the rank that is about whose turn it is.
    fn turn(&self, key: &LineKey, scope: Scope) -> (u8, bool, i128, Option<&Name>) {
        let sharer = &self.tenants[key.tenant];
        let has_any = u8::from(sharer.tenant.completed > 0 || sharer.n_running > 0);
        let fit = &self.fleet.catalogue.fit_of(key.class).key;
        match self.policy.turn {
            Turn::FirstCome => (0, false, 0, None),
            Turn::QuotaFirst => {
                let pool = scope.pool.or(scope.worker.map(|ix| self.fleet.workers[ix].pool));
                let is_served = pool.is_none_or(|pool| !sharer.is_below_min(pool));
                (0, is_served, 0, None)
            }
            Turn::Deficit => {
                (has_any, false, self.tenants.deficit(key.tenant), Some(sharer.tenant.id.name()))
            }
            Turn::Guaranteed => {
                let is_below = match fit.pool {
                    Some(pool) => sharer.is_below_min(pool),
                    None => sharer.is_below_any_min(),
                };
                (has_any, !is_below, self.tenants.deficit(key.tenant), None)
            }
            Turn::TypeGroups => (0, false, 0, fit.kind.map(|kind| self.names.name(kind))),
        }
    }

    /// The part of the rank that is about the job; smallest first.
    pub(crate) fn job_key(&self, key: &LineKey, waiting: &Waiting) -> i64 {
        match self.policy.order {
            Order::Aging => {
                let slots_free = self.fleet.catalogue.fit_of(key.class).slots_free;
                let score = waiting.standing.score(&self.policy.aging, self.now, slots_free);
                -score.in_thousandths()
            }
            Order::PriorityAge | Order::Proposal | Order::Rules => {
                waiting.standing.major(&self.policy, key.mode)
            }
        }
    }
}
