//! Which worker a job gets.

use model::policy::{Rule, Seat};
use model::{Fixed, Points};

use crate::catalogue::Class;
use crate::rule::{Asker, fraction};
use crate::rules::missing_bytes;
use crate::table::{JobIx, NameIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::World;

/// Where a job could go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seating {
    /// There, with what the rules of the seat said.
    At(WorkerIx, Vec<Points>),
    /// Workers have room, but it is kept from the job on purpose.
    Kept,
    /// No worker has room.
    Nowhere,
}

/// Under [`Seat::Fit`], at most so many workers of one level of specialisation are compared for a
/// job without locality, so that an idle fleet of thousands does not slow decisions down.
const COMPARED_MAX: usize = 64;

const POINTS_HINT: Fixed = Fixed::whole(300);
const POINTS_HEADROOM: Fixed = Fixed::whole(100);
const POINTS_LOAD: Fixed = Fixed::whole(45);
/// For a worker that runs one type, shared by the types of one that runs more. It only tells what
/// was decided: workers of different specialisation are never compared by points.
const POINTS_SPECIALIST: Fixed = Fixed::whole(400);

impl World {
    /// The best worker for a job, in `pool` if given.
    pub(crate) fn seat(&mut self, job: JobIx, pool: Option<NameIx>) -> Seating {
        if let Seat::FirstMatch(Some(sampling)) = self.policy.seat {
            return self.sampled(job, pool, &sampling);
        }
        match self.policy.seat {
            Seat::FirstMatch(_) | Seat::FewestTypes | Seat::Asking => self.first(job, pool),
            Seat::MostFree => self.most_free(job, pool),
            Seat::Fit => self.best_fit(job, pool),
        }
    }

