//! Slots that waiting work wants beyond those that are free: for whoever adds and removes workers.
//!
//! Looks at lines, never at jobs: its cost depends on how many kinds of jobs wait, and for those
//! that take more than a slot on how many workers match them.

use model::job::{Amounts, Needs};
use model::{Name, Reason};

use crate::catalogue::Class;
use crate::queue::Line;
use crate::world::World;

/// Jobs that stand in line, that no limit holds back, and that are alike in what they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Their type; `None` means that workers of any types run them.
    pub kind: Option<Name>,
    /// The pool they must run in; `None` means any.
    pub pool: Option<Name>,
    /// What they need of a worker.
    pub needs: Needs,
    /// Slots of one job.
    pub slots: u32,
    /// Amounts of one job.
    pub amounts: Amounts,
    /// How many there are that could start if there were room.
    pub n_jobs: u64,
    /// Slots for all of them, less those that are free and fit. What fits several is counted for
    /// each.
    pub slots_wanted: u64,
    /// Slots of serving workers that could hold one; none means that nobody can run it.
    pub slots_fitting: u64,
}

/// Slots of workers that could hold a job.
#[derive(Default)]
struct Fitting {
    slots: u64,
    /// Those that such jobs could take now.
    slots_free: u64,
}

impl World {
    /// What waits for want of workers, those who want most first.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        self.settle_fleet();
        let classes = self.fleet.catalogue.classes.iter().map(|(_, class)| class);
        let mut all: Vec<Wanted> = classes.filter_map(|class| self.wanted_of(class)).collect();
        all.sort_by(|one, other| {
            let key = |wanted: &Wanted| (wanted.kind.clone(), wanted.pool.clone());
            let by_most = other.slots_wanted.cmp(&one.slots_wanted);
            by_most.then_with(|| key(one).cmp(&key(other))).then_with(|| {
                (&one.needs, one.slots, &one.amounts).cmp(&(
                    &other.needs,
                    other.slots,
                    &other.amounts,
                ))
            })
        });
        all
    }

    fn wanted_of(&self, class: &Class) -> Option<Wanted> {
        let fit = &self.fleet.catalogue.fits[class.key.fit];
        let lines = self.queue.lines_of(class).map(|line| &self.queue.lines[line]);
        let n_jobs: u64 = lines.map(|line| self.n_startable(line, class)).sum();
        let fitting = self.fitting(class);
        let slots_wanted = n_jobs * u64::from(class.key.slots);
        let slots_wanted = slots_wanted.saturating_sub(fitting.slots_free);
        let name = |ix| self.names.name(ix).clone();
        (slots_wanted > 0).then(|| Wanted {
            kind: fit.key.kind.map(name),
            pool: fit.key.pool.map(name),
            needs: (*fit.key.needs).clone(),
            slots: class.key.slots,
            amounts: class.key.amounts.iter().map(|(ix, n)| (name(*ix), *n)).collect(),
            n_jobs,
            slots_wanted,
            slots_fitting: fitting.slots,
        })
    }

    /// A job of one slot fits wherever it matches; others need a worker that is large enough.
    fn fitting(&self, class: &Class) -> Fitting {
        if !class.is_wide() && !self.fleet.catalogue.is_mixed(class) {
            let fitting = self.fleet.catalogue.holding(class);
            return Fitting { slots: fitting.slots, slots_free: fitting.slots_free };
        }
        let mut fitting = Fitting::default();
        for ix in self.fleet.matching(class.key.fit) {
            let seated = &self.fleet.workers[ix];
            if seated.is_serving() && seated.could_hold(&class.key) {
                fitting.slots += u64::from(seated.worker.slots);
                fitting.slots_free += seated.n_room(&class.key) * u64::from(class.key.slots);
            }
        }
        fitting
    }

    /// Whether no job of the line could start, however much room there were.
    pub(crate) fn is_held_back(&self, line: &Line) -> bool {
        let is_held = match self.line_limit(&line.key) {
            Some(Reason::ResourceHeld) | None => false,
            Some(_) => true,
        };
        is_held || self.cost_max(line.key.tenant).is_some_and(|max| line.cost_min > max)
    }

    /// How many jobs of the line could start if there were room for all of them.
    fn n_startable(&self, line: &Line, class: &Class) -> u64 {
        if self.is_held_back(line) {
            return 0;
        }
        let tenant = line.key.tenant;
        let sharer = &self.tenants[tenant];
        let left = |max: Option<u32>, used: u32| max.map(|max| u64::from(max.saturating_sub(used)));
        let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
        let kind = kind.and_then(|kind| self.kinds.get(kind));
        let quota = self.fleet.catalogue.fits[class.key.fit].key.pool.and_then(|pool| {
            let max = u64::from(self.slots_max(tenant, pool)?);
            Some(max.saturating_sub(sharer.slots(pool)) / u64::from(class.key.slots.max(1)))
        });
        let bounds = [
            left(sharer.tenant.jobs_max, sharer.n_running),
            kind.and_then(|kind| left(kind.settings.jobs_max, kind.n_running)),
            quota,
            // Only one of those who want the same thing gets it.
            line.key.ask.map(|_| 1),
        ];
        let n_jobs = u64::try_from(line.jobs.len()).unwrap_or(u64::MAX);
        bounds.into_iter().flatten().fold(n_jobs, u64::min)
    }
}
