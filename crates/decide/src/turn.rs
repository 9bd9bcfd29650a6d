//! Whose turn it is, and which of their jobs goes first.

use model::policy::{Order, Turn};
use model::{JobId, Name, Timestamp};

use crate::catalogue::Class;
use crate::order::{Mode, OrderKey, Standing};
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
        let (mut closed, mut walked) = (Vec::new(), Vec::new());
        // Where tenants do not matter, lines of one class and mode differ by their keys alone.
        let goes_by_key =
            matches!(self.policy.turn, Turn::FirstCome | Turn::TypeGroups) && !scope.by_age;
        let mut best: Option<(Rank<'_>, Pick)> = None;
        for class in &self.queue.active {
            let class = &self.fleet.catalogue.classes[*class];
            if !self.may_have_room(class.key.fit, scope) {
                continue;
            }
            if scope.worker.is_some_and(|ix| !self.may_seat(ix, class)) {
                continue;
            }
            // The smallest key so far of each mode, of a line that won or lost by its score: a
            // line with a larger key can only lose to it, or as it did.
            let mut keys: [Option<&OrderKey>; Mode::COUNT] = [None; Mode::COUNT];
            for line_ix in &class.lines {
                let line = &self.queue.lines[*line_ix];
                if line.blocked_in == self.pass || !self.takes(scope, line.key.stage) {
                    continue;
                }
                let key = &mut keys[line.key.mode.index()];
                if goes_by_key && key.is_some_and(|best| *best < line.head.key) {
                    continue;
                }
                let is_better = |rank: &Rank<'_>| best.as_ref().is_none_or(|(best, _)| rank < best);
                // Most lines lose by their first job already, before any limit is asked.
                let Head { standing, key: OrderKey { id, .. }, .. } = &line.head;
                if !scope.by_age && !is_better(&self.rank(&line.key, standing, id, scope)) {
                    *key = Some(&line.head.key);
                    continue;
                }
                if !self.may_start_any(line, scope) {
                    closed.push(*line_ix);
                    continue;
                }
                let Some(job) = self.first_of(line, scope) else {
                    walked.push(*line_ix);
                    continue;
                };
                let Waiting { standing, id, .. } = &self.queue.jobs[job];
                let rank = self.rank(&line.key, standing, id, scope);
                if is_better(&rank) {
                    best = Some((rank, Pick { line: *line_ix, job }));
                    if job == line.head.job {
                        *key = Some(&line.head.key);
                    }
                }
            }
        }
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
        !is_literal
            || waiting.extra().backoff_until.is_some()
            || waiting.standing.created >= self.now
    }

    fn rank<'a>(
        &'a self,
        key: &LineKey,
        standing: &Standing,
        id: &'a JobId,
        scope: Scope,
    ) -> Rank<'a> {
        let (group, is_served, deficit, name) = self.turn(key, scope);
        Rank {
            group,
            is_served,
            deficit,
            name,
            key: if scope.by_age { 0 } else { self.job_key(key, standing) },
            ready: standing.ready,
            id,
        }
    }

    /// The part of the rank that is about whose turn it is.
    fn turn(&self, key: &LineKey, scope: Scope) -> (u8, bool, i128, Option<&Name>) {
        match self.policy.turn {
            Turn::FirstCome => (0, false, 0, None),
            Turn::QuotaFirst => (0, !self.is_owed(key, scope), 0, None),
            Turn::Deficit => {
                let sharer = &self.tenants[key.tenant];
                let deficit = self.tenants.deficit(key.tenant);
                (u8::from(sharer.has_any()), false, deficit, Some(sharer.tenant.id.name()))
            }
            Turn::Guaranteed => {
                let sharer = &self.tenants[key.tenant];
                let deficit = self.tenants.deficit_lifted(key.tenant);
                (u8::from(sharer.has_any()), !self.is_owed(key, scope), deficit, None)
            }
            Turn::TypeGroups => {
                let kind = self.fleet.catalogue.fit_of(key.class).key.kind;
                (0, false, 0, kind.map(|kind| self.names.name(kind)))
            }
        }
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

    /// The part of the rank that is about the job; smallest first.
    pub(crate) fn job_key(&self, key: &LineKey, standing: &Standing) -> i64 {
        match self.policy.order {
            Order::Aging => {
                let slots_free = self.fleet.catalogue.fit_of(key.class).slots_free;
                let score = standing.score(&self.policy.aging, self.now, slots_free);
                -score.in_thousandths()
            }
            Order::PriorityAge | Order::Proposal | Order::Rules => {
                standing.major(&self.policy, key.mode)
            }
        }
    }
}
