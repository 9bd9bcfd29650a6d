//! Two stores that are told the same answer the same, whatever they are told and however often one
//! of them is closed and opened again.

mod operation;
mod invariants;

use std::fmt::Debug;

use model::{JobId, Millis, Record};
use proptest::prelude::*;
use store::conformance::{Time, options};
use store::{Filter, LogPage, Memory, Options, Sqlite, Store};

use crate::place::Place;
use invariants::Watch;
use operation::{Operation, operation};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: n_cases(),
        max_shrink_iters: 2_000,
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions")
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn sqlite_answers_as_memory_does(operations in prop::collection::vec(operation(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(Twins::new().live(operations));
    }
}

fn n_cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(100)
}

struct Twins {
    time: Time,
    place: Place,
    memory: Memory,
    /// `None` only while it is being opened again.
    sqlite: Option<Sqlite>,
    watch: Watch,
}

impl Twins {
    fn new() -> Self {
        let (time, place) = (Time::new(), Place::quick());
        let memory = Memory::new(few(&time));
        let sqlite = Some(Sqlite::open(&place.file(), few(&time)).unwrap());
        Self { time, place, memory, sqlite, watch: Watch::default() }
    }

    async fn live(mut self, operations: Vec<Operation>) {
        for operation in operations {
            self.tell(&operation).await;
            self.compare().await;
        }
        self.reopen();
        self.compare().await;
        self.compare_the_rest().await;
    }

    async fn tell(&mut self, operation: &Operation) {
        match operation {
            Operation::Pass(length) => self.time.pass(*length),
            Operation::Reopen => self.reopen(),
            Operation::Tell(request) => {
                let sqlite = self.sqlite.as_ref().unwrap();
                let answers = (request.ask(&self.memory).await, request.ask(sqlite).await);
                same(&answers.0, &answers.1, operation);
            }
        }
    }

    fn reopen(&mut self) {
        self.sqlite = None;
        self.sqlite = Some(Sqlite::open(&self.place.file(), few(&self.time)).unwrap());
    }

    /// What is asked all the time.
    async fn compare(&mut self) {
        let sqlite = self.sqlite.as_ref().unwrap();
        let all = Filter { max: usize::MAX, ..Filter::default() };
        let jobs: Vec<Record> = self.memory.jobs(all.clone()).await.unwrap();
        same(&jobs, &sqlite.jobs(all).await.unwrap(), "all jobs");
        let look = self.memory.look(None, usize::MAX).await.unwrap();
        same(&look, &sqlite.look(None, usize::MAX).await.unwrap(), "look");
        let expired = self.memory.expired(99).await.unwrap();
        same(&expired, &sqlite.expired(99).await.unwrap(), "expired");
        assert!(look.iter().all(|record| !record.state.is_terminal()));
        self.watch.check(&jobs, &self.place.file());
    }

    /// What is asked now and then.
    async fn compare_the_rest(&self) {
        let (memory, sqlite) = (&self.memory, self.sqlite.as_ref().unwrap());
        let since = self.time.now() - Millis(200_000);
        same(&memory.usage(since).await.unwrap(), &sqlite.usage(since).await.unwrap(), "usage");
        same(&memory.runs(since, 9).await.unwrap(), &sqlite.runs(since, 9).await.unwrap(), "runs");
        let settings = (memory.settings().await.unwrap(), sqlite.settings().await.unwrap());
        same(&settings.0, &settings.1, "settings");
        let retry = model::Retry::DEFAULT;
        let notices = (memory.notices(retry, 99).await, sqlite.notices(retry, 99).await);
        same(&notices.0.unwrap(), &notices.1.unwrap(), "notices");
        for number in 0..60 {
            let id = JobId::number(number);
            let job = memory.job(id.clone()).await.unwrap();
            same(&job, &sqlite.job(id.clone()).await.unwrap(), "job");
            let pasts = memory.attempts(id.clone()).await.unwrap();
            same(&pasts, &sqlite.attempts(id.clone()).await.unwrap(), "attempts");
            let page = LogPage { job: id, attempt: None, after: None, max: 99 };
            let logs = memory.logs(page.clone()).await.unwrap();
            same(&logs, &sqlite.logs(page).await.unwrap(), "logs");
        }
    }
}

/// Limits that are met.
fn few(time: &Time) -> Options {
    Options { jobs_max: 14, tenant_jobs_max: 10, ..options(time) }
}

fn same<T: PartialEq + Debug>(memory: &T, sqlite: &T, what: impl Debug) {
    assert_eq!(memory, sqlite, "memory (left) and SQLite (right) differ about {what:?}");
}
