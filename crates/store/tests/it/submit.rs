//! Plain jobs for tests about other subjects.

use std::future::Future;

use model::{Name, Record, Spec, TenantId};
use store::{Error, NewJob, Repeat, Store, Submission};

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn submission(n_jobs: usize, n_bytes: usize) -> Submission {
    let tenant = TenantId::new("tenant");
    let spec = Spec { payload: vec![7; n_bytes], ..Spec::new(tenant.clone(), Name::new("kind")) };
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    Submission::new(tenant, vec![job; n_jobs])
}

/// Submits `n_jobs` jobs.
pub(crate) async fn submit(store: &impl Store, n_jobs: usize) -> Result<Vec<Record>, Error> {
    let submitted = store.submit(submission(n_jobs, 100)).await?;
    Ok(submitted.unwrap().jobs)
}
