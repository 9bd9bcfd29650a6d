//! Jobs that people change: called off, taken up again, held, released, given another priority.

use model::maxima::PRIORITY_MAX;
use model::{JobId, Record, State};
use proto::{Invalid, v1};
use store::{Amend, Amended, Cancelled, Revived};
use tonic::Status;

use super::{Door, answer};
use crate::scheduler::Message;

/// A job that a request names. One that does not exist for the caller is looked for under a number
/// that no job has: the answer is the same as for one that does not exist at all.
pub(crate) struct Named {
    pub(crate) asked: JobId,
    pub(crate) job: JobId,
}

fn jobs(named: &[Named]) -> Vec<JobId> {
    named.iter().map(|named| named.job.clone()).collect()
}

impl Door {
    pub(crate) async fn cancel_jobs(
        &self,
        named: Vec<Named>,
    ) -> Result<v1::ChangeResponse, Status> {
        let answers = self.store.cancel(jobs(&named)).await;
        let answers = answers.map_err(|error| answer::failed(&error))?;
        let (mut gone, mut waiting, mut stopping) = (Vec::new(), Vec::new(), Vec::new());
        let mut changes = Vec::with_capacity(named.len());
        for (Named { asked: id, .. }, answer) in named.iter().zip(answers) {
            changes.push(match answer {
                Cancelled::Done { record, released, cancelled, changed: others } => {
                    let change = changed(id, record.state);
                    gone.push(*record);
                    gone.extend(cancelled);
                    waiting.extend(released);
                    waiting.extend(others);
                    change
                }
                Cancelled::Stopping(record) => {
                    let change = changed(id, record.state);
                    stopping.push(record.id.clone());
                    change
                }
                Cancelled::Unchanged(record) => {
                    unchanged(id, Some(record.state), format!("it is {}", record.state.name()))
                }
                Cancelled::Unknown => unchanged(id, None, "there is no such job".to_owned()),
            });
        }
        self.announce(&gone);
        self.announce(&waiting);
        let gone = gone.into_iter().map(|record| record.id).collect();
        self.tell_done(Message::Gone(gone)).await;
        self.tell_done(Message::Cancelling(stopping)).await;
        self.tell_done(Message::Waiting(waiting)).await;
        Ok(v1::ChangeResponse { changes })
    }

    pub(crate) async fn revive_jobs(
        &self,
        named: Vec<Named>,
    ) -> Result<v1::ChangeResponse, Status> {
        let answers = self.store.revive(jobs(&named)).await;
        let answers = answers.map_err(|error| answer::failed(&error))?;
        let mut waiting = Vec::new();
        let answers = named.iter().map(|named| &named.asked).zip(answers);
        let changes = answers.map(|(id, answer)| match answer {
            Revived::Done(record) => {
                let change = changed(id, record.state);
                waiting.push(*record);
                change
            }
            Revived::NotFinished(state) => {
                let problem = format!("it is {}, neither failed nor cancelled", state.name());
                unchanged(id, Some(state), problem)
            }
            Revived::Taken(other) => {
                unchanged(id, None, format!("job {other} has its dedupe key now"))
            }
            Revived::Full(refusal) => unchanged(id, None, refusal.to_string()),
            Revived::Unknown => unchanged(id, None, "there is no such job".to_owned()),
        });
        let changes = changes.collect();
        self.waiting(waiting).await;
        Ok(v1::ChangeResponse { changes })
    }

    pub(crate) async fn amend_jobs(
        &self,
        named: Vec<Named>,
        change: Option<v1::amend_request::Change>,
    ) -> Result<v1::ChangeResponse, Status> {
        let amend = amend(change).map_err(|invalid| answer::invalid(&invalid))?;
        let answers = self.store.amend(jobs(&named), amend).await;
        let answers = answers.map_err(|error| answer::failed(&error))?;
        let mut waiting = Vec::new();
        let answers = named.iter().map(|named| &named.asked).zip(answers);
        let changes = answers.map(|(id, answer)| match answer {
            Amended::Done(record) => {
                let change = changed(id, record.state);
                waiting.push(*record);
                change
            }
            Amended::NotWaiting(state) => {
                unchanged(id, Some(state), format!("it is {}, and waits no longer", state.name()))
            }
            Amended::Unknown => unchanged(id, None, "there is no such job".to_owned()),
        });
        let changes = changes.collect();
        self.waiting(waiting).await;
        Ok(v1::ChangeResponse { changes })
    }

    async fn waiting(&self, records: Vec<Record>) {
        self.announce(&records);
        self.tell_done(Message::Waiting(records)).await;
    }
}

fn amend(change: Option<v1::amend_request::Change>) -> Result<Amend, Invalid> {
    match change {
        Some(v1::amend_request::Change::OnHold(true)) => Ok(Amend::Hold),
        Some(v1::amend_request::Change::OnHold(false)) => Ok(Amend::Release),
        Some(v1::amend_request::Change::Priority(priority)) => {
            if (-PRIORITY_MAX..=PRIORITY_MAX).contains(&priority) {
                return Ok(Amend::Priority(priority));
            }
            let problem =
                format!("is {priority}, which is not between -{PRIORITY_MAX} and {PRIORITY_MAX}");
            Err(Invalid::new("priority", problem))
        }
        None => Err(Invalid::new("change", "is missing: `on_hold` or `priority`")),
    }
}

fn changed(id: &JobId, state: State) -> v1::Change {
    v1::Change {
        id: id.as_number().unwrap_or_default(),
        changed: true,
        state: v1::State::from(state).into(),
        problem: String::new(),
    }
}

fn unchanged(id: &JobId, state: Option<State>, problem: String) -> v1::Change {
    v1::Change {
        id: id.as_number().unwrap_or_default(),
        changed: false,
        state: state.map_or(v1::State::Unspecified, v1::State::from).into(),
        problem,
    }
}
