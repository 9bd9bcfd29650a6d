//! What can be wrong with a decision, each as a sentence with its ids and numbers.

use std::fmt;

use model::{Fixed, JobId, Millis, Name, Reason, TenantId, Timestamp, WorkerId};

use super::{Delay, Denial, Fault, Flaw, Limit, Misfit};

/// One thing that is wrong with a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A job does not get exactly one answer.
    Answer {
        /// The job.
        job: JobId,
        /// What is wrong with its answer.
        fault: Fault,
    },
    /// An action names a worker that is not in the snapshot.
    UnknownWorker(WorkerId),
    /// A victim does not run where the decision says it does.
    NotRunning {
        /// The job that is told to stop.
        victim: JobId,
        /// Where it is said to run.
        worker: WorkerId,
    },
    /// A score is not the sum of its points.
    ScoreIsNotSum {
        /// The job that is placed.
        job: JobId,
        /// Its score.
        score: Fixed,
        /// What its points add up to.
        sum: Fixed,
    },

    /// A job is placed on a worker that cannot or does not take it.
    Unfit {
        /// The job.
        job: JobId,
        /// Where it is placed.
        worker: WorkerId,
        /// What does not fit.
        why: Misfit,
    },
    /// A job is placed although its moment is another.
    NotYet {
        /// The job.
        job: JobId,
        /// The moment of the decision.
        now: Timestamp,
        /// What it waits for.
        why: Delay,
    },
    /// A worker asked for work, and a job is placed on another.
    NotAsking {
        /// The job.
        job: JobId,
        /// Where it is placed.
        worker: WorkerId,
        /// Who asked.
        asking: WorkerId,
    },
    /// A worker that asked for work gets more jobs than it completed.
    PulledTooMany {
        /// Who asked.
        worker: WorkerId,
        /// How many jobs are placed on it.
        placed: u64,
        /// How many it completed.
        completed: u32,
    },
    /// A job of a paused tenant is placed.
    TenantPaused {
        /// The job.
        job: JobId,
        /// Whose it is.
        tenant: TenantId,
    },
    /// All placements together exceed a limit.
    Over {
        /// The limit.
        limit: Limit,
        /// What is used once the placements have started.
        used: Fixed,
        /// What may be used.
        max: Fixed,
    },
    /// A placed job cannot hold the resource that it asks for or was given.
    Resource {
        /// The job.
        job: JobId,
        /// The resource.
        name: Name,
        /// Why it cannot.
        why: Denial,
    },

    /// An attempt is told to stop that should not be.
    Preemption {
        /// The job whose attempt stops.
        victim: JobId,
        /// Where it runs.
        worker: WorkerId,
        /// The job that needs the room.
        preemptor: JobId,
        /// What is wrong with it.
        flaw: Flaw,
    },

    /// A job waits for room although a worker has room for it and no limit forbids it.
    IdleWorker {
        /// The job.
        job: JobId,
        /// The worker with room.
        worker: WorkerId,
        /// Why the job is said to wait.
        reason: Reason,
    },
    /// A hold's reason is not the first that applies.
    WrongReason {
        /// The job.
        job: JobId,
        /// Why it is said to wait.
        said: Reason,
        /// The first reason that applies.
        first: Reason,
    },
    /// A hold's reason is one that this policy does not have.
    NotThisPolicy {
        /// The job.
        job: JobId,
        /// Why it is said to wait.
        reason: Reason,
    },
    /// A job is held on purpose, but nothing keeps it off this worker.
    NotKept {
        /// The job.
        job: JobId,
        /// The worker that is open to it.
        worker: WorkerId,
        /// Why it is said to wait.
        reason: Reason,
    },
    /// A job is held on purpose, but no worker with room that looked for jobs has one.
    NoPurpose {
        /// The job.
        job: JobId,
        /// Why it is said to wait.
        reason: Reason,
    },
    /// A job is kept off a slot on purpose for longer than the policy allows.
    GuardedTooLong {
        /// The job.
        job: JobId,
        /// How long it has been ready.
        waited: Millis,
        /// From this age on it may take the slot.
        hold_max: Millis,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { job, fault } => write!(f, "job {job} {fault}"),
            Self::UnknownWorker(worker) => write!(f, "worker {worker} is named but not known"),
            Self::NotRunning { victim, worker } => {
                write!(f, "job {victim} is told to stop on worker {worker} but does not run there")
            }
            Self::ScoreIsNotSum { job, score, sum } => {
                write!(f, "job {job} has a score of {score}, but its points add up to {sum}")
            }
            Self::Unfit { job, worker, why } => {
                write!(f, "job {job} is placed on worker {worker}, which {why}")
            }
            Self::NotYet { job, now: Timestamp(now), why } => {
                write!(f, "job {job} is placed at {now} ms, but {why}")
            }
            Self::NotAsking { job, worker, asking } => {
                write!(f, "job {job} is placed on worker {worker}, but {asking} asked for work")
            }
            Self::PulledTooMany { worker, placed, completed } => {
                write!(f, "worker {worker} completed {completed} jobs and gets {placed}")
            }
            Self::TenantPaused { job, tenant } => {
                write!(f, "job {job} is placed, but its tenant {tenant} is paused")
            }
            Self::Over { limit, used, max } => write!(f, "{limit} would be {used}, at most {max}"),
            Self::Resource { job, name, why } => {
                write!(f, "job {job} is placed with resource {name}, which {why}")
            }
            Self::Preemption { victim, worker, preemptor, flaw } => {
                write!(f, "job {victim} on worker {worker} is told to stop for {preemptor}, {flaw}")
            }
            Self::IdleWorker { job, worker, reason } => {
                let reason = reason.name();
                write!(f, "job {job} is held as {reason}, but worker {worker} has room for it")
            }
            Self::WrongReason { job, said, first } => {
                let (said, first) = (said.name(), first.name());
                write!(f, "job {job} is held as {said}, but the first reason is {first}")
            }
            Self::NotThisPolicy { job, reason } => {
                let reason = reason.name();
                write!(f, "job {job} is held as {reason}, which this policy does not do")
            }
            Self::NotKept { job, worker, reason } => {
                let reason = reason.name();
                write!(f, "job {job} is held as {reason}, but nothing keeps it off worker {worker}")
            }
            Self::NoPurpose { job, reason } => {
                write!(f, "job {job} is held as {}, but on no worker", reason.name())
            }
            Self::GuardedTooLong { job, waited: Millis(waited), hold_max: Millis(hold_max) } => {
                write!(f, "job {job} is still guarded after {waited} ms, at most {hold_max} ms")
            }
        }
    }
}
