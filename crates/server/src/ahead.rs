//! Ahead of the store: a job that will be taken in, as far as anybody can tell, stands in the world
//! while it is being written down. Its claim follows it to the store, and both are durable at once.
//!
//! **Invariant:** nobody hears of such a job before it is durable. What the store refuses, or knows
//! under other numbers, leaves the world again, and its claim is lost.

use futures_util::FutureExt as _;
use model::{JobId, Record, Timestamp};
use store::{NewJob, Refusal, Submission, Submitted, first_record};
use tokio::sync::oneshot;

use crate::scheduler::{Answer, Scheduler};

/// Larger submissions wait for the store anyway, and have no use for this.
const JOBS_MAX: usize = 64;

/// What the store says of a submission.
pub(crate) type Outcome = Result<Result<Submitted, Refusal>, store::Error>;

/// A submission on its way to the store, and who wants to know what became of it.
#[derive(Debug)]
pub(crate) struct Taking {
    pub(crate) submission: Submission,
    pub(crate) answer: oneshot::Sender<Outcome>,
}

/// Whether anybody can tell what becomes of it: jobs that wait for nothing and stand for no other.
pub(crate) fn is_plain(submission: &Submission) -> bool {
    let is_plain = |job: &NewJob| {
        let NewJob { spec, after_indexes, on_hold, .. } = job;
        !on_hold && after_indexes.is_empty() && spec.after.is_empty() && spec.dedupe_key.is_none()
    };
    submission.jobs.len() <= JOBS_MAX && submission.jobs.iter().all(is_plain)
}

impl Scheduler {
    /// Takes in jobs and has them written down.
    pub(crate) fn take_ahead(&mut self, taking: Taking) {
        let Taking { mut submission, answer } = taking;
        if !self.is_paused() {
            submission.first = self.store.number(submission.jobs.len());
        }
        let ahead = records(&submission, self.store.now());
        let jobs: Vec<JobId> = ahead.iter().map(|record| record.id.clone()).collect();
        for record in &ahead {
            self.enqueue(record);
        }
        self.outgoing.submissions.push((jobs, Taking { submission, answer }));
    }

    /// Hands submissions to the store, just before the claims of the same turn.
    pub(crate) fn flush_submissions(&mut self) {
        for (jobs, taking) in std::mem::take(&mut self.outgoing.submissions) {
            let Taking { submission, answer } = taking;
            self.call(|store| {
                async move { Answer::Submitted(jobs, answer, store.submit(submission).await) }
                    .boxed()
            });
        }
    }

    /// The store has them, or said why not.
    pub(crate) fn submitted(
        &mut self,
        ahead: Vec<JobId>,
        answer: oneshot::Sender<Outcome>,
        outcome: Outcome,
    ) {
        match &outcome {
            Ok(Ok(Submitted { jobs, changed, .. })) => {
                let is_there = |job: &&JobId| jobs.iter().any(|record| record.id == **job);
                ahead.iter().filter(|job| !is_there(job)).for_each(|job| self.withdraw(job));
                for record in jobs.iter().chain(changed) {
                    self.changed(record);
                    if !ahead.contains(&record.id) {
                        self.told(record);
                    }
                }
            }
            Ok(Err(_)) => ahead.iter().for_each(|job| self.withdraw(job)),
            // Nobody knows whether they were written down.
            Err(_) => self.refetch.extend(ahead),
        }
        // Whoever does not wait any more does not want to know.
        let _ = answer.send(outcome);
    }
}

/// What the store will make of the jobs, if they have their numbers.
fn records(submission: &Submission, now: Timestamp) -> Vec<Record> {
    let Some(first) = submission.first.as_ref().and_then(JobId::as_number) else {
        return Vec::new();
    };
    let jobs = submission.jobs.iter().zip(first..);
    let record = |(job, number): (&NewJob, u64)| {
        let mut spec = job.spec.clone();
        spec.tenant = submission.tenant.clone();
        first_record(JobId::number(number), spec, 0, now)
    };
    jobs.map(record).collect()
}
