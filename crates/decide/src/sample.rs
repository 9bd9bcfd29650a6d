//! Which worker a job gets if a few are drawn by chance: the best of those that have room.
//!
//! Drawn are workers that serve and match, full ones among them: whether one has room is found out
//! when it is looked at. So a draw can fail, and how often to draw is a choice.

use std::cmp::Reverse;

use model::policy::{Rule, Sampling};
use model::{Fixed, Points};

use crate::seat::Seating;
use crate::table::{JobIx, NameIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::World;

impl World {
    /// The best of a few drawn by chance; after as many draws without room as the policy allows,
    /// the first that matches and has room.
    pub(crate) fn sampled(
        &mut self,
        job: JobIx,
        pool: Option<NameIx>,
        sampling: &Sampling,
    ) -> Seating {
        let waiting = &self.queue.jobs[job];
        if !self.is_open(waiting, pool) {
            return self.none_left(waiting, pool);
        }
        let fit = self.fleet.catalogue.classes[waiting.class].key.fit;
        let n_serving = self.fleet.n_serving(fit, pool);
        let size = usize::try_from(sampling.sample_size).unwrap_or(usize::MAX);
        if n_serving <= size {
            // All are in the sample, so those that are open are.
            let open = self.open(waiting, pool);
            return self.best_sampled(open, waiting, sampling);
        }
        for _ in 0..sampling.max_attempts {
            let drawn = self.chance.sample(n_serving, size);
            let waiting = &self.queue.jobs[job];
            let drawn = self.fleet.serving_at(fit, pool, &drawn);
            let open = drawn.filter(|ix| self.is_open_on(*ix, waiting));
            let best = self.best_sampled(open, waiting, sampling);
            if best != Seating::Nowhere {
                return best;
            }
        }
        self.first(job, pool)
    }

    /// The one with most points; where the job did not run last, if there is a choice.
    fn best_sampled(
        &self,
        open: impl Iterator<Item = WorkerIx>,
        waiting: &Waiting,
        sampling: &Sampling,
    ) -> Seating {
        let best = open.max_by_key(|ix| {
            let points = self.sample_points(*ix, waiting, sampling);
            let score: Fixed = points.iter().map(|said| said.points).sum();
            (!self.is_last(*ix, waiting), score, Reverse(self.fleet.id(*ix)))
        });
        let points = |ix| self.sample_points(ix, waiting, sampling);
        best.map_or(Seating::Nowhere, |ix| Seating::At(ix, points(ix)))
    }

    fn sample_points(&self, ix: WorkerIx, waiting: &Waiting, sampling: &Sampling) -> Vec<Points> {
        let seated = &self.fleet.workers[ix];
        let has_hint = waiting.extra().hint.is_some_and(|hint| seated.hints.contains(&hint));
        let said = [
            (Rule::Rank, sampling.rank.scale(i64::from(seated.worker.rank), 1)),
            (Rule::Free, sampling.free.scale(i64::from(seated.slots_free()), 1)),
            (Rule::Hint, if has_hint { sampling.hint } else { Fixed::ZERO }),
        ];
        self.weighed(&said)
    }
}
