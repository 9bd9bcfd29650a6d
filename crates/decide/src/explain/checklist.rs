//! Everything that keeps one job waiting, as data.

use std::sync::Arc;

use model::{Ask, Check, Event, Job, JobId, Reason, Timestamp};

use super::nearest::Nearest;
use crate::catalogue::FitKey;
use crate::order::Standing;
use crate::table::{EntryIx, Ix as _, JobIx, NameIx};
use crate::waiting::{AskIx, Extra, Waiting};
use crate::world::World;

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// All reasons that apply; the first is the one that is told. Not empty.
    pub checks: Vec<Check>,
    /// Where workers are what it waits for: those that lack least, and what each lacks.
    pub nearest: Vec<Nearest>,
}

impl World {
    /// Everything that keeps a job waiting; `None` if it does not wait here. Takes as long as there
    /// are workers, and kinds of jobs that wait.
    pub fn explain_all(&mut self, job: &JobId, now: Timestamp) -> Option<Explanation> {
        self.advance(now);
        let ix = self.register.waiting(job)?;
        self.enter_part(self.part_of(ix));
        let explanation = self.explanation(ix);
        self.enter_part(None);
        Some(explanation)
    }

    /// Looks at the world as if a job that another scheduler is to claim stood in line here. Its
    /// arrival is not counted.
    pub fn with_guest<T>(&mut self, job: &Job, look: impl FnOnce(&mut Self) -> T) -> T {
        debug_assert!(self.register.get(&job.id).is_none(), "a guest is not in this world");
        self.admit(job);
        let seen = look(self);
        self.apply(Event::Withdrawn(job.id.clone()));
        seen
    }

    fn explanation(&self, ix: JobIx) -> Explanation {
        let waiting = &self.queue.jobs[ix];
        let audience = self.audience((waiting.class, waiting.tenant));
        let reasons = self.all_reasons(ix, &audience);
        let mut checks: Vec<Check> =
            reasons.into_iter().map(|reason| self.check(reason, waiting, &audience)).collect();
        self.add_turn(ix, &mut checks);
        let is_about_workers = checks.iter().any(|check| is_about_workers(check.reason));
        let nearest = if is_about_workers { self.nearest(waiting) } else { Vec::new() };
        Explanation { checks, nearest }
    }

    /// What would keep a job waiting that is not in this world, of what only a person or a new
    /// worker can end. Nothing is counted: the world is as if nobody had asked.
    pub fn explain_lasting(&mut self, job: &Job, now: Timestamp) -> Explanation {
        self.advance(now);
        let waiting = self.stranger(job);
        let audience = self.audience((waiting.class, waiting.tenant));
        let applies = |reason: &Reason| self.applies(*reason, (None, &waiting), &audience, None);
        let lasting = Reason::ALL.into_iter().filter(|reason| reason.is_lasting());
        let checks: Vec<Check> =
            lasting.filter(applies).map(|reason| self.check(reason, &waiting, &audience)).collect();
        let is_about_workers = checks.iter().any(|check| is_about_workers(check.reason));
        let nearest = if is_about_workers { self.nearest(&waiting) } else { Vec::new() };
        Explanation { checks, nearest }
    }

    /// The job as it would wait, in no line.
    fn stranger(&mut self, job: &Job) -> Waiting {
        let tenant = self.tenants.find_or_default(&job.tenant, &mut self.names);
        let kind = job.kind.as_ref().map(|kind| self.names.intern(kind));
        let own_pool = job.pool.as_ref().map(|pool| self.names.intern(pool));
        let of_type = kind.and_then(|kind| self.kinds.get(kind)?.settings.pool.clone());
        let pool = own_pool.or_else(|| of_type.map(|pool| self.names.intern(&pool)));
        let needs = Arc::new(job.needs.clone());
        let mut amounts: Vec<(NameIx, u64)> =
            job.amounts.iter().map(|(name, amount)| (self.names.intern(name), *amount)).collect();
        amounts.sort_unstable();
        let class = self.fleet.class(FitKey { pool, kind, needs }, job.slots, amounts);
        let standing = Standing {
            priority: job.priority,
            on_demand: job.on_demand,
            created: job.created,
            ready: job.ready,
            estimate: job.estimate,
        };
        let ask = job.resource.as_ref().map(|ask| match ask {
            Ask::Named(name) => AskIx::Named(self.names.intern(name)),
            Ask::Any => AskIx::Any,
        });
        let plain = Waiting::new((job.id.clone(), EntryIx::new(0)), tenant, class, standing);
        let extra = Extra { ask, not_before: job.not_before, ..plain.extra().clone() };
        Waiting { cost: job.cost, ..plain }.with_extra(extra)
    }

    /// Whose turn it is belongs to every reason that ends when a slot is free: alone, that would
    /// say that any free slot is this job's.
    fn add_turn(&self, ix: JobIx, checks: &mut Vec<Check>) {
        if checks.first().is_some_and(|first| first.reason < Reason::WorkersFull) {
            return;
        }
        let Some(turn) = self.whose_turn(ix) else { return };
        for check in checks.iter_mut() {
            if matches!(check.reason, Reason::WorkersFull | Reason::Outranked) {
                check.detail = format!("{}; {}", check.detail, turn.detail);
            }
        }
        match checks.iter_mut().find(|check| check.reason == Reason::Outranked) {
            Some(outranked) => {
                outranked.numbers.extend(turn.numbers);
                outranked.tenants.extend(turn.tenants);
            }
            None => checks.push(turn),
        }
    }
}

/// Whether another worker, or more of one, would end it.
const fn is_about_workers(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoWorkerEver | Reason::NoWorkerNow | Reason::WorkerUnhealthy | Reason::WorkersFull
    )
}
