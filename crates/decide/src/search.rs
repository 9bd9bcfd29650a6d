//! The best job for a worker under rules, without scoring every job.
//!
//! Rules have bounds. Jobs come in several orders: longest ready first, fewest missing bytes
//! first, fewest missing paths first. What no order has shown yet has at most the points of the
//! place where each order stands, plus the most that the other rules give. Once that is less than
//! the best job found, the search is over: the answer is exact, and ties are broken as everywhere.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use model::policy::Rule;
use model::{Fixed, JobId, Timestamp, WorkerId};

use crate::queue::Line;
use crate::rule::{Asker, Opinion};
use crate::rules::{self, missing_bytes, missing_paths_points, wait};
use crate::table::{Ix, JobIx, LineIx, WorkerIx};
use crate::turn::Scope;
use crate::world::World;

/// How well a job does; larger is better.
type Merit<'a> = (Fixed, Reverse<Timestamp>, Reverse<&'a JobId>);

/// So many places of an order are looked at before the next order has its turn.
const STRIDE: usize = 16;

/// A search by one worker.
struct Search<'a> {
    asker: &'a Asker<'a>,
    scope: Scope,
    /// Lines whose jobs the worker may take.
    lines: BTreeSet<LineIx>,
    seen: Vec<u64>,
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

    /// Lines whose jobs the worker may take, as far as a line can tell.
    fn lines_for(&self, worker: WorkerIx, scope: Scope) -> BTreeSet<LineIx> {
        let seated = &self.fleet.workers[worker];
        if !seated.is_serving() {
            return BTreeSet::new();
        }
        let fits = seated.fits().iter().map(|fit| &self.fleet.catalogue.fits[*fit]);
        let classes =
            fits.flat_map(|fit| &fit.classes).map(|class| &self.fleet.catalogue.classes[*class]);
        let classes = classes.filter(|class| seated.has_room(&class.key));
        let lines = classes.flat_map(|class| class.lines.iter().map(move |line| (class, line)));
        let lines = lines.filter(|(class, line)| {
            let key = &self.queue.lines[**line].key;
            self.takes(scope, key.stage)
                && self.worker_allows(worker, class, key.tenant)
                && self.line_limit(key).is_none()
        });
        lines.map(|(_, line)| *line).collect()
    }
}

impl<'a> Search<'a> {
    fn new(asker: &'a Asker<'a>, scope: Scope) -> Self {
        let world = asker.world;
        Self {
            asker,
            scope,
            lines: world.lines_for(asker.ix, scope),
            seen: vec![0; world.queue.jobs.bound().div_ceil(64)],
            best: None,
        }
    }

    /// Goes down all orders in turn until nothing unseen can be better than the best.
    fn run(&mut self) {
        let world = self.asker.world;
        let facts = &self.asker.worker.inputs;
        for job in facts.fresh() {
            self.look_at(job);
        }
        let mut by_age = ByAge::new(world, &self.lines);
        let (mut bytes_at, mut paths_at) = (0, 0);
        let others = self.others();
        loop {
            for _ in 0..STRIDE {
                if let Some((job, _)) = facts.by_bytes(bytes_at) {
                    self.look_at(job);
                    bytes_at += 1;
                }
                if let Some((job, _)) = facts.by_paths(paths_at) {
                    self.look_at(job);
                    paths_at += 1;
                }
                let Some(job) = by_age.next() else { return };
                self.look_at(job);
            }
            let bytes = facts.by_bytes(bytes_at).and_then(|(_, missing)| missing);
            let paths = facts.by_paths(paths_at).and_then(|(_, missing)| missing);
            let Some(ready) = by_age.ready() else { return };
            let bound = others
                + self.weighed(Rule::MissingBytes, missing_bytes::points(self.asker, bytes))
                + self.weighed(Rule::MissingPaths, missing_paths_points(self.asker, paths))
                + self.weighed(Rule::Wait, self.wait_points(ready));
            // A job with the same score could still win by its age or id.
            if bound < Fixed::ZERO || self.best.is_some_and(|((score, ..), _)| bound < score) {
                return;
            }
        }
    }

    fn wait_points(&self, ready: Timestamp) -> Fixed {
        wait::points(self.asker, self.asker.now().since(ready))
    }

    fn weighed(&self, rule: Rule, points: Fixed) -> Fixed {
        let weight = self.asker.world.policy.rules.get(&rule).copied().unwrap_or(Fixed::ZERO);
        points.times(weight)
    }

    /// The most that the rules without an order of their own can give.
    fn others(&self) -> Fixed {
        let others = rules::of(&self.asker.world.policy).filter(|(sheet, _)| {
            !matches!(sheet.rule, Rule::MissingBytes | Rule::MissingPaths | Rule::Wait)
        });
        others.map(|(sheet, weight)| sheet.most(self.asker).times(weight)).sum()
    }

    /// Scores a job, unless it was scored before or may not be taken.
    fn look_at(&mut self, ix: JobIx) {
        let (word, bit) = (ix.at() / 64, 1 << (ix.at() % 64));
        if self.seen[word] & bit != 0 {
            return;
        }
        self.seen[word] |= bit;
        let world = self.asker.world;
        let Some(waiting) = world.queue.jobs.get(ix) else { return };
        let may = waiting.line.is_some_and(|line| self.lines.contains(&line))
            && world.is_fetched(waiting, self.scope)
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
    fn new(world: &'a World, lines: &BTreeSet<LineIx>) -> Self {
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
