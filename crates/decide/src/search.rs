//! The best job for a worker under rules, without scoring every job.
//!
//! Rules have bounds. Jobs are looked at in two orders: fewest missing bytes first, for those whose
//! inputs the worker reported, and longest ready first, for the others. A job is scored only if its
//! own bound reaches the best score found; an order ends where the bound of all that follows does
//! not. The answer is exact, and ties are broken as everywhere.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Fixed, Inputs, JobId, Timestamp, WorkerId};

use crate::bounds::Bounds;
use crate::queue::Line;
use crate::rule::{Asker, Opinion};
use crate::table::{Ix as _, JobIx, LineIx, WorkerIx};
use crate::turn::Scope;
use crate::world::World;

/// How well a job does; larger is better.
type Merit<'a> = (Fixed, Reverse<Timestamp>, Reverse<&'a JobId>);

/// So many jobs are looked at between two looks at the bound of all that follow.
const STRIDE: usize = 64;

/// A search by one worker.
struct Search<'a> {
    asker: &'a Asker<'a>,
    scope: Scope,
    /// Lines whose jobs the worker may take, sorted.
    lines: Vec<LineIx>,
    best: Option<(Merit<'a>, JobIx)>,
}

impl World {
    /// The job with the highest score, not below zero and not vetoed, that the worker may take.
    pub(crate) fn search(&self, worker: WorkerIx, scope: Scope) -> Option<JobIx> {
        let asker = Asker::new(self, worker);
        let mut search = Search::new(&asker, scope);
        search.run();
        search.best.map(|(_, job)| job)
    }

    /// The job that [`World::fetch`] would place first under rules, found by scoring every job:
    /// what the search is measured against.
    pub fn best_by_scoring_all(&self, worker: &WorkerId) -> Option<JobId> {
        let asker = Asker::new(self, self.fleet.find(worker)?);
        let scope = Scope { worker: Some(asker.ix), fetch: true, ..Scope::default() };
        let mut search = Search::new(&asker, scope);
        for line in search.lines.clone() {
            for job in self.queue.lines[line].jobs.values() {
                search.look_at(*job);
            }
        }
        search.best.map(|(_, job)| self.queue.jobs[job].id.clone())
    }

    /// Lines whose jobs the worker may take, as far as a line can tell, sorted.
    fn lines_for(&self, worker: WorkerIx, scope: Scope) -> Vec<LineIx> {
        let seated = &self.fleet.workers[worker];
        if !seated.is_serving() {
            return Vec::new();
        }
        let classes = self.fleet.catalogue.classes.iter().map(|(_, class)| class);
        let classes = classes.filter(|class| {
            class.members.has(worker.at())
                && seated.has_room(&class.key)
                && self.is_in_part(self.fleet.catalogue.fits[class.key.fit].key.pool)
        });
        let lines =
            classes.flat_map(|class| self.queue.lines_of(class).map(move |line| (class, line)));
        let lines = lines.filter(|(class, line)| {
            let key = &self.queue.lines[*line].key;
            self.takes(scope, key.stage)
                && self.worker_allows(worker, class, key.tenant)
                && self.line_limit(key).is_none()
        });
        let mut lines: Vec<LineIx> = lines.map(|(_, line)| line).collect();
        lines.sort_unstable();
        lines
    }
}

impl<'a> Search<'a> {
    fn new(asker: &'a Asker<'a>, scope: Scope) -> Self {
        let world = asker.world;
        Self { asker, scope, lines: world.lines_for(asker.ix, scope), best: None }
    }

    /// Goes down both orders until nothing that follows can be better than the best.
    fn run(&mut self) {
        let world = self.asker.world;
        let facts = &self.asker.worker.inputs;
        let bounds = Bounds::new(self.asker);
        let mut by_age = ByAge::new(world, &self.lines);
        let Some(oldest) = by_age.ready() else { return };
        for (job, inputs) in facts.fresh() {
            self.look_if(job, inputs, &bounds);
        }
        for (at, (job, inputs)) in facts.by_bytes().enumerate() {
            let bytes = inputs.missing_bytes.unwrap_or(0);
            let rest = || bounds.of_rest(oldest, Some(bytes));
            if at % STRIDE == 0 && self.is_beaten(rest(), oldest) {
                break;
            }
            self.look_if(job, inputs, &bounds);
        }
        while let Some(ready) = by_age.ready() {
            if self.is_beaten(bounds.of_rest(ready, None), ready) {
                break;
            }
            let Some(job) = by_age.next() else { break };
            if facts.get(job).is_none() {
                self.look_if(job, Inputs::default(), &bounds);
            }
        }
    }

    /// Whether a job with at most so many points, ready then or later, cannot win. With the best
    /// score it still could, if it is as old: by its id.
    fn is_beaten(&self, points: Fixed, ready: Timestamp) -> bool {
        let Some(((score, Reverse(oldest), _), _)) = self.best else { return points < Fixed::ZERO };
        points < score || (points == score && ready > oldest)
    }

    fn look_if(&mut self, job: JobIx, inputs: Inputs, bounds: &Bounds) {
        let sketch = self.asker.world.queue.sketch(job);
        if !self.is_beaten(bounds.of(sketch, inputs), sketch.ready) {
            self.look_at(job);
        }
    }

    /// Scores a job, unless it may not be taken.
    fn look_at(&mut self, ix: JobIx) {
        let world = self.asker.world;
        let Some(waiting) = world.queue.jobs.get(ix) else { return };
        let may = waiting.line.is_some_and(|line| self.lines.binary_search(&line).is_ok())
            && world.is_fetched(waiting, self.scope)
            && !world.is_reserved(self.asker.ix, waiting)
            && world.cost_max(waiting.tenant).is_none_or(|max| waiting.cost <= max);
        if !may {
            return;
        }
        let Opinion::Score(score) = self.asker.candidate(ix).opinion() else { return };
        let merit = (score, Reverse(waiting.standing.ready), Reverse(&waiting.id));
        if score >= Fixed::ZERO && self.best.is_none_or(|(best, _)| merit > best) {
            self.best = Some((merit, ix));
        }
    }
}

/// Jobs of several lines, longest ready first.
struct ByAge<'a> {
    heads: BinaryHeap<Reverse<(Timestamp, usize)>>,
    lines: Vec<std::collections::btree_map::Values<'a, crate::order::OrderKey, JobIx>>,
    nexts: Vec<Option<JobIx>>,
    world: &'a World,
}

impl<'a> ByAge<'a> {
    fn new(world: &'a World, lines: &[LineIx]) -> Self {
        let lines = lines.iter().map(|line| &world.queue.lines[*line]);
        let lines: Vec<_> = lines.map(|line: &Line| line.jobs.values()).collect();
        let nexts = vec![None; lines.len()];
        let mut by_age = Self { heads: BinaryHeap::new(), lines, nexts, world };
        for at in 0..by_age.lines.len() {
            by_age.pull(at);
        }
        by_age
    }

    fn pull(&mut self, at: usize) {
        self.nexts[at] = self.lines[at].next().copied();
        if let Some(job) = self.nexts[at] {
            let ready = self.world.queue.jobs[job].standing.ready;
            self.heads.push(Reverse((ready, at)));
        }
    }

    /// How long ago the next job became ready.
    fn ready(&self) -> Option<Timestamp> {
        self.heads.peek().map(|Reverse((ready, _))| *ready)
    }
}

impl Iterator for ByAge<'_> {
    type Item = JobIx;
    fn next(&mut self) -> Option<JobIx> {
        let Reverse((_, at)) = self.heads.pop()?;
        let job = self.nexts[at];
        self.pull(at);
        job
    }
}
