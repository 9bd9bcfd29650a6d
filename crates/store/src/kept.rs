//! Data that a store keeps beside the records of jobs.

use model::{
    Cause, Ending, Fixed, JobId, Measured, Millis, Name, Record, State, TenantId, Timestamp,
    WorkerId,
};

/// An attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number.
    pub number: u32,
    /// The worker of the attempt.
    pub worker: WorkerId,
    /// When it was claimed.
    pub claimed: Timestamp,
    /// When its worker reported the start.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// Its ending.
    pub ending: Ending,
    /// The error message.
    pub error: Option<String>,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
    /// The measured usage.
    pub measured: Measured,
    /// The explanation of its placement.
    pub why: String,
}

impl Past {
    /// Whether the job succeeded with this attempt, and the attempt has no data beside its worker,
    /// times and explanation. Such an attempt is stored in the row of its job, which is never
    /// revived.
    pub(crate) fn is_plain(&self, record: &Record) -> bool {
        record.state == State::Succeeded
            && self.ending == Ending::Succeeded
            && self.error.is_none()
            && self.measured == Measured::default()
    }
}

/// The subject of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingKind {
    /// The policy. The name is empty.
    Policy,
    /// The budget of all tenants together. The name is empty.
    Budget,
    /// A tenant.
    Tenant,
    /// A job type.
    Type,
    /// A pool.
    Pool,
    /// A named resource.
    Resource,
    /// A worker: whether the operator drains it, independent of the worker's own wish.
    Worker,
    /// The descriptor of a job type, as workers send it.
    Descriptor,
    /// The context that is published to all workers. The name is empty.
    Context,
    /// A recurring job.
    Schedule,
    /// An action that an operator requested and that is not done yet.
    Asked,
    /// A token. The name is a digest of it.
    Token,
}

impl SettingKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Policy,
        Self::Budget,
        Self::Tenant,
        Self::Type,
        Self::Pool,
        Self::Resource,
        Self::Worker,
        Self::Descriptor,
        Self::Context,
        Self::Schedule,
        Self::Asked,
        Self::Token,
    ];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Budget => "budget",
            Self::Tenant => "tenant",
            Self::Type => "type",
            Self::Pool => "pool",
            Self::Resource => "resource",
            Self::Worker => "worker",
            Self::Descriptor => "descriptor",
            Self::Context => "context",
            Self::Schedule => "schedule",
            Self::Asked => "asked",
            Self::Token => "token",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A document that an operator set, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Its subject.
    pub kind: SettingKind,
    /// Its name.
    pub name: String,
    /// Its document. `None` removes the setting.
    pub document: Option<String>,
}

/// A named task that one holder at a time leads, with its document for the next holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The name of the lead.
    pub name: String,
    /// The current or the last holder.
    pub holder: String,
    /// Increases by one with each new holder: the store rejects documents of an earlier one.
    pub token: u64,
    /// The end of the current term.
    pub until: Timestamp,
    /// The last document that a holder kept. Empty if there is none.
    pub document: String,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Increases with every note.
    pub number: u64,
    /// The kind of the event.
    pub kind: String,
    /// Identifies the note within its topic. Empty if nothing does.
    pub key: String,
    /// The time of the event.
    pub at: Timestamp,
    /// The event, as JSON.
    pub document: String,
}

/// The counts of one scheduler in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minute {
    /// When the minute began.
    pub at: Timestamp,
    /// The number of the scheduler among those that share the store. 0: only one uses it.
    pub scheduler: i64,
    /// The counts, as JSON.
    pub document: String,
}

/// Unfinished jobs of one type in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The type.
    pub kind: Name,
    /// The state.
    pub state: State,
    /// How many.
    pub n_jobs: u64,
}

/// The result of a check of a whole store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Jobs that are unfinished.
    pub unfinished: u64,
    /// Jobs that are final.
    pub finished: u64,
    /// The inconsistencies, in words. Empty if there are none.
    pub problems: Vec<String>,
}

/// The usage of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The tenant.
    pub tenant: TenantId,
    /// The charged cost.
    pub cost: Fixed,
    /// Jobs that succeeded.
    pub completed: u64,
}

/// One attempt of a job, for predictions and averages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The tenant of the job.
    pub tenant: TenantId,
    /// The type of the job.
    pub kind: Name,
    /// The submitter's key.
    pub history_key: String,
    /// When it ended.
    pub at: Timestamp,
    /// From ready to claimed.
    pub wait: Millis,
    /// From claimed to ended.
    pub duration: Millis,
    /// Its ending.
    pub ending: Ending,
    /// The measured usage.
    pub measured: Measured,
    /// The inputs that the worker fetched for the attempt: number of paths and of bytes.
    pub fetched: Option<(u32, u64)>,
    /// The number of dependents of the job.
    pub n_dependents: u32,
}

/// The webhook call of a final job. The store keeps it from the commit that makes the job final
/// until the call succeeds or is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Unique, and the same in each try.
    pub id: u64,
    /// The URL to call.
    pub url: String,
    /// The job.
    pub job: JobId,
    /// The tenant of the job.
    pub tenant: TenantId,
    /// The type of the job.
    pub kind: Name,
    /// The final state of the job.
    pub state: State,
    /// The cause, if the job did not succeed.
    pub cause: Option<Cause>,
    /// When the job became final.
    pub finished: Timestamp,
    /// The number of tries, this one included.
    pub tries: u32,
}

impl Notice {
    /// The notice of a record. `None` if the record is not final or has no webhook.
    pub fn of(id: u64, record: &Record) -> Option<Self> {
        Some(Self {
            id,
            url: record.spec.webhook.clone()?,
            job: record.id.clone(),
            tenant: record.spec.tenant.clone(),
            kind: record.spec.kind.clone(),
            state: record.state,
            cause: record.cause,
            finished: record.finished?,
            tries: 0,
        })
    }
}
