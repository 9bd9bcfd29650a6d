//! Changes of waiting jobs.

use model::{JobId, State};

use super::desk::{Sheet, Stage};
use super::draft::{Draft, Hold};
use super::fault::Fault;
use crate::{Amend, Amended, number, transition};

/// Jobs to change.
pub(super) struct Amending {
    pub(super) jobs: Vec<JobId>,
    pub(super) amend: Amend,
}

impl Stage for Amending {
    type Answer = Vec<Amended>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Amended>, Fault> {
        let ids: Vec<i64> = self.jobs.iter().filter_map(number::of).collect();
        let mut draft = Draft::default();
        draft.load(sheet, &ids, Hold::Lock).await?;
        draft.load_finished(sheet, &ids).await?;
        let answers = self.jobs.iter().map(|job| self.one(&mut draft, job)).collect();
        draft.write(sheet).await?;
        Ok(answers)
    }
}

impl Amending {
    fn one(&self, draft: &mut Draft, job: &JobId) -> Amended {
        let record = number::of(job).and_then(|id| draft.get_mut(id));
        let Some(record) = record else { return Amended::Unknown };
        match record.state {
            State::Blocked | State::Queued => {
                transition::amend(record, self.amend);
                Amended::Done(Box::new(record.clone()))
            }
            State::Claimed
            | State::Running
            | State::Succeeded
            | State::Failed
            | State::Cancelled => Amended::NotWaiting(record.state),
        }
    }
}
