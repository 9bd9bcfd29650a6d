//! A store that fails, or answers late, when a test says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::{JobId, Millis, Record, Retry, TenantId, Timestamp, WorkerId};
use store::{
    Amend, Amended, Cancelled, Claim, Claimed, End, Ended, Error, Filter, Lead, LogChunk, LogPage,
    Memory, Note, NotePage, Noted, Notice, Past, Refusal, Reply, Report, Revived, Run, Session,
    Setting, Start, Store, Submission, Submitted, Tally, Usage,
};
use tokio::sync::Semaphore;

/// A store in memory whose methods can be made to fail by name.
pub(crate) struct Faulty {
    kept: Arc<Memory>,
    failing: Mutex<BTreeMap<&'static str, (usize, Error)>>,
    /// The method that panics.
    panicking: Mutex<Option<&'static str>>,
    /// Methods whose answers wait, though what was asked is done.
    held: Mutex<BTreeMap<&'static str, Arc<Semaphore>>>,
    /// How many ends came with each call.
    pub(crate) n_ends: Mutex<Vec<usize>>,
    /// How many leases were renewed by each call.
    pub(crate) n_renewals: Mutex<Vec<usize>>,
}

impl Faulty {
    pub(crate) fn new(kept: Memory) -> Self {
        Self::over(Arc::new(kept))
    }

    /// The same store, for another scheduler: it fails, or answers late, for each on its own.
    pub(crate) fn again(&self) -> Self {
        Self::over(Arc::clone(&self.kept))
    }

    fn over(kept: Arc<Memory>) -> Self {
        Self {
            kept,
            failing: Mutex::default(),
            panicking: Mutex::default(),
            held: Mutex::default(),
            n_ends: Mutex::default(),
            n_renewals: Mutex::default(),
        }
    }

    /// The next `n` calls of a method change nothing and fail.
    pub(crate) fn fail(&self, method: &'static str, n: usize, error: Error) {
        self.failing.lock().expect("no test panics with it").insert(method, (n, error));
    }

    /// Calls of a method panic from now on.
    pub(crate) fn panic_in(&self, method: &'static str) {
        *self.panicking.lock().expect("no test panics with it") = Some(method);
    }

    /// All is well again.
    pub(crate) fn heal(&self) {
        self.failing.lock().expect("no test panics with it").clear();
    }

    /// Answers of a method wait until they are let go.
    pub(crate) fn hold(&self, method: &'static str) {
        self.held
            .lock()
            .expect("no test panics with it")
            .insert(method, Arc::new(Semaphore::new(0)));
    }

    /// Whether an answer of this method is held.
    pub(crate) fn has_held(&self, method: &'static str) -> bool {
        let held = self.held.lock().expect("no test panics with it");
        held.get(method).is_some_and(|held| Arc::strong_count(held) > 1)
    }

    pub(crate) fn let_go(&self, method: &'static str) {
        if let Some(held) = self.held.lock().expect("no test panics with it").remove(method) {
            held.add_permits(1_000);
        }
    }

    fn fault(&self, method: &'static str) -> Result<(), Error> {
        let panicking = *self.panicking.lock().expect("no test panics with it");
        assert!(panicking != Some(method), "a test lets `{method}` panic");
        let mut failing = self.failing.lock().expect("no test panics with it");
        let Some((n, error)) = failing.get_mut(method).filter(|(n, _)| *n > 0) else {
            return Ok(());
        };
        *n -= 1;
        Err(error.clone())
    }

    async fn answer(&self, method: &'static str) {
        let held = self.held.lock().expect("no test panics with it").get(method).map(Arc::clone);
        if let Some(held) = held {
            held.acquire().await.expect("it is never closed").forget();
        }
    }
}

/// Methods that ask the real store, unless they are to fail.
macro_rules! pass_on {
    ($($method:ident($($name:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($name: $type),*) -> Reply<'_, $answer> {
            Box::pin(async move {
                self.fault(stringify!($method))?;
                let answer = self.kept.$method($($name),*).await;
                self.answer(stringify!($method)).await;
                answer
            })
        })*
    };
}

impl Store for Faulty {
    fn now(&self) -> Timestamp {
        self.kept.now()
    }

    fn number(&self, tenant: &TenantId, n_jobs: usize) -> Option<JobId> {
        self.kept.number(tenant, n_jobs)
    }

    fn complete(&self, ends: Vec<End>) -> Reply<'_, Vec<Ended>> {
        self.n_ends.lock().expect("no test panics with it").push(ends.len());
        Box::pin(async move {
            self.fault("complete")?;
            self.kept.complete(ends).await
        })
    }

    fn renew(&self, sessions: Vec<Session>, lease: Millis) -> Reply<'_, Vec<bool>> {
        self.n_renewals.lock().expect("no test panics with it").push(sessions.len());
        Box::pin(async move {
            self.fault("renew")?;
            let answer = self.kept.renew(sessions, lease).await;
            self.answer("renew").await;
            answer
        })
    }

    pass_on! {
        submit(submission: Submission) -> Result<Submitted, Refusal>;
        look(after: Option<JobId>, max: usize) -> Vec<Record>;
        claim(claims: Vec<Claim>) -> Vec<Claimed>;
        start(starts: Vec<Start>) -> Vec<bool>;
        progress(reports: Vec<Report>) -> Vec<bool>;
        log(chunks: Vec<LogChunk>) -> Vec<bool>;
        cancel(jobs: Vec<JobId>) -> Vec<Cancelled>;
        amend(jobs: Vec<JobId>, amend: Amend) -> Vec<Amended>;
        revive(jobs: Vec<JobId>) -> Vec<Revived>;
        give_up(jobs: Vec<JobId>) -> Vec<Cancelled>;
        join(worker: WorkerId, lease: Millis) -> Session;
        renew_all(lease: Millis) -> ();
        leave(session: Session) -> bool;
        expired(max: usize) -> Vec<Record>;
        job(id: JobId) -> Option<Record>;
        jobs(filter: Filter) -> Vec<Record>;
        tally() -> Vec<Tally>;
        attempts(jobs: Vec<JobId>) -> Vec<Vec<Past>>;
        logs(page: LogPage) -> Vec<LogChunk>;
        set(settings: Vec<Setting>) -> ();
        replace(was: Option<String>, setting: Setting) -> bool;
        settings() -> Vec<Setting>;
        usage(since: Timestamp) -> Vec<Usage>;
        runs(since: Timestamp, max: usize) -> Vec<Run>;
        lead(name: String, holder: String, length: Millis) -> Option<Lead>;
        keep(name: String, token: u64, document: String) -> bool;
        leads(prefix: String) -> Vec<Lead>;
        note(notes: Vec<Note>) -> ();
        notes(page: NotePage) -> Vec<Noted>;
        keep_minute(at: Timestamp, document: String) -> ();
        minutes(from: Timestamp, before: Timestamp) -> Vec<store::Minute>;
        notices(retry: Retry, max: usize) -> Vec<Notice>;
        told(notices: Vec<u64>) -> ();
        forget(old: store::Old) -> usize;
    }
}
