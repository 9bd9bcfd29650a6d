//! The waiting jobs, each in the line of its like, in order.
//!
//! A *line* holds jobs that only their order tells apart: one class, tenant, mode, stage and
//! resource. A decision looks at the heads of lines, so its cost depends on how many kinds of jobs
//! wait, not on how many jobs.

use std::collections::BTreeMap;

use model::policy::{Order, Policy};
use model::{Fixed, JobId, Millis, Timestamp};

use crate::bounds::{Census, Sketch};
use crate::catalogue::{Catalogue, Class};
use crate::crowd::Crowd;
use crate::index::QuickLookup;
use crate::inputs::InputFacts;
use crate::lanes::{Lane, LaneKey, Lanes};
use crate::order::{Mode, OrderKey, Standing};
use crate::resources::{Asked, OpenTo};
use crate::table::{ClassIx, Ix, JobIx, LaneIx, LineIx, NameIx, Table, TenantIx};
use crate::tenants::Backlog;
use crate::timers::Timers;
use crate::waiting::{AskIx, Stage, Waiting};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LineKey {
    pub(crate) class: ClassIx,
    pub(crate) tenant: TenantIx,
    pub(crate) mode: Mode,
    pub(crate) stage: Stage,
    pub(crate) ask: Option<AskIx>,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) key: LineKey,
    pub(crate) jobs: BTreeMap<OrderKey, JobIx>,
    /// The first of them: every decision looks at it, so it is at hand.
    pub(crate) head: Head,
    /// The same jobs by age alone, where some choices go by it.
    pub(crate) by_age: BTreeMap<(Timestamp, JobId), JobIx>,
    /// No job of the line costs less than this.
    pub(crate) cost_min: Fixed,
    /// No job of the line is expected to be shorter than this; one without a prediction is not
    /// expected to end.
    pub(crate) length_min: Millis,
    /// The same where what has a limit is expected to use it.
    pub(crate) lasts_min: Millis,
    /// No job of the line is shorter than this, where one without a prediction counts as of the
    /// usual length.
    pub(crate) scored_min: Millis,
    /// No job of the line became ready before this.
    pub(crate) ready_min: Timestamp,
    /// Where it stands beside others of its class …
    lane_key: LaneKey,
    /// … if it does: its resource is to be had.
    lane: Option<LaneIx>,
    /// The last round in which nothing more of it could be placed.
    pub(crate) blocked_in: u64,
}

impl Line {
    /// When its oldest job became ready, where some choices go by age.
    fn oldest(&self) -> Option<Timestamp> {
        self.by_age.first_key_value().map(|((ready, _), _)| *ready)
    }
}

/// What decides whether the first job of a line has its turn.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) job: JobIx,
    pub(crate) key: OrderKey,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) jobs: Table<JobIx, Waiting>,
    /// What bounds depend on, by job.
    sketches: Vec<Sketch>,
    /// What some waiting job has.
    pub(crate) census: Census,
    pub(crate) lines: Table<LineIx, Line>,
    line_of: QuickLookup<LineKey, LineIx>,
    lanes: Lanes,
    asked: Asked,
    timers: Timers,
    /// Jobs that stand in line, and their work.
    pub(crate) crowd: Crowd,
    pub(crate) backlog: Backlog,
    /// Places of jobs that are gone, used again once no worker knows facts about them.
    retired: Vec<JobIx>,
}

/// How long a job without a prediction may be.
const LENGTH_UNKNOWN: Millis = Millis(i64::MAX);

/// So many places wait at most before they are used again.
const RETIRED_MAX: usize = 4_096;

/// Whether lines must also be sorted by age alone, because some choices go by it.
fn needs_age_order(policy: &Policy) -> bool {
    policy.priority_percentage < 100 || policy.order == Order::Shortest
}

/// Whether a job waits at this place and is to be looked at again at that moment.
fn is_due(jobs: &Table<JobIx, Waiting>, moment: Timestamp, ix: JobIx) -> bool {
    jobs.get(ix).is_some_and(|waiting| waiting.timer == Some(moment))
}

impl Queue {
    /// Takes in a job and puts it where it belongs at `now`.
    pub(crate) fn push(
        &mut self,
        waiting: Waiting,
        catalogue: &mut Catalogue,
        policy: &Policy,
        now: Timestamp,
    ) -> JobIx {
        let class = waiting.class;
        catalogue.classes[class].n_jobs += 1;
        let sketch = waiting.sketch();
        self.census.count(&sketch, 1);
        let ix = self.jobs.insert(waiting);
        if ix.at() < self.sketches.len() {
            self.sketches[ix.at()] = sketch;
        } else {
            self.sketches.push(sketch);
        }
        self.line_up(ix, catalogue, policy, now);
        ix
    }

