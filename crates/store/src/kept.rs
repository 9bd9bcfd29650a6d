//! What a store keeps beside the records of jobs.

use model::{
    Cause, Ending, Fixed, JobId, Measured, Millis, Name, Record, State, TenantId, Timestamp,
    WorkerId,
};

/// An attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number.
    pub number: u32,
    /// Who had it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub claimed: Timestamp,
    /// When it was said to run.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// How.
    pub ending: Ending,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// The exit code, if it was a command.
    pub exit_code: Option<i32>,
    /// What it used.
    pub measured: Measured,
    /// Why it was placed there.
    pub why: String,
}

impl Past {
    /// Whether its job succeeded by it and nothing is to be said of it but who had it, when and
    /// why. It is then kept in the row of the job, which is never taken up again.
    pub(crate) fn is_plain(&self, record: &Record) -> bool {
        record.state == State::Succeeded
            && self.ending == Ending::Succeeded
            && self.error.is_none()
            && self.measured == Measured::default()
    }
}

/// What a setting is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingKind {
    /// The policy; its name is empty.
    Policy,
    /// The budget of all tenants together; its name is empty.
    Budget,
    /// A tenant.
    Tenant,
    /// A job type.
    Type,
    /// A pool.
    Pool,
    /// A named resource.
    Resource,
    /// A worker: whether it drains, whatever it says itself.
    Worker,
    /// What workers say about a job type.
    Descriptor,
    /// What all workers are told about the world around them; its name is empty.
    Context,
    /// A recurring job.
    Schedule,
    /// Something that an operator asked for and that is not done yet.
    Asked,
    /// A token; its name is a digest of it.
    Token,
}

impl SettingKind {
    /// All of them.
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

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A document that somebody set, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// What it is about.
    pub kind: SettingKind,
    /// What it is called.
    pub name: String,
    /// What it says; `None` removes it.
    pub document: Option<String>,
}

/// Something named that one holder at a time leads, with what it keeps for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// What it is called.
    pub name: String,
    /// Who has it, or had it last.
    pub holder: String,
    /// Goes up by one whenever another takes it: what an earlier holder keeps is refused.
    pub token: u64,
    /// Until when it is its holder's alone.
    pub until: Timestamp,
    /// What was kept last; empty if nothing ever was.
    pub document: String,
}

/// Something that happened, as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Goes up with every note.
    pub number: u64,
    /// Of which kind.
    pub kind: String,
    /// What tells it from others of its topic; empty if nothing does.
    pub key: String,
    /// When.
    pub at: Timestamp,
    /// What, as JSON.
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

/// What a look at all of a store found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Jobs that are unfinished.
    pub unfinished: u64,
    /// Jobs that are done with.
    pub finished: u64,
    /// What does not agree, in words; empty if everything does.
    pub problems: Vec<String>,
}

/// What a tenant used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Who.
    pub tenant: TenantId,
    /// Cost that was charged.
    pub cost: Fixed,
    /// Jobs that succeeded.
    pub completed: u64,
}

/// What one attempt of a job was like, for predictions and averages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose.
    pub tenant: TenantId,
    /// Its type.
    pub kind: Name,
    /// The submitter's key.
    pub history_key: String,
    /// When it ended.
    pub at: Timestamp,
    /// From ready to claimed.
    pub wait: Millis,
    /// From claimed to ended.
    pub duration: Millis,
    /// How it ended.
    pub ending: Ending,
    /// What it used.
    pub measured: Measured,
    /// What its worker had to fetch for it: paths and bytes.
    pub fetched: Option<(u32, u64)>,
    /// How many jobs waited for it.
    pub n_dependents: u32,
}

/// A job that asked for it is final, and somebody is to be told. Kept from the moment in which the
/// job is final until it was told, or nobody listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Never used twice, and the same each time it is told.
    pub id: u64,
    /// Where to tell.
    pub url: String,
    /// The job.
    pub job: JobId,
    /// Whose.
    pub tenant: TenantId,
    /// Its type.
    pub kind: Name,
    /// What it came to.
    pub state: State,
    /// Why it did not succeed.
    pub cause: Option<Cause>,
    /// When.
    pub finished: Timestamp,
    /// How often it was told, this time included.
    pub tries: u32,
}

impl Notice {
    /// What is to be told of a record; `None` if it is not final, or nobody asked for it.
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
