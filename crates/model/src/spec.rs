//! What a submitter asks for.

use std::collections::BTreeMap;

use crate::job::{Amounts, Needs};
use crate::{Ask, Fixed, JobId, Millis, Name, TenantId, Timestamp, Traits};

/// One job as it was submitted. It never changes; what changes is in [`crate::Record`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its type: who can run it, and what its payload means.
    pub kind: Name,
    /// What to do, for the worker alone to read.
    pub payload: Vec<u8>,
    /// The pool it must run in; `None` means its type's pool, or any whose workers fit.
    pub pool: Option<Name>,
    /// What it needs of a worker.
    pub needs: Needs,
    /// Slots that it takes, all on one worker.
    pub slots: u32,
    /// Amounts that it takes, all on one worker.
    pub amounts: Amounts,
    /// Higher is sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// Facts that rules ask about.
    pub traits: Traits,
    /// The locality label that it wants.
    pub hint: Option<Name>,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// What it must hold alone while it runs.
    pub resource: Option<Ask>,
    /// The jobs that it waits for.
    pub after: Vec<JobId>,
    /// What becomes of it when one of those does not succeed.
    pub if_failed: IfFailed,
    /// Its tenant has at most one unfinished job of this type and key; `None` means any number.
    pub dedupe_key: Option<String>,
    /// Not to start earlier.
    pub not_before: Option<Timestamp>,
    /// Not worth starting later: if it still waits then, it fails.
    pub start_before: Option<Timestamp>,
    /// The longest an attempt may run.
    pub run_timeout: Option<Millis>,
    /// The longest an attempt may go without a word: progress or output.
    pub silence_timeout: Option<Millis>,
    /// How often to try, and how long to wait in between.
    pub retry: Retry,
    /// For people, and for filters.
    pub labels: BTreeMap<String, String>,
    /// How long it is expected to run; `None` means as its history says.
    pub estimate: Option<Millis>,
    /// What it is expected to cost.
    pub cost: Fixed,
    /// Jobs of one type, tenant and key have one history.
    pub history_key: String,
    /// Jobs that belong together; an array is a group.
    pub group: Option<String>,
    /// Its place in the array that it was submitted as part of.
    pub array_index: Option<u32>,
    /// The job on whose behalf it was submitted.
    pub parent: Option<JobId>,
    /// Where to tell that it is final; `None` means nowhere.
    pub webhook: Option<String>,
}

impl Spec {
    /// A job with nothing but a tenant and a type.
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

/// Something that a job reads, by what is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// What names its content.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
}

/// What becomes of a job when one that it waits for does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfFailed {
    /// It is cancelled, and so on down the line.
    Cancel,
    /// It runs all the same.
    Run,
}

/// How often a job is tried, and how long it waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts that may fail or time out; the last of them is final.
    pub attempts_max: u32,
    /// The wait after the first failure; it doubles with each further one.
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