    /// When the next job is to move by itself.
    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Takes a job out.
    pub(crate) fn take(&mut self, ix: JobIx, catalogue: &mut Catalogue) -> Waiting {
        self.step_out(ix, catalogue);
        let waiting = self.jobs.take(ix);
        self.census.count(&waiting.sketch(), -1);
        catalogue.classes[waiting.class].n_jobs -= 1;
        if waiting.has_inputs() {
            self.retired.push(ix);
        } else {
            self.jobs.reuse(ix);
        }
        waiting
    }

    pub(crate) fn sketch(&self, job: JobIx) -> &Sketch {
        &self.sketches[job.at()]
    }

    /// Whether so many jobs with facts are gone that the facts should go too.
    pub(crate) fn wants_reuse(&self) -> bool {
        self.retired.len() >= RETIRED_MAX
    }

    /// A worker is gone, and with it what it said about inputs.
    pub(crate) fn forget_inputs(&mut self, facts: &InputFacts) {
        for (job, inputs) in facts.iter() {
            if let Some(waiting) = self.jobs.get_mut(job) {
                waiting.count_inputs(Some(inputs), None);
            }
        }
    }

    /// Uses the places of gone jobs again: no worker knows facts about them any more.
    pub(crate) fn reuse(&mut self) {
        for ix in std::mem::take(&mut self.retired) {
            self.jobs.reuse(ix);
        }
    }

    /// Moves every job whose moment came by `now` to its new line.
    pub(crate) fn advance(&mut self, catalogue: &mut Catalogue, policy: &Policy, now: Timestamp) {
        while let Some((moment, ix)) = self.timers.pop(now) {
            if is_due(&self.jobs, moment, ix) {
                self.step_out(ix, catalogue);
                self.line_up(ix, catalogue, policy, now);
            }
        }
        if self.timers.wants_clearing() {
            self.timers.clear(|moment, ix| is_due(&self.jobs, moment, ix));
        }
    }

    /// Puts every job in its line again, because the policy changed.
    pub(crate) fn rebuild(&mut self, catalogue: &mut Catalogue, policy: &Policy, now: Timestamp) {
        for ix in self.jobs.indices() {
            self.step_out(ix, catalogue);
        }
        for ix in self.jobs.indices() {
            self.line_up(ix, catalogue, policy, now);
        }
    }

    /// Classes with lines that may have their turn.
    pub(crate) fn active(&self) -> &[ClassIx] {
        self.lanes.active()
    }

    pub(crate) fn lanes_of(&self, class: &Class) -> impl Iterator<Item = &Lane> {
        class.lanes.iter().map(|lane| self.lanes.get(*lane))
    }

    /// The lines of a class that may have their turn.
    pub(crate) fn lines_of(&self, class: &Class) -> impl Iterator<Item = LineIx> {
        self.lanes_of(class).flat_map(Lane::lines)
    }

    /// Takes in who may hold a resource: lines that ask for it step aside, or come back.
    pub(crate) fn open_resource(
        &mut self,
        name: NameIx,
        open_to: OpenTo,
        catalogue: &mut Catalogue,
    ) {
        for ix in self.asked.set(name, open_to) {
            self.leave_lane(ix, catalogue);
            self.join_lane(ix, catalogue);
        }
    }

    /// Makes the bounds of a line exact again.
    pub(crate) fn tighten(&mut self, ix: LineIx) {
        let standings = self.lines[ix].jobs.values().map(|job| &self.jobs[*job].standing);
        let length_min = standings.clone().filter_map(|standing| standing.estimate).min();
        let waiting = self.lines[ix].jobs.values().map(|job| &self.jobs[*job]);
        let lasts_min = waiting.filter_map(Waiting::lasts).min();
        let scored_min = standings.clone().map(Standing::length).min();
        let ready_min = standings.map(|standing| standing.ready).min();
        let cost_min = self.lines[ix].jobs.values().map(|job| self.jobs[*job].cost).min();
        let line = &mut self.lines[ix];
        line.cost_min = cost_min.unwrap_or(line.cost_min);
        line.length_min = length_min.unwrap_or(LENGTH_UNKNOWN);
        line.lasts_min = lasts_min.unwrap_or(LENGTH_UNKNOWN);
        line.scored_min = scored_min.unwrap_or(LENGTH_UNKNOWN);
        line.ready_min = ready_min.unwrap_or(line.ready_min);
    }

