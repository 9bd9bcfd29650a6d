//! Converts jobs and their results to protobuf.

use model::{Counts, Ending, Fixed, JobId, Measured, Progress, Record, State};

use crate::check::{Invalid, number, text};
use crate::v1;

impl From<Record> for v1::Job {
    fn from(record: Record) -> Self {
        let current = record.current;
        let worker =
            current.as_ref().map(|current| &current.worker).or(record.last_worker.as_ref());
        Self {
            id: record.id.as_number().unwrap_or_default(),
            state: v1::State::from(record.state).into(),
            priority: record.priority,
            counts: Some(record.counts.into()),
            created_ms: record.created.0,
            ready_ms: record.ready.map(|at| at.0),
            backoff_until_ms: record.backoff_until.map(|at| at.0),
            on_hold: record.on_hold,
            cancelling: record.cancelling,
            n_blockers: record.n_blockers,
            n_dependents: record.n_dependents,
            worker: worker.map(ToString::to_string).unwrap_or_default(),
            claimed_ms: current.as_ref().map(|current| current.claimed.0),
            started_ms: current.as_ref().and_then(|current| current.started).map(|at| at.0),
            finished_ms: record.finished.map(|at| at.0),
            cause: record.cause.map(|cause| cause.name().to_owned()).unwrap_or_default(),
            progress: current.and_then(|current| current.progress).map(Into::into),
            error: record.error.unwrap_or_default(),
            result: record.result,
            exit_code: record.exit_code,
            cost: record.cost.map(Fixed::to_f64),
            spec: Some((&*record.spec).into()),
        }
    }
}

impl From<Counts> for v1::Counts {
    fn from(counts: Counts) -> Self {
        Self {
            attempts: counts.attempts,
            failures: counts.failures,
            losses: counts.losses,
            evictions: counts.evictions,
            refusals: counts.refusals,
            revived: counts.revived,
        }
    }
}

impl From<Progress> for v1::Progress {
    fn from(progress: Progress) -> Self {
        let Progress { fraction, note, stage } = progress;
        Self { fraction: fraction.to_f64(), note, stage }
    }
}

impl v1::Progress {
    /// Checks a report of progress. Rejects a fraction outside 0 to 1.
    pub fn checked(self) -> Result<Progress, Invalid> {
        let fraction = number("progress.fraction", Some(self.fraction))?.unwrap_or(Fixed::ZERO);
        if fraction > Fixed::ONE {
            let problem = format!("is {fraction}, which is not between 0 and 1");
            return Err(Invalid::new("progress.fraction", problem));
        }
        text("progress.note", &self.note, model::maxima::TEXT_BYTES_MAX)?;
        text("progress.stage", &self.stage, model::maxima::NAME_BYTES_MAX)?;
        Ok(Progress { fraction, note: self.note, stage: self.stage })
    }
}

impl From<State> for v1::State {
    fn from(state: State) -> Self {
        match state {
            State::Blocked => Self::Blocked,
            State::Queued => Self::Queued,
            State::Claimed => Self::Claimed,
            State::Running => Self::Running,
            State::Succeeded => Self::Succeeded,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
        }
    }
}

impl v1::State {
    /// The state of the model. `None` if it is unknown.
    pub const fn known(self) -> Option<State> {
        match self {
            Self::Unspecified => None,
            Self::Blocked => Some(State::Blocked),
            Self::Queued => Some(State::Queued),
            Self::Claimed => Some(State::Claimed),
            Self::Running => Some(State::Running),
            Self::Succeeded => Some(State::Succeeded),
            Self::Failed => Some(State::Failed),
            Self::Cancelled => Some(State::Cancelled),
        }
    }
}

impl From<Ending> for v1::Ending {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Succeeded => Self::Succeeded,
            Ending::Transient => Self::Transient,
            Ending::Permanent => Self::Permanent,
            Ending::Lost => Self::Lost,
            Ending::Refused => Self::Refused,
            Ending::Timeout => Self::Timeout,
            Ending::Stale => Self::Stale,
            Ending::Preempted => Self::Preempted,
            Ending::Cancelled => Self::Cancelled,
        }
    }
}

impl v1::Ending {
    /// The ending of the model. `None` if it is unknown.
    pub const fn known(self) -> Option<Ending> {
        match self {
            Self::Unspecified => None,
            Self::Succeeded => Some(Ending::Succeeded),
            Self::Transient => Some(Ending::Transient),
            Self::Permanent => Some(Ending::Permanent),
            Self::Lost => Some(Ending::Lost),
            Self::Refused => Some(Ending::Refused),
            Self::Timeout => Some(Ending::Timeout),
            Self::Stale => Some(Ending::Stale),
            Self::Preempted => Some(Ending::Preempted),
            Self::Cancelled => Some(Ending::Cancelled),
        }
    }
}

impl From<Measured> for v1::Measured {
    fn from(measured: Measured) -> Self {
        Self {
            ram_peak_mb: measured.ram_peak_mb,
            cpu_ms: measured.cpu_ms,
            disk_bytes: measured.disk_bytes,
            out_of_memory: measured.out_of_memory,
        }
    }
}

impl From<v1::Measured> for Measured {
    /// Numbers beyond the maximum are cut to it: a wrong measurement should not reject a
    /// completion.
    fn from(measured: v1::Measured) -> Self {
        let max = model::maxima::NUMBER_MAX.unsigned_abs();
        let cut = |number: Option<u64>| number.map(|number| number.min(max));
        Self {
            ram_peak_mb: cut(measured.ram_peak_mb),
            cpu_ms: cut(measured.cpu_ms),
            disk_bytes: cut(measured.disk_bytes),
            out_of_memory: measured.out_of_memory,
        }
    }
}

impl v1::AttemptRef {
    /// The attempt `number` of `job`.
    pub fn new(job: &JobId, number: u32) -> Self {
        Self { job: job.as_number().unwrap_or_default(), attempt: number }
    }
}
