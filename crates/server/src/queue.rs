//! 2. Queue: jobs that wait stand in the world, and nowhere twice.

use model::{
    Ask, Attempt, Event, Fixed, Job, JobId, Name, Record, Spec, State, TenantId, Timestamp,
};

use crate::history::Histories;
use crate::scheduler::Scheduler;
use crate::timers::Timer;

/// How many rounds a job waits for word about its inputs; one without inputs waits for none.
const ROUNDS_MAX: u32 = 4;

/// A job that waits in the world, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) fence: u64,
    pub(crate) tenant: TenantId,
    pub(crate) kind: Name,
    pub(crate) slots: u32,
    pub(crate) cost: Fixed,
    /// What it will hold.
    pub(crate) ask: Option<Ask>,
    /// When it is no longer worth starting.
    pub(crate) start_before: Option<Timestamp>,
}

impl Seen {
    pub(crate) fn of(record: &Record) -> Self {
        let spec = &record.spec;
        Self {
            fence: record.fence,
            tenant: spec.tenant.clone(),
            kind: spec.kind.clone(),
            slots: spec.slots,
            cost: spec.cost,
            ask: spec.resource.clone(),
            start_before: spec.start_before,
        }
    }
}

impl Scheduler {
    /// Somebody says that a job waits. If it was changed before and is not known here, this may be
    /// old news: the store is asked.
    pub(crate) fn told(&mut self, record: &Record) {
        if self.is_shared() {
            // It stands in a queue of the store; if that is long, it is not among its first.
            let is_next = self.comes_next(record);
            if !is_next {
                self.want_look();
            }
            if is_next || self.jobs.seen(&record.id).is_some() {
                self.stand_in_line(record);
            }
        } else if record.fence > 1 && self.jobs.seen(&record.id).is_none() {
            self.refetch.insert(record.id.clone());
        } else {
            self.enqueue(record);
        }
    }

    /// Takes in a job as it is now, unless it is another scheduler's to claim.
    pub(crate) fn enqueue(&mut self, record: &Record) {
        if self.is_others(&record.id) {
            self.withdraw(&record.id);
            self.want_look();
        } else {
            self.stand_in_line(record);
        }
    }

    /// Takes in a job as it is now. What is older than what is known changes nothing.
    pub(crate) fn stand_in_line(&mut self, record: &Record) {
        let job = &record.id;
        // A claim under way, or an attempt, knows better: its end brings the newest record.
        if self.jobs.is_placed(job) {
            return;
        }
        let known = self.jobs.seen(job).map_or(0, |seen| seen.fence);
        // A window brings what is known already again and again.
        if known > record.fence || (self.is_shared() && known == record.fence) {
            return;
        }
        if record.state != State::Queued || record.on_hold {
            self.withdraw(job);
            return;
        }
        let seen = Seen::of(record);
        let start_before = seen.start_before;
        self.jobs.wait(job.clone(), seen);
        if let Some(at) = start_before {
            self.timers.set(at, Timer::TooLate(job.clone()));
        }
        self.histories.submitted(&record.id, &record.spec);
        self.world.apply(Event::Queued(Box::new(job_of(record, &self.histories))));
        self.inventories.wait(record, &mut self.world);
        self.is_dirty = true;
    }

    /// The job waits no longer.
    pub(crate) fn withdraw(&mut self, job: &JobId) {
        if self.unsee(job).is_some() {
            self.world.apply(Event::Withdrawn(job.clone()));
        }
    }

    /// Forgets what is only known of a job while it waits.
    pub(crate) fn unsee(&mut self, job: &JobId) -> Option<Seen> {
        let seen = self.jobs.unwait(job)?;
        self.inventories.forget(job);
        if let Some(at) = seen.start_before {
            self.timers.unset(at, Timer::TooLate(job.clone()));
        }
        Some(seen)
    }
}

/// A waiting job in the words of a decision.
pub(crate) fn job_of(record: &Record, histories: &Histories) -> Job {
    Job {
        priority: record.priority,
        ready: record.ready.unwrap_or(record.created),
        backoff_until: record.backoff_until,
        evictions: record.counts.evictions,
        last_worker: record.last_worker.clone(),
        dependents: Some(record.n_dependents),
        ..new_job(record.id.clone(), &record.spec, record.created, histories)
    }
}

/// A job that was never tried, in the words of a decision.
pub(crate) fn new_job(id: JobId, spec: &Spec, at: Timestamp, histories: &Histories) -> Job {
    let history = histories.of(spec);
    Job {
        id,
        tenant: spec.tenant.clone(),
        kind: Some(spec.kind.clone()),
        pool: spec.pool.clone(),
        needs: spec.needs.clone(),
        slots: spec.slots,
        amounts: spec.amounts.clone(),
        priority: spec.priority,
        on_demand: spec.on_demand,
        created: at,
        ready: at,
        not_before: spec.not_before,
        backoff_until: None,
        evictions: 0,
        estimate: histories.length(spec),
        limit: spec.run_timeout,
        last_worker: None,
        traits: spec.traits,
        hint: spec.hint.clone(),
        resource: spec.resource.clone(),
        cost: spec.cost,
        dependents: Some(0),
        promised: None,
        inputs: std::collections::BTreeMap::new(),
        rescore_count: if spec.inputs.is_empty() { ROUNDS_MAX } else { 0 },
        history,
    }
}

/// A job that a worker has, in the words of a decision.
pub(crate) fn attempt_of(
    record: &Record,
    histories: &Histories,
    now: Timestamp,
) -> Option<Attempt> {
    let current = record.current.as_ref()?;
    let spec = &record.spec;
    Some(Attempt {
        job: record.id.clone(),
        tenant: spec.tenant.clone(),
        worker: current.worker.clone(),
        kind: Some(spec.kind.clone()),
        needs: spec.needs.clone(),
        slots: spec.slots,
        amounts: spec.amounts.clone(),
        priority: record.priority,
        ready: record.ready.unwrap_or(record.created),
        started: current.claimed.min(now),
        cost: spec.cost,
        estimate: histories.length(spec),
        on_demand: spec.on_demand,
        is_contested: false,
        limit: spec.run_timeout,
        evictions: record.counts.evictions,
        traits: spec.traits,
        holds: current.holds.clone(),
        stopping_for: None,
    })
}
