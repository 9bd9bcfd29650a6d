//! A scheduler's connection to the store.

use std::sync::Arc;

use futures_util::FutureExt as _;
use model::{JobId, Millis, Record, Retry, TenantId, Timestamp, WorkerId};
use store::{
    Amend, Amended, Cancelled, Claim, Claimed, End, Ended, Error, Filter, Idempotency, Lead,
    LogChunk, LogPage, Minute, Note, NotePage, Noted, Notice, Old, Past, Refusal, Reply, Report,
    Revived, Run, Session, Setting, Shared, Start, Store, Submission, Submitted, Tally, Usage,
};
use tokio::sync::oneshot;

use crate::broken::{Broken, unguarded, without_token};
use crate::wire::{Answer, Fate, Life, Order, Wire};

/// The store, as one life of a scheduler sees it.
pub(crate) struct Line {
    wire: Arc<Wire>,
    pub(crate) from: Life,
    /// The error of this scheduler's estimate of the store's time.
    skew: Millis,
}

impl Line {
    pub(crate) fn new(wire: Arc<Wire>, from: Life, skew: Millis) -> Self {
        Self { wire, from, skew }
    }

    pub(crate) fn ask<T: Send + 'static>(
        &self,
        (what, order): (&'static str, Order),
        work: impl FnOnce(&Wire) -> T + Send + 'static,
    ) -> Reply<'_, T> {
        let unavailable = move || Error::Unavailable { doing: what, cause: "a fault".to_owned() };
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let work = Box::new(move |wire: &Wire, fate| {
                let outcome = match fate {
                    Fate::Done => Ok(work(wire)),
                    Fate::Failed => Err(unavailable()),
                };
                let answer: Answer = Box::new(move || drop(answer.send(outcome)));
                answer
            });
            self.wire.put(self.from, what, order, work);
            answered.await.unwrap_or_else(|_| Err(unavailable()))
        })
    }

    fn tell(wire: &Wire, from: Life, words: impl FnOnce() -> String) {
        wire.tell(|| format!("store    s{from}: {}", words()));
    }
}

/// The answer of a store in memory, which does not wait.
pub(crate) fn at_once<T>(reply: Reply<'_, T>) -> T {
    let answer = reply.now_or_never().expect("a store in memory does not wait");
    answer.expect("a store in memory does not fail")
}

/// Methods that only pass on their arguments.
macro_rules! ask {
    ($order:ident: $($method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($name: $type),*) -> Reply<'_, $answer> {
            self.ask((stringify!($method), Order::$order), move |wire| {
                at_once(wire.memory.$method($($name),*))
            })
        })*
    };
}

impl Store for Line {
    fn now(&self) -> Timestamp {
        self.wire.memory.now() + self.skew
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.wire.is_shared.then_some(self)
    }

    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId> {
        self.wire.memory.number(tenant, n_jobs)
    }

