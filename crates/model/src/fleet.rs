//! The state of the fleet: attempts, resources, types, averages.

use crate::job::{Amounts, Ask, Needs};
use crate::{Fixed, JobId, Millis, Name, Recent, TenantId, Timestamp, Traits, WorkerId};

/// One live attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub job: JobId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its worker.
    pub worker: WorkerId,
    /// The job's type.
    pub kind: Option<Name>,
    /// The job's requirements.
    pub needs: Needs,
    /// Slots that it uses.
    pub slots: u32,
    /// Amounts that it uses.
    pub amounts: Amounts,
    /// The job's priority.
    pub priority: i32,
    /// When the job could first have run.
    pub ready: Timestamp,
    /// When this attempt was placed.
    pub started: Timestamp,
    /// Its expected cost, which counts in full while it runs.
    pub cost: Fixed,
    /// Its expected run time.
    pub estimate: Option<Millis>,
    /// Whether a person waits for it.
    pub on_demand: bool,
    /// Whether a different tenant competed for its slots when it was placed.
    pub is_contested: bool,
    /// The longest run time, after which it is stopped.
    pub limit: Option<Millis>,
    /// How often the job was preempted before.
    pub evictions: u32,
    /// The job's traits.
    pub traits: Traits,
    /// The lock that it holds: a named resource, or one of its tenant's workspaces.
    pub holds: Option<Ask>,
    /// The job for which it was asked to make room. It makes room when it has stopped.
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

/// A named exclusive lock: one job at a time may hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its name.
    pub name: Name,
    /// Its tenant. `None` means that every tenant may use it.
    pub tenant: Option<TenantId>,
    /// The job that holds it.
    pub holder: Option<JobId>,
}

/// Settings of a job type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobType {
    /// Its name.
    pub name: Name,
    /// The pool of its jobs that name none. `None` means every pool with a fitting worker.
    pub pool: Option<Name>,
    /// The limit of live attempts.
    pub jobs_max: Option<u32>,
    /// The limit of live attempts on one worker.
    pub worker_max: Option<u32>,
    /// The number of broken ties between workers, so that the next tie selects the next worker.
    pub rotation: u64,
    /// When a job of it last became ready. More jobs of it are expected for some time.
    pub seen: Option<Timestamp>,
    /// The jobs of it that became ready lately. `None` means that they were not counted.
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
    /// The tenant of the job.
    pub tenant: TenantId,
    /// The pool of its worker.
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
    /// Seconds from placed to ended.
    pub duration_s: Option<Fixed>,
    /// Paths that a worker had to fetch for a job.
    pub missing_paths: Option<Fixed>,
    /// MiB that a worker had to fetch for a job.
    pub missing_mib: Option<Fixed>,
    /// Dependents of a job.
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
