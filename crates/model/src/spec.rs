//! Job specifications.

use std::collections::BTreeMap;

use crate::job::{Amounts, Needs};
use crate::{Ask, Fixed, JobId, Millis, Name, TenantId, Timestamp, Traits};

/// The specification of a job. It never changes. [`crate::Record`] has the changing fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its type, which selects workers and the meaning of the payload.
    pub kind: Name,
    /// Its input, which only the worker reads.
    pub payload: Vec<u8>,
    /// Its pool. `None` means the pool of its type, or every pool with a fitting worker.
    pub pool: Option<Name>,
    /// Its requirements.
    pub needs: Needs,
    /// Slots that it needs, all on one worker.
    pub slots: u32,
    /// Amounts that it needs, all on one worker.
    pub amounts: Amounts,
    /// Higher starts sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// Facts that rules read.
    pub traits: Traits,
    /// The locality label that it prefers.
    pub hint: Option<Name>,
    /// The inputs that it reads.
    pub inputs: Vec<Input>,
    /// The exclusive lock that it needs.
    pub resource: Option<Ask>,
    /// Its dependencies.
    pub after: Vec<JobId>,
    /// The reaction to a dependency that does not succeed.
    pub if_failed: IfFailed,
    /// Its tenant has at most one unfinished job of this type and key. `None` means any number.
    pub dedupe_key: Option<String>,
    /// The earliest start.
    pub not_before: Option<Timestamp>,
    /// The latest start. A job that still waits then fails.
    pub start_before: Option<Timestamp>,
    /// The longest an attempt may run.
    pub run_timeout: Option<Millis>,
    /// The longest time that an attempt may go without progress or output.
    pub silence_timeout: Option<Millis>,
    /// The number of tries, and the waits in between.
    pub retry: Retry,
    /// For users, and for filters.
    pub labels: BTreeMap<String, String>,
    /// Its expected run time. `None` means the prediction from its history.
    pub estimate: Option<Millis>,
    /// Its expected cost.
    pub cost: Fixed,
    /// Jobs with the same type, tenant and key share a history.
    pub history_key: String,
    /// Jobs that belong together. An array is a group.
    pub group: Option<String>,
    /// Its index in its array.
    pub array_index: Option<u32>,
    /// The job that submitted it.
    pub parent: Option<JobId>,
    /// The URL to call when it is final. `None` means none.
    pub webhook: Option<String>,
}

impl Spec {
    /// A job with a tenant and a type, and defaults for the rest.
    pub fn new(tenant: TenantId, kind: Name) -> Self {
        Self {
            tenant,
            kind,
            payload: Vec::new(),
            pool: None,
            needs: Needs::new(),
            slots: 1,
            amounts: Amounts::new(),
            priority: 0,
            on_demand: false,
            traits: Traits::default(),
            hint: None,
            inputs: Vec::new(),
            resource: None,
            after: Vec::new(),
            if_failed: IfFailed::Cancel,
            dedupe_key: None,
            not_before: None,
            start_before: None,
            run_timeout: None,
            silence_timeout: None,
            retry: Retry::DEFAULT,
            labels: BTreeMap::new(),
            estimate: None,
            cost: Fixed::ONE,
            history_key: String::new(),
            group: None,
            array_index: None,
            parent: None,
            webhook: None,
        }
    }
}

/// An input of a job, named by its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// A digest of its content.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
}

/// The reaction to a dependency that does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfFailed {
    /// The job is cancelled, and so are its own dependents.
    Cancel,
    /// The job runs anyway.
    Run,
}

/// The number of tries of a job, and the waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts that may fail or time out. The last of them is final.
    pub attempts_max: u32,
    /// The wait after the first failure, which doubles with each further one.
    pub backoff: Millis,
    /// The longest wait.
    pub backoff_max: Millis,
}

impl Retry {
    /// Three tries, a second apart at first.
    pub const DEFAULT: Self = Self {
        attempts_max: 3,
        backoff: Millis::from_secs(1),
        backoff_max: Millis::from_secs(300),
    };
}