    /// Workers that the job may go to, in seating order; on-purpose holds apart.
    fn allowed<'a>(
        &'a self,
        waiting: &'a Waiting,
        pool: Option<NameIx>,
    ) -> impl Iterator<Item = WorkerIx> + 'a {
        let class = &self.fleet.catalogue.classes[waiting.class];
        self.fleet
            .with_room(class)
            .filter(move |ix| pool.is_none_or(|pool| self.fleet.workers[*ix].pool == pool))
            .filter(move |ix| self.worker_allows(*ix, class, waiting.tenant))
    }

    /// Why no worker is left for the job.
    pub(crate) fn none_left(&self, waiting: &Waiting, pool: Option<NameIx>) -> Seating {
        let is_kept = self.allowed(waiting, pool).next().is_some();
        if is_kept { Seating::Kept } else { Seating::Nowhere }
    }

    /// Whether some worker is open to the job.
    pub(crate) fn is_open(&self, waiting: &Waiting, pool: Option<NameIx>) -> bool {
        self.open(waiting, pool).next().is_some()
    }

    /// Whether this serving worker, which the job fits, is open to it.
    pub(crate) fn is_open_on(&self, ix: WorkerIx, waiting: &Waiting) -> bool {
        let class = &self.fleet.catalogue.classes[waiting.class];
        self.fleet.workers[ix].has_room(&class.key)
            && self.worker_allows(ix, class, waiting.tenant)
            && !self.is_guarded(ix, waiting)
            && !self.is_reserved(ix, waiting)
    }

    /// Workers that the job may go to, in seating order.
    pub(crate) fn open<'a>(
        &'a self,
        waiting: &'a Waiting,
        pool: Option<NameIx>,
    ) -> impl Iterator<Item = WorkerIx> + 'a {
        self.allowed(waiting, pool)
            .filter(|ix| !self.is_guarded(*ix, waiting) && !self.is_reserved(*ix, waiting))
    }

    /// Whether this is where the job's last attempt ran: another worker is preferred.
    pub(crate) fn is_last(&self, ix: WorkerIx, waiting: &Waiting) -> bool {
        waiting.extra().last_worker.as_ref().is_some_and(|last| last == self.fleet.id(ix))
    }

    pub(crate) fn first(&self, job: JobIx, pool: Option<NameIx>) -> Seating {
        let waiting = &self.queue.jobs[job];
        let another = self.open(waiting, pool).find(|ix| !self.is_last(*ix, waiting));
        match another.or_else(|| self.open(waiting, pool).next()) {
            Some(ix) => Seating::At(ix, Vec::new()),
            None => self.none_left(waiting, pool),
        }
    }

    /// Points times the weight that the policy gives their rule, without those that are zero.
    pub(crate) fn weighed(&self, said: &[(Rule, Fixed)]) -> Vec<Points> {
        let said = said.iter().filter_map(|(rule, points)| {
            let weight = self.policy.rules.get(rule)?;
            let points = points.times(*weight);
            (points != Fixed::ZERO).then_some(Points { rule: *rule, points })
        });
        said.collect()
    }

    /// The worker with most free slots; the type's rotation breaks ties.
    fn most_free(&mut self, job: JobIx, pool: Option<NameIx>) -> Seating {
        let waiting = &self.queue.jobs[job];
        let kind = self.fleet.catalogue.fit_of(waiting.class).key.kind;
        let mut seats: Vec<WorkerIx> = self.open(waiting, pool).collect();
        if seats.iter().any(|ix| !self.is_last(*ix, waiting)) {
            seats.retain(|ix| !self.is_last(*ix, waiting));
        }
        let free = |ix: &WorkerIx| self.fleet.workers[*ix].slots_free();
        let Some(most) = seats.iter().map(free).max() else {
            return self.none_left(waiting, pool);
        };
        seats.retain(|ix| free(ix) == most);
        let is_tie = seats.len() > 1;
        let Some(kind) = kind.filter(|_| is_tie) else { return Seating::At(seats[0], Vec::new()) };
        let rotation = &mut self.kind(kind).settings.rotation;
        let turn = *rotation % u64::try_from(seats.len()).expect("a u64 holds a usize");
        *rotation = rotation.wrapping_add(1);
        let turn = usize::try_from(turn).expect("it is below a usize");
        Seating::At(seats[turn], Vec::new())
    }

    /// The most specialised worker; of those, the one with the best sum of locality, headroom and
    /// load.
    fn best_fit(&self, job: JobIx, pool: Option<NameIx>) -> Seating {
        let waiting = &self.queue.jobs[job];
        let another = || self.open(waiting, pool).filter(|ix| !self.is_last(*ix, waiting));
        let Some(first) = another().next().or_else(|| self.open(waiting, pool).next()) else {
            return self.none_left(waiting, pool);
        };
        let level = self.fleet.workers[first].n_types();
        let rivals = another().take_while(|ix| self.fleet.workers[*ix].n_types() == level);
        let mut best = first;
        let mut best_score = self.fit_score(first, job);
        let is_at_home_somewhere = waiting.extra().hint.is_some() || waiting.has_inputs();
        let compared_max = if is_at_home_somewhere { usize::MAX } else { COMPARED_MAX };
        for rival in rivals.take(compared_max) {
            let score = self.fit_score(rival, job);
            if score > best_score {
                (best, best_score) = (rival, score);
            }
        }
        Seating::At(best, self.fit_points(best, job))
    }

    fn fit_score(&self, ix: WorkerIx, job: JobIx) -> Fixed {
        self.fit_points(ix, job).iter().map(|said| said.points).sum()
    }

    /// What the rules of [`Seat::Fit`] say about a worker for a job.
    fn fit_points(&self, ix: WorkerIx, job: JobIx) -> Vec<Points> {
        let waiting = &self.queue.jobs[job];
        let seated = &self.fleet.workers[ix];
        let has_hint = waiting.extra().hint.is_some_and(|hint| seated.hints.contains(&hint));
        let n_types = i128::try_from(seated.n_types()).unwrap_or(i128::MAX);
        let missing = waiting.has_inputs().then(|| seated.inputs.get(job)).flatten();
        let missing = missing.and_then(|inputs| inputs.missing_bytes);
        let (free, slots) = (seated.slots_free(), seated.worker.slots);
        self.weighed(&[
            (Rule::Specialist, fraction(POINTS_SPECIALIST, 1, n_types)),
            (Rule::Hint, if has_hint { POINTS_HINT } else { Fixed::ZERO }),
            (Rule::MissingBytes, missing_bytes::points(&Asker::new(self, ix), missing)),
            (Rule::Headroom, fraction(POINTS_HEADROOM, i128::from(free), i128::from(slots))),
            (Rule::Load, load_points(&seated.worker.metrics)),
        ])
    }

    /// The class of a waiting job.
    pub(crate) fn class_of_job(&self, job: JobIx) -> &Class {
        &self.fleet.catalogue.classes[self.queue.jobs[job].class]
    }
}

/// Points for CPU and memory that are not in use; without a measurement, none.
fn load_points(metrics: &model::Metrics) -> Fixed {
    let cpu = metrics.cpu_pct.map_or(Fixed::ZERO, |cpu_pct| {
        fraction(POINTS_LOAD, 100_000 - i128::from(cpu_pct.in_thousandths()), 100_000)
    });
    let ram = match (metrics.ram_free_mb, metrics.ram_total_mb) {
        (Some(free), Some(total)) => fraction(POINTS_LOAD, i128::from(free), i128::from(total)),
        (Some(_) | None, None) | (None, Some(_)) => Fixed::ZERO,
    };
    cpu + ram
}
