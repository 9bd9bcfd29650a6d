//! Jobs are cancelled, or given up because they are too late.

use model::{JobId, Record, Timestamp};

use super::desk::{Sheet, Stage};
use super::draft::{Draft, Hold};
use super::fault::Fault;
use super::settle::{Edges, Settled, settle};
use crate::transition::{self, Off};
use crate::{Cancelled, number};

/// The reason why jobs end early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// A client asked for it.
    Asked,
    /// No worker can start them in time.
    TooLate,
}

/// Jobs to cancel.
pub(super) struct Cancelling {
    pub(super) jobs: Vec<JobId>,
    pub(super) reason: Reason,
}

impl Stage for Cancelling {
    type Answer = Vec<Cancelled>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Cancelled>, Fault> {
        let ids: Vec<i64> = self.jobs.iter().filter_map(number::of).collect();
        let mut draft = Draft::default();
        draft.load(sheet, &ids, Hold::Lock).await?;
        draft.load_finished(sheet, &ids).await?;
        let mut answers = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            answers.push(self.one(sheet, &mut draft, job).await?);
        }
        draft.write(sheet).await?;
        Ok(answers)
    }
}

impl Cancelling {
    async fn one(
        &self,
        sheet: &Sheet<'_>,
        draft: &mut Draft,
        job: &JobId,
    ) -> Result<Cancelled, Fault> {
        let Some(id) = number::of(job) else { return Ok(Cancelled::Unknown) };
        let Some(record) = draft.get_mut(id) else { return Ok(Cancelled::Unknown) };
        let edges = Edges::of(record);
        let off = self.off(record, sheet.now);
        let record = Box::new(record.clone());
        match off {
            Off::Final => {
                let settled = settle(sheet, draft, (id, edges)).await?;
                let Settled { released, cancelled, changed } = settled;
                Ok(Cancelled::Done { record, released, cancelled, changed })
            }
            Off::Stopping | Off::StoppingAlready => {
                sheet.outcome().told.called_off.push(id);
                Ok(Cancelled::Stopping(record))
            }
            Off::Before => Ok(Cancelled::Unchanged(record)),
        }
    }

    fn off(&self, record: &mut Record, now: Timestamp) -> Off {
        match self.reason {
            Reason::Asked => transition::cancel(record, now),
            Reason::TooLate if transition::give_up(record, now) => Off::Final,
            Reason::TooLate => Off::Before,
        }
    }
}