    fn line_up(&mut self, ix: JobIx, catalogue: &mut Catalogue, policy: &Policy, now: Timestamp) {
        let waiting = &mut self.jobs[ix];
        waiting.timer = waiting.next_change(policy, now);
        if let Some(moment) = waiting.timer {
            self.timers.set(moment, ix);
        }
        if waiting.starts() > now {
            return;
        }
        let mode = waiting.standing.mode(policy, now);
        let key = LineKey {
            class: waiting.class,
            tenant: waiting.tenant,
            mode,
            stage: waiting.stage(now),
            ask: waiting.extra().ask,
        };
        waiting.major = waiting.standing.major(policy, mode);
        let order = waiting.order_key();
        let by_age = needs_age_order(policy).then(|| (order.ready, order.id.clone()));
        let cost = waiting.cost;
        let length = waiting.standing.estimate.unwrap_or(LENGTH_UNKNOWN);
        let lasts = waiting.lasts().unwrap_or(LENGTH_UNKNOWN);
        let (standing, head) = (waiting.standing, waiting.head(ix));
        catalogue.fit_of_mut(key.class).n_in_line += 1;
        self.crowd.add(key.tenant, catalogue.classes[key.class].key.fit);
        self.backlog.add(catalogue.classes[key.class].key.slots, standing.estimate);
        let line_ix = self.open_line((key, LaneKey::new(&key, policy)), &head, catalogue);
        self.jobs[ix].line = Some(line_ix);
        let line = &mut self.lines[line_ix];
        if order < line.head.key {
            let old = std::mem::replace(&mut line.head, head);
            if let Some(lane) = line.lane {
                self.lanes.reorder(lane, line_ix, &old.key, order.clone());
            }
        }
        line.cost_min = if line.jobs.is_empty() { cost } else { line.cost_min.min(cost) };
        line.length_min = line.length_min.min(length);
        line.lasts_min = line.lasts_min.min(lasts);
        line.scored_min = line.scored_min.min(standing.length());
        line.ready_min = line.ready_min.min(order.ready);
        line.jobs.insert(order, ix);
        if let Some(by_age) = by_age {
            let oldest = line.oldest();
            line.by_age.insert(by_age, ix);
            self.age_line(line_ix, oldest);
        }
    }

    /// The oldest job of a line may be another than `before`.
    fn age_line(&mut self, ix: LineIx, before: Option<Timestamp>) {
        let line = &self.lines[ix];
        if let (Some(lane), oldest) = (line.lane, line.oldest())
            && oldest != before
        {
            self.lanes.age(lane, ix, before, oldest);
        }
    }

    fn step_out(&mut self, ix: JobIx, catalogue: &mut Catalogue) {
        let waiting = &mut self.jobs[ix];
        if waiting.timer.take().is_some() {
            self.timers.cancel();
        }
        let Some(line_ix) = waiting.line.take() else { return };
        let (class, tenant) = (waiting.class, waiting.tenant);
        let estimate = waiting.standing.estimate;
        catalogue.fit_of_mut(class).n_in_line -= 1;
        self.crowd.remove(tenant, catalogue.classes[class].key.fit);
        self.backlog.subtract(catalogue.classes[class].key.slots, estimate);
        let line = &mut self.lines[line_ix];
        let key = waiting.order_key();
        let was_head = line.head.job == ix;
        if was_head {
            line.jobs.pop_first();
        } else {
            line.jobs.remove(&key);
        }
        if !line.by_age.is_empty() {
            let oldest = line.oldest();
            line.by_age.remove(&(key.ready, key.id.clone()));
            self.age_line(line_ix, oldest);
        }
        let line = &mut self.lines[line_ix];
        match line.jobs.values().next() {
            None => self.close_line(line_ix, catalogue),
            Some(first) if was_head => {
                line.head = self.jobs[*first].head(*first);
                if let Some(lane) = line.lane {
                    self.lanes.reorder(lane, line_ix, &key, line.head.key.clone());
                }
            }
            Some(_) => {}
        }
    }

    fn open_line(
        &mut self,
        (key, lane_key): (LineKey, LaneKey),
        head: &Head,
        catalogue: &mut Catalogue,
    ) -> LineIx {
        if let Some(ix) = self.line_of.get(&key) {
            return ix;
        }
        let ix = self.lines.insert(Line {
            key,
            jobs: BTreeMap::new(),
            head: head.clone(),
            by_age: BTreeMap::new(),
            cost_min: Fixed::ZERO,
            length_min: LENGTH_UNKNOWN,
            lasts_min: LENGTH_UNKNOWN,
            scored_min: LENGTH_UNKNOWN,
            ready_min: head.key.ready,
            lane_key,
            lane: None,
            blocked_in: 0,
        });
        self.line_of.insert(key, ix);
        self.asked.add(&key, ix);
        self.join_lane(ix, catalogue);
        ix
    }

    fn close_line(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        self.leave_lane(ix, catalogue);
        let line = self.lines.remove(ix);
        self.line_of.remove(&line.key);
        self.asked.remove(&line.key, ix);
    }

    /// Stands a line beside the others, unless its resource is not to be had.
    fn join_lane(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        let line = &mut self.lines[ix];
        if !self.asked.parks(&line.key) {
            let key = line.head.key.clone();
            let lane = self.lanes.join(line.lane_key, ix, key, catalogue);
            line.lane = Some(lane);
            self.lanes.age(lane, ix, None, line.oldest());
        }
    }

    fn leave_lane(&mut self, ix: LineIx, catalogue: &mut Catalogue) {
        let line = &mut self.lines[ix];
        if let Some(lane) = line.lane.take() {
            self.lanes.age(lane, ix, line.oldest(), None);
            self.lanes.leave(lane, ix, &line.head.key, catalogue);
        }
    }
}
