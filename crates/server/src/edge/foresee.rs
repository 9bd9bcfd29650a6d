//! Submissions that are not kept: what would become of them.

use std::collections::BTreeSet;

use model::maxima::SUBMISSION_MAX;
use model::{JobId, Reason, Spec};
use proto::{Invalid, v1};
use store::Submission;
use tonic::Status;

use super::told::told;
use super::{Door, answer};
use crate::explain::Explained;
use crate::foresee::Foreseen;
use crate::status::Question;
use crate::submit::submission;

impl Door {
    pub(crate) async fn foresee(
        &self,
        request: v1::SubmitRequest,
    ) -> Result<v1::DryRunResponse, Status> {
        let types = self.types.borrow().clone();
        let submission =
            submission(request, &types).map_err(|invalid| answer::invalid(&invalid))?;
        let n_jobs = submission.jobs.len();
        if n_jobs > SUBMISSION_MAX {
            let problem = format!("makes {n_jobs} jobs; at most {SUBMISSION_MAX} are foreseen");
            return Err(answer::invalid(&Invalid::new("array", problem)));
        }
        let open = self.unfinished(&submission).await?;
        let mut foreseen = Vec::with_capacity(n_jobs);
        let mut specs: Vec<Spec> = Vec::new();
        for job in submission.jobs {
            let n_open = job.spec.after.iter().filter(|id| open.contains(id)).count();
            let early = early(n_open + job.after_indexes.len(), job.on_hold);
            if early.is_none() {
                specs.push(job.spec);
            }
            foreseen.push(early);
        }
        let rehearsal = self.ask(|answer| Question::Rehearse(specs, answer)).await?;
        let decided = self.requests.spawn_blocking(move || rehearsal.run()).await;
        let decided = decided.map_err(|error| Status::internal(error.to_string()))?;
        let mut decided = decided.into_iter();
        let jobs = foreseen.into_iter().filter_map(|early| early.or_else(|| decided.next()));
        Ok(v1::DryRunResponse { jobs: jobs.map(on_the_wire).collect() })
    }

    /// Those of the jobs that a submission waits for that are not finished.
    async fn unfinished(&self, submission: &Submission) -> Result<BTreeSet<JobId>, Status> {
        let after: BTreeSet<JobId> =
            submission.jobs.iter().flat_map(|job| job.spec.after.clone()).collect();
        let mut open = BTreeSet::new();
        for id in after {
            let record = self.store.job(id.clone()).await;
            let record = record.map_err(|error| answer::failed(&error))?;
            let record = record.filter(|record| record.spec.tenant == submission.tenant);
            let Some(record) = record else {
                return Err(Status::not_found(format!("job {id} of `after` does not exist")));
            };
            if !record.state.is_terminal() {
                open.insert(id);
            }
        }
        Ok(open)
    }
}

/// What no decision is needed for.
fn early(n_blockers: usize, on_hold: bool) -> Option<Foreseen> {
    let held = |reason, detail| Some(Foreseen::Held(Explained::one(reason, detail)));
    if n_blockers > 0 {
        let jobs = if n_blockers == 1 { "1 job".to_owned() } else { format!("{n_blockers} jobs") };
        return held(Reason::NotReady, format!("it would wait for {jobs} to finish first"));
    }
    if on_hold {
        return held(Reason::OnHold, "it would wait until it is released".to_owned());
    }
    None
}

fn on_the_wire(foreseen: Foreseen) -> v1::Foreseen {
    match foreseen {
        Foreseen::Placed { worker, why } => {
            v1::Foreseen { worker, why_there: why, ..v1::Foreseen::default() }
        }
        Foreseen::Held(explained) => {
            let v1::ExplainResponse {
                reason,
                detail,
                ahead,
                starts_in_ms,
                estimate_basis,
                checks,
                nearest,
                starts_in_min_ms,
                starts_in_max_ms,
                ..
            } = told(explained);
            v1::Foreseen {
                reason,
                detail,
                ahead,
                starts_in_ms,
                estimate_basis,
                checks,
                nearest,
                starts_in_min_ms,
                starts_in_max_ms,
                ..v1::Foreseen::default()
            }
        }
    }
}
