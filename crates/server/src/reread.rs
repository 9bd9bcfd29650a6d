//! Where the store did not say what became of something, its record is read again.

use futures_util::FutureExt as _;
use model::{JobId, Record};

use crate::scheduler::{Answer, Scheduler};

/// Records that are read again in one turn.
const REFETCH_MAX: usize = 256;

impl Scheduler {
    /// Asks for them.
    pub(crate) fn flush_refetch(&mut self) {
        for _ in 0..REFETCH_MAX {
            let Some(job) = self.refetch.pop_first() else { return };
            self.call(|store| {
                async move {
                    let record = store.job(job.clone()).await;
                    Answer::Fetched(job, record.map(|record| record.map(Box::new)))
                }
                .boxed()
            });
        }
    }

    /// A record was read again: what it says counts.
    pub(crate) fn fetched(
        &mut self,
        job: JobId,
        answer: Result<Option<Box<Record>>, store::Error>,
    ) {
        let answer = self.ok(answer);
        if let Some(record) = &answer
            && self.in_doubt.remove(&job)
        {
            self.tell_late(record.as_deref());
        }
        let Some(record) = answer else {
            self.refetch.insert(job);
            return;
        };
        if let Some(number) = self.ended(&job, record.as_deref()) {
            self.drop_live(&job, number);
        }
        match record {
            None => self.withdraw(&job),
            Some(record) if record.current.is_some() => self.adopt_if_here(&record),
            Some(record) => self.enqueue(&record),
        }
    }

    /// The store was lost in the middle of an end, which was done all the same: nobody was told.
    fn tell_late(&mut self, record: Option<&Record>) {
        match record {
            Some(record) => {
                self.changed(record);
                if record.state.is_terminal() {
                    self.group_job_ended(record);
                }
            }
            None => self.hub.miss(),
        }
    }

    /// The attempt that is under way as far as we know, if it has ended. Of one that is still being
    /// written down, the record need not know.
    fn ended(&self, job: &JobId, record: Option<&Record>) -> Option<u32> {
        let live = self.jobs.live(job).filter(|live| live.is_written && !live.is_ending)?;
        let is_over = record.is_none_or(|record| {
            let newest = record.counts.attempts;
            newest > live.number || (newest == live.number && record.current.is_none())
        });
        is_over.then_some(live.number)
    }
}
