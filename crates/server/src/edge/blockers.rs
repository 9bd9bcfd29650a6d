//! The jobs that a blocked job waits for, and the one because of which a job was cancelled.

use model::{Cause, JobId, Reason, Record, State};
use tonic::Status;

use super::{Door, answer};
use crate::explain::Explained;
use crate::status::Question;

/// Jobs that are told by number; of the rest, how many there are.
const NAMED_MAX: usize = 5;
/// A job is cancelled because of one that was cancelled because of another: so far it is told.
const CHAIN_MAX: usize = 10;

impl Door {
    /// Why a job waits, with the numbers and states of those that it waits for; or because of which
    /// other job it was cancelled.
    pub(super) async fn with_blockers(
        &self,
        record: &Record,
        mut explained: Explained,
    ) -> Result<Explained, Status> {
        if record.state == State::Cancelled && record.cause == Some(Cause::Dependency) {
            return Ok(Explained { detail: self.culprit(record).await?, ..explained });
        }
        if record.state != State::Blocked {
            return Ok(explained);
        }
        let (mut jobs, mut names) = (Vec::new(), Vec::new());
        for id in &record.spec.after {
            let Some(other) = self.other(id).await? else { continue };
            if other.state.is_terminal() {
                continue;
            }
            names.push(format!("job {id} ({})", self.how(&other).await?));
            jobs.push(id.clone());
            if names.len() == NAMED_MAX {
                break;
            }
        }
        let n_blockers = usize::try_from(record.n_blockers).unwrap_or(usize::MAX);
        let Some(detail) = told(&names, n_blockers.saturating_sub(names.len())) else {
            return Ok(explained);
        };
        let is_first = explained.reason == Reason::NotReady.name();
        if let Some(check) =
            explained.checks.iter_mut().find(|check| check.reason == Reason::NotReady)
        {
            check.detail.clone_from(&detail);
            check.jobs = jobs;
        }
        if is_first {
            explained.detail = detail;
        }
        Ok(explained)
    }

    async fn other(&self, id: &JobId) -> Result<Option<Record>, Status> {
        self.store.job(id.clone()).await.map_err(|error| answer::failed(&error))
    }

    /// How an unfinished job is: `running on w1`, `queued: tenant-paused`, `blocked`.
    async fn how(&self, record: &Record) -> Result<String, Status> {
        let state = record.state.name();
        if let Some(current) = &record.current {
            return Ok(format!("{state} on {}", current.worker));
        }
        if record.state != State::Queued {
            return Ok(state.to_owned());
        }
        let asked = Box::new(record.clone());
        let why = self.ask(|answer| Question::Explain(asked, answer)).await?;
        let reason = why.map(|why| why.reason).filter(|reason| !reason.is_empty());
        Ok(reason.map_or_else(|| state.to_owned(), |reason| format!("{state}: {reason}")))
    }

    /// Because of which job it was cancelled, and why that did not succeed.
    async fn culprit(&self, record: &Record) -> Result<String, Status> {
        let mut said = Vec::new();
        let mut next = self.unsuccessful(record).await?;
        while let Some(other) = next.take() {
            let (id, error) = (&other.id, other.error.as_deref());
            let error = error.and_then(|error| error.lines().last());
            let is_chained = other.cause == Some(Cause::Dependency);
            let why = error.or_else(|| other.cause.map(Cause::name)).filter(|_| !is_chained);
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            let verb = if other.state == State::Failed { "failed" } else { "was cancelled" };
            said.push(format!("job {id} {verb}{why}"));
            if is_chained && said.len() < CHAIN_MAX {
                next = self.unsuccessful(&other).await?;
            }
        }
        Ok(if said.is_empty() {
            "cancelled because a job that it waited for did not succeed; that job is deleted \
             by now"
                .to_owned()
        } else {
            format!("cancelled because {}", said.join(", because "))
        })
    }

    /// Of the jobs that it waited for, one that did not succeed; rather one that failed.
    async fn unsuccessful(&self, record: &Record) -> Result<Option<Record>, Status> {
        let mut cancelled = None;
        for id in &record.spec.after {
            match self.other(id).await? {
                Some(other) if other.state == State::Failed => return Ok(Some(other)),
                Some(other) if other.state == State::Cancelled => {
                    cancelled = cancelled.or(Some(other));
                }
                Some(_) | None => {}
            }
        }
        Ok(cancelled)
    }
}

/// What to say of them; nothing if all of them ended a moment ago.
fn told(names: &[String], n_more: usize) -> Option<String> {
    let (last, others) = names.split_last()?;
    let jobs = match (others, n_more) {
        ([], 0) => last.clone(),
        (_, 0) => format!("{} and {last}", others.join(", ")),
        (_, n_more) => format!("{} and {n_more} more", names.join(", ")),
    };
    Some(format!("it waits for {jobs} to finish first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_rest_are_counted() {
        let told = |n_names: u32, n_more| {
            let names: Vec<String> = (1..=n_names).map(|n| format!("job {n} (blocked)")).collect();
            told(&names, n_more)
        };
        assert_eq!(told(0, 0), None);
        assert_eq!(told(1, 0).unwrap(), "it waits for job 1 (blocked) to finish first");
        let two = "it waits for job 1 (blocked) and job 2 (blocked) to finish first";
        assert_eq!(told(2, 0).unwrap(), two);
        let many = told(5, 7).unwrap();
        assert!(many.ends_with("job 5 (blocked) and 7 more to finish first"), "{many}");
    }
}
