//! Errors of a store, one variant for each reaction of the caller.

use model::JobId;

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nothing was changed. A retry may succeed.
    #[error("the store did not answer while trying to {doing}: {cause}")]
    Unavailable {
        /// The operation, as a verb phrase.
        doing: &'static str,
        /// The error of the database.
        cause: String,
    },
    /// The change may have happened: the connection failed before the answer. The caller must retry
    /// in a way that is safe if it did.
    #[error("the store was lost while trying to {doing}, which may be done or not: {cause}")]
    Unknown {
        /// The operation, as a verb phrase.
        doing: &'static str,
        /// The error of the connection.
        cause: String,
    },
    /// There is no space. Nothing was changed, and nothing will be until there is space.
    #[error("the disk is full: could not {doing}")]
    Full {
        /// The operation, as a verb phrase.
        doing: &'static str,
    },
    /// The disk failed, or a task of the store. The store rejects every call until it is opened
    /// again.
    #[error("the store broke while trying to {doing}: {cause}")]
    Broken {
        /// The operation, as a verb phrase.
        doing: &'static str,
        /// The error of the disk, the database or the task.
        cause: String,
    },
    /// The database cannot be used. It was not changed.
    #[error("{0}")]
    Unusable(String),
}

/// The reason why a submission was refused. Nothing of it was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An earlier submission with a different content has this idempotency key.
    #[error("the idempotency key `{key}` was used before with another body")]
    KeyConflict {
        /// The key.
        key: String,
    },
    /// A dependency does not exist, belongs to a different tenant, or was deleted.
    #[error("job {job} of `after` does not exist")]
    NoSuchJob {
        /// The index of the job in the submission.
        index: usize,
        /// The dependency.
        job: JobId,
    },
    /// The tenant has reached its limit of unfinished jobs.
    #[error("tenant `{tenant}` has {jobs} unfinished jobs of at most {max}")]
    TenantFull {
        /// The tenant.
        tenant: String,
        /// The unfinished jobs of the tenant.
        jobs: u64,
        /// The limit.
        max: u64,
    },
    /// All tenants together have reached the limit of unfinished jobs.
    #[error("there are {jobs} unfinished jobs of at most {max}")]
    StoreFull {
        /// The unfinished jobs of all tenants.
        jobs: u64,
        /// The limit.
        max: u64,
    },
}

impl Refusal {
    /// An index in `after_indexes` that is not smaller than the job's own index.
    pub(crate) fn no_such_place(index: usize, place: usize) -> Self {
        Self::NoSuchJob { index, job: JobId::new(&format!("#{place}")) }
    }
}
