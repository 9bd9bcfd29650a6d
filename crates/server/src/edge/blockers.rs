//! The jobs that a blocked job waits for.

use model::{Record, State};
use tonic::Status;

use super::{Door, answer};
use crate::explain::Explained;

/// Jobs that are told by name; of the rest, how many there are.
const NAMED_MAX: usize = 5;

impl Door {
    /// Why a job waits, with the names of those that it waits for.
    pub(super) async fn with_blockers(
        &self,
        record: &Record,
        explained: Explained,
    ) -> Result<Explained, Status> {
        if record.state != State::Blocked {
            return Ok(explained);
        }
        let mut names = Vec::new();
        for id in &record.spec.after {
            let other = self.store.job(id.clone()).await.map_err(|error| answer::failed(&error))?;
            if other.is_some_and(|other| !other.state.is_terminal()) {
                names.push(id.to_string());
            }
            if names.len() == NAMED_MAX {
                break;
            }
        }
        let n_blockers = usize::try_from(record.n_blockers).unwrap_or(usize::MAX);
        let detail = told(&names, n_blockers.saturating_sub(names.len()));
        Ok(Explained { detail: detail.unwrap_or(explained.detail), ..explained })
    }
}

/// What to say of them; nothing if all of them ended a moment ago.
fn told(names: &[String], n_more: usize) -> Option<String> {
    let (last, others) = names.split_last()?;
    let jobs = match (others, n_more) {
        ([], 0) => format!("job {last}"),
        (_, 0) => format!("jobs {} and {last}", others.join(", ")),
        (_, n_more) => format!("jobs {} and {n_more} more", names.join(", ")),
    };
    Some(format!("it waits for {jobs} to finish first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_rest_are_counted() {
        let told = |n_names: u32, n_more| {
            let names: Vec<String> = (1..=n_names).map(|n| n.to_string()).collect();
            told(&names, n_more)
        };
        assert_eq!(told(0, 0), None);
        assert_eq!(told(1, 0).unwrap(), "it waits for job 1 to finish first");
        assert_eq!(told(3, 0).unwrap(), "it waits for jobs 1, 2 and 3 to finish first");
        let many = "it waits for jobs 1, 2, 3, 4, 5 and 7 more to finish first";
        assert_eq!(told(5, 7).unwrap(), many);
    }
}
