//! Whose turn it is, and which of their jobs goes first.

mod owed;

use model::policy::{Order, Turn};
use model::{JobId, Timestamp};

use crate::audience::BerthKey;
use crate::catalogue::Class;
use crate::lanes::{Lane, LaneKey, LineInOrder};
use crate::order::Mode;
use crate::queue::Line;
use crate::rank::{Look, Rank, Seen, Shared, Stop, Yardstick};
use crate::table::{JobIx, LineIx, NameIx, WorkerIx};
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

/// Of a lane whose first line cannot start, a decision looks at so many lines: those of one tenant
/// that differ in width, amounts or set of workers, or that limits of their own hold back. Half of
/// them are the first in order. The other half go on where the last decision stopped, so that no
/// line is passed over for ever.
const LOOKED_AT_MAX: usize = 64;

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
        for berth in self.queue.active() {
            let berth = &self.fleet.catalogue.audiences.berths[*berth];
            if !self.may_have_room(&berth.key, scope) {
                continue;
            }
            for ix in &berth.lanes {
                let lane = self.queue.lane(*ix);
                if self.is_closed(lane.key()) {
                    continue;
                }
                if scope.by_age {
                    self.look_by_age(lane, scope, &mut look);
                } else if let Some(stop) = self.look_along(lane, scope, &mut look) {
                    look.seen.stops.push((*ix, stop));
                }
            }
        }
        let (pick, Seen { closed, walked, stops }) = look.found(self);
        for (lane, stop) in stops {
            self.has_unread |= self.queue.read_to((lane, scope.worker), stop.line, self.n_events);
        }
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
    /// Says where it stopped if half of [`LOOKED_AT_MAX`] lines were not enough.
    fn look_along<'a>(&'a self, lane: &'a Lane, scope: Scope, look: &mut Look<'a>) -> Option<Stop> {
        let shared = self.shared(lane.key(), scope);
        self.look_for_overdue(lane, shared, scope, look);
        if look.is_past(shared.sharer, shared.turn)
            || self.is_settled_by(lane.first(), shared, scope, look)
        {
            return None;
        }
        let stop = self.look_at(lane.others(), shared, scope, look);
        let last = stop.line.filter(|_| stop.is_full)?;
        let unread = lane.unread(&last, scope.worker, self.n_events)?;
        Some(self.look_at(unread, shared, scope, look))
    }

    /// Looks at half of [`LOOKED_AT_MAX`] lines that were not looked at in this pass.
    fn look_at<'a>(
        &'a self,
        lines: impl Iterator<Item = &'a LineInOrder>,
        shared: Shared<'a>,
        scope: Scope,
        look: &mut Look<'a>,
    ) -> Stop {
        let mut n_left = LOOKED_AT_MAX / 2;
        for line in lines {
            if self.is_settled_by(line, shared, scope, look) {
                return Stop { line: Some(line.clone()), is_full: false };
            }
            n_left -= usize::from(self.queue.lines[line.1].blocked_in != self.pass);
            if n_left == 0 {
                return Stop { line: Some(line.clone()), is_full: true };
            }
        }
        Stop::default()
    }

    /// What all jobs of a lane have in common.
    pub(crate) fn shared(&self, lane: &LaneKey, scope: Scope) -> Shared<'_> {
        let shares = self.policy.turn == Turn::FairQueue;
        Shared {
            turn: self.turn(lane, scope),
            sharer: lane.tenant.filter(|_| shares),
            is_batch: !self.is_interactive(lane),
            yardstick: self.yardstick(lane),
        }
    }

    /// Whether jobs of the lane go before the other jobs of their tenant: people wait for them, and
    /// such jobs have not got their part of the tenant's slots.
    fn is_interactive(&self, lane: &LaneKey) -> bool {
        if self.policy.order != Order::Shortest || lane.mode != Mode::OnDemand {
            return false;
        }
        let Some(tenant) = lane.tenant else { return false };
        let sharer = &self.tenants[tenant];
        let part = i128::from(self.policy.fairness.interactive.in_thousandths());
        i128::from(sharer.slots_interactive) * 1_000 < part * i128::from(sharer.slots_used + 1)
    }

    /// How keys in line of this lane are compared with those of others.
    pub(crate) fn yardstick(&self, lane: &LaneKey) -> Yardstick {
        match self.policy.order {
            Order::Aging => {
                let berth = &self.fleet.catalogue.audiences.berths[lane.berth].key;
                let slots_free = self.fleet.catalogue.audiences.table[berth.fitting].slots_free;
                let score = lane.mode.score_and_key(&self.policy.aging, self.now, slots_free);
                Yardstick::Offset(score)
            }
            Order::Shortest if !lane.is_known => Yardstick::Length(self.usual_length()),
            Order::Shortest | Order::PriorityAge | Order::Proposal | Order::Rules => {
                Yardstick::Offset(0)
            }
        }
    }

    /// Looks at one line of a lane. It settles the matter if its first job may start, or is no
    /// better than the best: those behind it are worse. Most lines lose before they are read.
    fn is_settled_by<'a>(
        &'a self,
        (key, ix): &'a LineInOrder,
        shared: Shared<'a>,
        scope: Scope,
        look: &mut Look<'a>,
    ) -> bool {
        let rank = shared.rank(key);
        if !look.improves(shared.sharer, &rank) {
            return true;
        }
        let line = &self.queue.lines[*ix];
        if !self.is_looked_at(line, scope) {
            return false;
        }
        if !self.may_fit(line, scope) || !self.may_start_any(line, scope) {
            look.seen.closed.push(*ix);
            return false;
        }
        match self.first_of(line, scope) {
            None => look.seen.walked.push(*ix),
            Some(job) if job == line.head.job => {
                look.compare(shared.sharer, rank, Pick { line: *ix, job });
                return true;
            }
            Some(job) => {
                let Waiting { major, standing, id, .. } = &self.queue.jobs[job];
                let (key, ready) = (shared.yardstick.key(*major), standing.ready);
                look.compare(
                    shared.sharer,
                    Rank { key, ready, id, ..rank },
                    Pick { line: *ix, job },
                );
            }
        }
        false
    }

    /// Looks for the oldest job of a lane that is overdue and may start.
    fn look_for_overdue<'a>(
        &'a self,
        lane: &'a Lane,
        shared: Shared<'a>,
        scope: Scope,
        look: &mut Look<'a>,
    ) {
        let (Some(tenant), Order::Shortest) = (lane.key().tenant, self.policy.order) else {
            return;
        };
        let Some(until) = self.overdue_until(tenant) else { return };
        let mut first = until;
        let mut n_looked = 0;
        for (oldest, ix) in lane.by_age() {
            // Lines whose oldest jobs are equally old are all looked at: ids tell those apart.
            if *oldest > first {
                return;
            }
            let line = &self.queue.lines[*ix];
            if !self.is_looked_at(line, scope) {
                continue;
            }
            n_looked += 1;
            if n_looked > LOOKED_AT_MAX {
                return;
            }
            if !self.may_fit(line, scope) || !self.may_start_any(line, scope) {
                look.seen.closed.push(*ix);
                continue;
            }
            let Some((ready, id, job)) = self.oldest(line, scope) else { continue };
            if ready <= until {
                let turn = shared.turn;
                let rank = Rank { turn, is_in_time: false, is_batch: false, key: 0, ready, id };
                look.compare(shared.sharer, rank, Pick { line: *ix, job });
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
            if !self.may_fit(line, scope) || !self.may_start_any(line, scope) {
                look.seen.closed.push(ix);
                continue;
            }
            let Some((ready, id, job)) = self.oldest(line, scope) else {
                look.seen.walked.push(ix);
                continue;
            };
            let rank = Rank { turn, is_in_time: true, is_batch: true, key: 0, ready, id };
            look.compare(None, rank, Pick { line: ix, job });
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

    fn may_have_room(&self, berth: &BerthKey, scope: Scope) -> bool {
        let audience = &self.fleet.catalogue.audiences.table[berth.audience];
        let worker = scope.worker.map(|worker| self.fleet.workers[worker].position);
        audience.slots_free > 0
            && self.is_in_part(berth.pool)
            && !self.kind_is_full(berth.kind)
            && match (scope.pool, berth.pool) {
                (Some(lane), Some(own)) => lane == own,
                (Some(_) | None, None) | (None, Some(_)) => true,
            }
            && match worker {
                Some(position) => audience.seats.has(position),
                None => self.may_seat_any(berth),
            }
    }

    /// Whether a job of the berth could find room, as far as the berth tells; or will, if workers
    /// may be kept for wide jobs. Else none of its lines is looked at: there can be many.
    fn may_seat_any(&self, key: &BerthKey) -> bool {
        let may_have_room = |ix: WorkerIx| self.fleet.workers[ix].may_have_room(key.room);
        key.room == (0, 0)
            || self.policy.reserve && !self.has_only_kept(key.audience)
            || self.fleet.with_slot_of(key.audience).any(may_have_room)
    }

    /// Whether a limit of its tenant holds back all jobs of a lane.
    fn is_closed(&self, lane: &LaneKey) -> bool {
        lane.tenant.is_some_and(|tenant| {
            let sharer = &self.tenants[tenant];
            let is_at_max = |max| sharer.n_running >= max;
            !sharer.tenant.active || sharer.tenant.jobs_max.is_some_and(is_at_max)
        })
    }

    /// Whether a job of the line could find room; or will, if workers may be kept for wide jobs.
    fn may_fit(&self, line: &Line, scope: Scope) -> bool {
        let class = &self.fleet.catalogue.classes[line.key.class];
        match scope.worker {
            Some(worker) => self.may_seat(worker, class),
            // The berth says that a worker has a free slot. For most jobs that is all.
            None if !class.is_wide() && !self.fleet.catalogue.is_mixed(class) => true,
            None => {
                class.is_wide() && self.policy.reserve && !self.is_kept_from(class)
                    || self.fleet.with_room(class).next().is_some()
            }
        }
    }

    /// Whether the worker has room for the class; or will have, if it may be kept for wide jobs.
    fn may_seat(&self, ix: WorkerIx, class: &Class) -> bool {
        let seated = &self.fleet.workers[ix];
        let may_wait = self.policy.reserve && class.is_wide() && seated.could_hold(&class.key);
        self.fleet.could_hold(ix, class) && (seated.has_room(&class.key) || may_wait)
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

    /// The longest ready job of the line that may start, with that moment. Most often that is the
    /// first, and nothing of it is read.
    pub(crate) fn oldest<'a>(
        &self,
        line: &'a Line,
        scope: Scope,
    ) -> Option<(Timestamp, &'a JobId, JobIx)> {
        let cost_max = self.cost_max(line.key.tenant);
        let is_any = cost_max.is_none() && !self.fetches_literally(scope);
        let mut by_age = line.by_age.iter().map(|((ready, id), job)| (*ready, id, *job));
        by_age.find(|(_, _, job)| {
            let waiting = &self.queue.jobs[*job];
            is_any
                || cost_max.is_none_or(|max| waiting.cost <= max) && self.is_fetched(waiting, scope)
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
}
