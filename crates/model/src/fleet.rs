//! What the fleet is doing: attempts, resources, types, averages.

use crate::job::{Amounts, Ask, Needs};
use crate::{Fixed, JobId, Millis, Name, Recent, TenantId, Timestamp, Traits, WorkerId};

/// One try to run a job, now on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub job: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it runs.
    pub worker: WorkerId,
    /// The job's type.
    pub kind: Option<Name>,
    /// What the job needs.
    pub needs: Needs,
    /// Slots that it takes.
    pub slots: u32,
    /// Amounts that it takes.
    pub amounts: Amounts,
    /// The job's priority.
    pub priority: i32,
    /// When the job first could have run.
    pub ready: Timestamp,
    /// When this attempt was placed.
    pub started: Timestamp,
    /// What it is expected to cost; counted in full while it runs.
    pub cost: Fixed,
    /// How long it is expected to run.
    pub estimate: Option<Millis>,
    /// Whether a person waits for it.
    pub on_demand: bool,
    /// Whether another tenant competed for its slots when it was placed.
    pub is_contested: bool,
    /// It is stopped after so long.
    pub limit: Option<Millis>,
    /// How often the job was preempted before.
    pub evictions: u32,
    /// The job's traits.
    pub traits: Traits,
    /// What it holds: a named resource, or one of its tenant's workspaces without a name.
    pub holds: Option<Ask>,
    /// The job that it was told to make room for, and will once it has stopped.
    pub stopping_for: Option<JobId>,
}

impl Attempt {
    /// An attempt of one slot that started as soon as its job was ready.
    pub fn new(job: JobId, tenant: TenantId, worker: WorkerId, started: Timestamp) -> Self {
        Self {
            job,
            tenant,
            worker,
            kind: None,
            needs: Needs::new(),
            slots: 1,
            amounts: Amounts::new(),
            priority: 0,
            ready: started,
            started,
            cost: Fixed::ONE,
            estimate: None,
            on_demand: false,
            is_contested: false,
            limit: None,
            evictions: 0,
            traits: Traits::default(),
            holds: None,
            stopping_for: None,
        }
    }
}

/// Something named that one job at a time may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name.
    pub name: Name,
    /// Whose it is; `None` means anybody's.
    pub tenant: Option<TenantId>,
    /// The job that holds it.
    pub holder: Option<JobId>,
}

/// Settings of a job type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobType {
    /// Its name.
    pub name: Name,
    /// The pool of its jobs that name none; `None` means any whose workers fit.
    pub pool: Option<Name>,
    /// The most jobs of it at once.
    pub jobs_max: Option<u32>,
    /// The most jobs of it at once on one worker.
    pub worker_max: Option<u32>,
    /// How often a tie between workers was broken for it, so that the next goes to another.
    pub rotation: u64,
    /// When a job of it last became ready: work that came lately is expected to come again.
    pub seen: Option<Timestamp>,
    /// How many jobs of it became ready lately; `None` means that nobody counted.
    pub recent: Option<Recent>,
}

impl JobType {
    /// A type without limits.
    pub const fn new(name: Name) -> Self {
        Self {
            name,
            pool: None,
            jobs_max: None,
            worker_max: None,
            rotation: 0,
            seen: None,
            recent: None,
        }
    }
}

/// A job of `tenant` was preempted in `pool`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eviction {
    /// When.
    pub at: Timestamp,
    /// Whose job it was.
    pub tenant: TenantId,
    /// Where it ran.
    pub pool: Name,
}

/// Averages over the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Over the last five minutes.
    pub avg_5m: Averages,
    /// Over the last hour.
    pub avg_1h: Averages,
    /// Over the last day.
    pub avg_24h: Averages,
}

/// Averages over one window. `None` means no samples, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// Seconds from ready to placed.
    pub wait_s: Option<Fixed>,
    /// Seconds from placed to done.
    pub duration_s: Option<Fixed>,
    /// Paths that a worker had to fetch for a job.
    pub missing_paths: Option<Fixed>,
    /// MiB that a worker had to fetch for a job.
    pub missing_mib: Option<Fixed>,
    /// Jobs that wait for a job.
    pub dependencies: Option<Fixed>,
    /// CPU time of a job.
    pub cpu_ms: Option<Fixed>,
    /// Fraction of attempts that ran out of memory.
    pub oom_rate: Option<Fixed>,
    /// Network speed of workers.
    pub network_mbps: Option<Fixed>,
    /// Bytes that a job reads and writes.
    pub disk_bytes: Option<Fixed>,
}
