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
        match answer {
            None => drop(self.refetch.insert(job)),
            Some(None) => self.withdraw(&job),
            Some(Some(record)) if self.is_over(&record) => {
                self.drop_live(&job, record.counts.attempts);
                self.enqueue(&record);
            }
            Some(Some(record)) if record.current.is_some() => self.adopt_if_here(&record),
            Some(Some(record)) => self.enqueue(&record),
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

    /// Whether an attempt that is under way as far as we know has ended.
    fn is_over(&self, record: &Record) -> bool {
        let live = self.jobs.live(&record.id).filter(|live| !live.is_ending);
        record.current.is_none() && live.is_some_and(|live| live.number == record.counts.attempts)
    }
}
