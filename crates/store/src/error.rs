//! What can go wrong, told apart by what the caller can do about it.

use model::JobId;

/// Why a store could not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nothing was changed; the same may work later.
    #[error("the store did not answer while trying to {doing}: {cause}")]
    Unavailable {
        /// What was asked, as a verb phrase.
        doing: &'static str,
        /// What the database said.
        cause: String,
    },
    /// It may have been done, or not: the store was lost before it said so. Ask again in a way that
    /// does no harm if it was.
    #[error("the store was lost while trying to {doing}, which may be done or not: {cause}")]
    Unknown {
        /// What was asked, as a verb phrase.
        doing: &'static str,
        /// What happened to the connection.
        cause: String,
    },
    /// Nothing was changed, and nothing will be until there is room.
    #[error("the disk is full: could not {doing}")]
    Full {
        /// What was asked, as a verb phrase.
        doing: &'static str,
    },
    /// It is not known what is on the disk. The store takes nothing more; start it again.
    #[error("the disk failed while trying to {doing}: {cause}")]
    Broken {
        /// What was asked, as a verb phrase.
        doing: &'static str,
        /// What the database said.
        cause: String,
    },
    /// What is there cannot be used, and was not touched.
    #[error("{0}")]
    Unusable(String),
}

/// Why a submission was refused. Nothing of it was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The idempotency key was used before, for something else.
    #[error("the idempotency key `{key}` was used before with another body")]
    KeyConflict {
        /// The key.
        key: String,
    },
    /// A dependency does not exist, is another tenant's, or was forgotten.
    #[error("job {job} of `after` does not exist")]
    NoSuchJob {
        /// The place of the job in the submission.
        index: usize,
        /// The dependency.
        job: JobId,
    },
    /// The tenant has as many unfinished jobs as it may.
    #[error("tenant `{tenant}` has {jobs} unfinished jobs of at most {max}")]
    TenantFull {
        /// The tenant.
        tenant: String,
        /// What it has.
        jobs: u64,
        /// What it may have.
        max: u64,
    },
    /// All tenants together have as many unfinished jobs as they may.
    #[error("there are {jobs} unfinished jobs of at most {max}")]
    StoreFull {
        /// What there is.
        jobs: u64,
        /// What there may be.
        max: u64,
    },
}

impl Refusal {
    /// A place of `after_indexes` that is not before the job's own names no job.
    pub(crate) fn no_such_place(index: usize, place: usize) -> Self {
        Self::NoSuchJob { index, job: JobId::new(&format!("#{place}")) }
    }
}
