//! Ahead of the store: a job that will be taken in, as far as anybody can tell, stands in the world
//! while it is being written down. If it is placed in the same turn, its worker has it at once, and
//! it is taken in and claimed in one step.
//!
//! **Invariant:** nobody but its worker hears of such a job before it is durable, and its token
//! never comes again, also if the job is never written down. What the store refuses, or knows under
//! other numbers, leaves the world again and is called back from its worker.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use model::{JobId, Record, Timestamp};
use proto::v1;
use store::{Claim, Claimed, NewJob, Refusal, Submission, Submitted, claim_record, first_record};
use tokio::sync::oneshot;

use crate::queue::Seen;
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

/// A submission that the world knows of, and the store does not yet.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// What the store will make of its jobs, if they have their numbers.
    records: Vec<Record>,
    taking: Taking,
}

/// A submission that the store was given.
#[derive(Debug)]
pub(crate) struct Written {
    /// Those of its jobs that the world knows.
    jobs: Vec<JobId>,
    /// Those of them that workers have already, in the order of their claims.
    early: Vec<JobId>,
    answer: oneshot::Sender<Outcome>,
}

impl Scheduler {
    /// Takes in jobs; they are written down at the end of the turn.
    pub(crate) fn take_ahead(&mut self, taking: Taking) {
        let Taking { mut submission, answer } = taking;
        if !self.is_paused() {
            submission.first = self.store.number(&submission.tenant, submission.jobs.len());
        }
        let records = records(&submission, self.store.now());
        for record in &records {
            self.enqueue(record);
        }
        let taking = Taking { submission, answer };
        self.outgoing.submissions.push(Ahead { records, taking });
    }

    /// Hands submissions to the store, before all other claims of the same turn.
    pub(crate) fn flush_submissions(&mut self) {
        let mut claims = self.claims_ahead();
        for Ahead { records, taking } in std::mem::take(&mut self.outgoing.submissions) {
            let Taking { mut submission, answer } = taking;
            let jobs = records.iter().map(|record| record.id.clone()).collect();
            if submission.idempotency.is_none() {
                submission.claims = self.start_ahead(records, &mut claims);
            }
            let early = submission.claims.iter().map(|claim| claim.job.clone()).collect();
            let written = Written { jobs, early, answer };
            self.call(|store| {
                async move { Answer::Submitted(written, store.submit(submission).await) }.boxed()
            });
        }
        self.outgoing.claims.extend(claims.into_values());
    }

    /// Takes out the claims of jobs that came in this turn: no other has so high a number.
    fn claims_ahead(&mut self) -> BTreeMap<JobId, Claim> {
        let firsts = self.outgoing.submissions.iter().filter_map(|ahead| ahead.records.first());
        let Some(first) = firsts.map(|record| record.id.clone()).min() else {
            return BTreeMap::new();
        };
        let claims = self.outgoing.claims.extract_if(.., |claim| claim.job >= first);
        claims.map(|claim| (claim.job.clone(), claim)).collect()
    }

    /// Lets workers have those of the jobs that were placed, and that nothing limits: if one is
    /// never written down, nobody knows that its limit is used while it runs. Answers their claims.
    fn start_ahead(
        &mut self,
        records: Vec<Record>,
        claims: &mut BTreeMap<JobId, Claim>,
    ) -> Vec<Claim> {
        let now = self.store.now();
        let mut early = Vec::new();
        for mut record in records {
            let Some(claim) = claims.get(&record.id) else { continue };
            let (seen, holds) = (Seen::of(&record), claim.holds.as_ref());
            let is_limited = !self.limits_of(&seen, &claim.pool, holds).is_empty();
            if is_limited || holds.is_some() || !claim_record(&mut record, claim, now) {
                continue;
            }
            early.extend(claims.remove(&record.id));
            self.give(&record);
            if let Some(live) = self.jobs.live_mut(&record.id) {
                live.is_written = false;
            }
        }
        early
    }

    /// The store has them, or said why not.
    pub(crate) fn submitted(&mut self, written: Written, outcome: Outcome) {
        let Written { jobs: ahead, early, answer } = written;
        match &outcome {
            Ok(Ok(Submitted { jobs, changed, claimed, .. })) => {
                let is_there = |job: &&JobId| jobs.iter().any(|record| record.id == **job);
                ahead.iter().filter(|job| !is_there(job)).for_each(|job| self.withdraw(job));
                for record in jobs.iter().chain(changed) {
                    self.changed(record);
                    // One whose claim was refused before it was there is told like any other.
                    if !self.jobs.knows(&record.id) {
                        self.told(record);
                    }
                }
                early.iter().zip(claimed).for_each(|(job, claimed)| self.given(job, claimed));
            }
            Ok(Err(_)) => {
                self.call_back_all(&early);
                for job in &ahead {
                    self.withdraw(job);
                }
            }
            // Nobody knows whether they were written down.
            Err(_) => {
                self.call_back_all(&early);
                self.refetch.extend(ahead);
            }
        }
        // Whoever does not wait any more does not want to know.
        let _ = answer.send(outcome);
    }

    /// The store was asked for a job that a worker has already.
    fn given(&mut self, job: &JobId, claimed: &Claimed) {
        if let Claimed::Won(record) = claimed {
            self.counters.add("claims_won", 1);
            self.changed(record);
            if let Some(live) = self.jobs.live_mut(job) {
                live.is_written = true;
            }
        } else {
            self.counters.add("claims_lost", 1);
            self.call_back(job);
            self.refetch.insert(job.clone());
        }
    }

    fn call_back_all(&mut self, early: &[JobId]) {
        for job in early {
            self.call_back(job);
        }
    }

    /// A worker has a job that the store does not know: it is stopped, and nothing that it says
    /// about it counts.
    fn call_back(&mut self, job: &JobId) {
        let Some(live) = self.jobs.live(job).filter(|live| !live.is_written) else { return };
        let number = live.number;
        self.stop(job, v1::StopReason::Stale);
        self.drop_live(job, number);
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