    fn submit(&self, submission: Submission) -> Reply<'_, Result<Submitted, Refusal>> {
        let from = self.from;
        self.ask(("submit", Order::Write), move |wire| {
            let key = submission.idempotency.as_ref().map(|Idempotency { key, .. }| key.clone());
            let mut submission = submission;
            if wire.is_broken(Broken::Key) {
                submission.idempotency = None;
            }
            let outcome = at_once(wire.memory.submit(submission));
            Self::tell(wire, from, || {
                let jobs = outcome.as_ref().map(|submitted| ids(&submitted.jobs));
                format!("submit {} gives {jobs:?}", key.unwrap_or_default())
            });
            outcome
        })
    }

    fn look(&self, after: Option<JobId>, max: usize) -> Reply<'_, Vec<Record>> {
        self.ask(("look", Order::Read), move |wire| {
            let mut records = at_once(wire.memory.look(after, max));
            if wire.is_broken(Broken::Recovery) {
                records.retain(|record| record.current.is_none());
            }
            records
        })
    }

    fn claim(&self, claims: Vec<Claim>) -> Reply<'_, Vec<Claimed>> {
        let from = self.from;
        self.ask(("claim", Order::Write), move |wire| {
            let mut answers = wire.shares.claim(wire, claims.clone());
            if wire.is_broken(Broken::Guard) {
                answers = unguarded(&claims, answers);
            }
            for (claim, answer) in claims.iter().zip(&answers) {
                Self::tell(wire, from, || format!("claim {}: {}", claimed(claim), won(answer)));
            }
            answers
        })
    }

    fn start(&self, starts: Vec<Start>) -> Reply<'_, Vec<bool>> {
        let from = self.from;
        self.ask(("start", Order::Write), move |wire| {
            let answers = at_once(wire.memory.start(starts.clone()));
            for (start, is_current) in starts.iter().zip(&answers) {
                let Start { job, attempt, worker } = start;
                let is = if *is_current { "runs" } else { "is stale" };
                Self::tell(wire, from, || format!("{job}/{attempt} on {worker} {is}"));
            }
            answers
        })
    }

    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>> {
        let from = self.from;
        self.ask(("complete", Order::Write), move |wire| {
            let asked = ends.clone();
            let ends = if wire.is_broken(Broken::Token) {
                without_token(&wire.memory, ends)
            } else {
                ends
            };
            let answers = at_once(wire.memory.complete(ends));
            for (end, answer) in asked.iter().zip(&answers) {
                Self::tell(wire, from, || ended(end, answer));
            }
            answers
        })
    }

    fn expired(&self, max: usize) -> Reply<'_, Vec<Record>> {
        let from = self.from;
        self.ask(("expired", Order::Read), move |wire| {
            if wire.is_broken(Broken::Expiry) {
                return Vec::new();
            }
            let records = at_once(wire.memory.expired(max));
            if !records.is_empty() {
                Self::tell(wire, from, || format!("leases over: jobs {}", ids(&records)));
            }
            records
        })
    }

    ask! { Write:
        progress(reports: Vec<Report>) -> Vec<bool>;
        log(chunks: Vec<LogChunk>) -> Vec<bool>;
        cancel(jobs: Vec<JobId>) -> Vec<Cancelled>;
        amend(jobs: Vec<JobId>, amend: Amend) -> Vec<Amended>;
        revive(jobs: Vec<JobId>) -> Vec<Revived>;
        give_up(jobs: Vec<JobId>) -> Vec<Cancelled>;
        join(worker: WorkerId, lease: Millis) -> Session;
        renew(sessions: Vec<Session>, lease: Millis) -> Vec<bool>;
        renew_all(lease: Millis) -> ();
        leave(session: Session) -> bool;
        set(settings: Vec<Setting>) -> ();
        replace(was: Option<String>, setting: Setting) -> bool;
        lead(name: String, holder: String, length: Millis) -> Option<Lead>;
        keep(name: String, token: u64, document: String) -> bool;
        note(notes: Vec<Note>) -> ();
        keep_minute(at: Timestamp, document: String) -> ();
        notices(retry: Retry, max: usize) -> Vec<Notice>;
        told(notices: Vec<u64>) -> ();
        forget(old: Old) -> usize;
    }

    ask! { Read:
        job(id: JobId) -> Option<Record>;
        jobs(filter: Filter) -> Vec<Record>;
        tally() -> Vec<Tally>;
        attempts(jobs: Vec<JobId>) -> Vec<Vec<Past>>;
        logs(page: LogPage) -> Vec<LogChunk>;
        settings() -> Vec<Setting>;
        leads(prefix: String) -> Vec<Lead>;
        notes(page: NotePage) -> Vec<Noted>;
        usage(since: Timestamp) -> Vec<Usage>;
        runs(since: Timestamp, max: usize) -> Vec<Run>;
        minutes(from: Timestamp, before: Timestamp) -> Vec<Minute>;
    }
}

fn ids(records: &[Record]) -> String {
    let ids: Vec<String> = records.iter().map(|record| record.id.to_string()).collect();
    ids.join(" ")
}

fn claimed(claim: &Claim) -> String {
    format!("{} at fence {} for {}", claim.job, claim.fence, claim.worker)
}

fn won(answer: &Claimed) -> String {
    match answer {
        Claimed::Won(record) => format!("won, attempt {}", record.counts.attempts),
        Claimed::Lost(Some(record)) => {
            format!("lost, it is {} at fence {}", record.state.name(), record.fence)
        }
        Claimed::Lost(None) => "lost, it is gone".to_owned(),
        Claimed::Refused(limit) => format!("refused: {limit}"),
    }
}

fn ended(end: &End, answer: &Ended) -> String {
    let End { job, attempt, worker, ending, .. } = end;
    let became = match answer {
        Ended::Accepted { record, .. } => format!("counts, it is {}", record.state.name()),
        Ended::Repeated => "was known".to_owned(),
        Ended::Stale => "is stale".to_owned(),
    };
    format!("{job}/{attempt} on {worker} ended as {}: {became}", ending.name())
}
