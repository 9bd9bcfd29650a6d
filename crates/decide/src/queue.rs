//! The waiting jobs, each in the line of its like, in order.
//!
//! A *line* holds jobs that only their order tells apart: one class, tenant, mode, stage and
//! resource. A decision looks at the heads of lines, so its cost depends on how many kinds of jobs
//! wait, not on how many jobs.

mod lines;

use std::collections::BTreeMap;

use model::policy::{Order, Policy};
use model::{Fixed, JobId, Millis, Timestamp};

use crate::bounds::{Census, Sketch};
use crate::catalogue::{Catalogue, Class};
use crate::crowd::Crowd;
use crate::index::QuickLookup;
use crate::inputs::InputFacts;
use crate::lanes::{Lane, LaneKey, Lanes, LineInOrder};
use crate::order::{Mode, OrderKey};
use crate::policies::Policies;
use crate::resources::{Asked, OpenTo};
use crate::table::{
    AudienceIx, BerthIx, ClassIx, Ix, JobIx, LaneIx, LineIx, NameIx, Table, TenantIx, WorkerIx,
};
use crate::timers::Timers;
use crate::waiting::{AskIx, Stage, Waiting};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LineKey {
    pub(crate) class: ClassIx,
    pub(crate) tenant: TenantIx,
    pub(crate) mode: Mode,
    /// Whether lengths of its jobs are expected, where the order goes by them.
    pub(crate) is_known: bool,
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
    /// No job of the line is shorter than this, if lengths of its jobs are known.
    pub(crate) scored_min: Millis,
    /// No job of the line became ready before this.
    pub(crate) ready_min: Timestamp,
    /// Where it stands beside others of its class …
    lane_key: LaneKey,
    /// … if it does: its resource is to be had.
    lane: Option<LaneIx>,
    /// Its place among the lines of its class.
    place: usize,
    /// The last round in which nothing more of it could be placed.
    pub(crate) blocked_in: u64,
}

impl Line {
    /// Where it stands beside others.
    pub(crate) const fn lane_key(&self) -> &LaneKey {
        &self.lane_key
    }

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
    /// Who waits for what.
    pub(crate) crowd: Crowd,
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
        policies: &Policies,
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
        self.line_up(ix, catalogue, policies, now);
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
    pub(crate) fn advance(
        &mut self,
        catalogue: &mut Catalogue,
        policies: &Policies,
        now: Timestamp,
    ) {
        while let Some((moment, ix)) = self.timers.pop(now) {
            if is_due(&self.jobs, moment, ix) {
                self.step_out(ix, catalogue);
                self.line_up(ix, catalogue, policies, now);
            }
        }
        if self.timers.wants_clearing() {
            self.timers.clear(|moment, ix| is_due(&self.jobs, moment, ix));
        }
    }

    /// Puts every job in its line again, because the policy changed.
    pub(crate) fn rebuild(
        &mut self,
        catalogue: &mut Catalogue,
        policies: &Policies,
        now: Timestamp,
    ) {
        for ix in self.jobs.indices() {
            self.step_out(ix, catalogue);
        }
        for ix in self.jobs.indices() {
            self.line_up(ix, catalogue, policies, now);
        }
    }

    /// Berths with lines that may have their turn.
    pub(crate) fn active(&self) -> &[BerthIx] {
        self.lanes.active()
    }

    pub(crate) fn lane(&self, ix: LaneIx) -> &Lane {
        self.lanes.get(ix)
    }

    /// The lane was read for a worker up to this line, or to its end, after so many events. Says
    /// whether there is more to read.
    pub(crate) fn read_to(
        &mut self,
        lane: (LaneIx, Option<WorkerIx>),
        line: Option<LineInOrder>,
        n_events: u64,
    ) -> bool {
        self.lanes.read_to(lane, line, n_events)
    }

    /// The lines of a class that may have their turn.
    pub(crate) fn lines_of(&self, class: &Class) -> impl Iterator<Item = LineIx> {
        class.lines.iter().copied().filter(|line| self.lines[*line].lane.is_some())
    }

    /// Jobs of these classes have other audiences now.
    pub(crate) fn move_berths(
        &mut self,
        moved: &[(ClassIx, AudienceIx)],
        catalogue: &mut Catalogue,
    ) {
        for (ix, audience) in moved {
            let lines = std::mem::take(&mut catalogue.classes[*ix].lines);
            let n_jobs: usize = lines.iter().map(|line| self.lines[*line].jobs.len()).sum();
            let n_jobs = u64::try_from(n_jobs).unwrap_or(u64::MAX);
            for line in &lines {
                self.leave_lane(*line, catalogue);
            }
            catalogue.holding_mut(*ix).n_in_line -= n_jobs;
            let key = catalogue.classes[*ix].key.clone();
            let berth = catalogue.berth_of(&key, *audience);
            catalogue.classes[*ix].berth = berth;
            catalogue.holding_mut(*ix).n_in_line += n_jobs;
            for line in &lines {
                self.lines[*line].lane_key.berth = berth;
                self.join_lane(*line, catalogue);
            }
            catalogue.classes[*ix].lines = lines;
        }
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
        let scored_min = standings.clone().map(|own| own.length(Millis::ZERO)).min();
        let ready_min = standings.map(|standing| standing.ready).min();
        let cost_min = self.lines[ix].jobs.values().map(|job| self.jobs[*job].cost).min();
        let line = &mut self.lines[ix];
        line.cost_min = cost_min.unwrap_or(line.cost_min);
        line.length_min = length_min.unwrap_or(LENGTH_UNKNOWN);
        line.lasts_min = lasts_min.unwrap_or(LENGTH_UNKNOWN);
        line.scored_min = scored_min.unwrap_or(LENGTH_UNKNOWN);
        line.ready_min = ready_min.unwrap_or(line.ready_min);
    }
}
