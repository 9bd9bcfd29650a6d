//! Two stores get the same random requests and must give the same answers. One of them is closed
//! and opened again in between.

mod operation;
mod invariants;

use std::fmt::Debug;

use cluster::Database;
use model::{JobId, Millis, Record};
use proptest::prelude::*;
use store::conformance::{Time, options};
use store::{Filter, LogPage, Memory, Options, Postgres, Sqlite, Store};

use crate::place::Place;
use crate::postgres;
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
        let time = Time::new();
        let place = Place::quick();
        let store = Some(Sqlite::open(&place.file(), few(&time)).unwrap());
        let other = Other::Sqlite { place, store };
        runtime.block_on(Twins::new(time, other).live(operations));
    }
}

#[test]
fn postgres_answers_as_memory_does() {
    let (database, runtime) = (postgres::database(), postgres::runtime());
    let config = ProptestConfig {
        // Every query needs a round trip, so there are fewer cases.
        cases: n_cases().div_ceil(4),
        max_shrink_iters: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let lives = prop::collection::vec(operation(), 1..60);
    let lived = runner.run(&lives, |operations| {
        let time = Time::new();
        let store = runtime.block_on(postgres::open(&database, few(&time)));
        postgres::wipe(&database);
        let other = Other::Postgres { database: &database, store: Box::new(store) };
        runtime.block_on(Twins::new(time, other).live(operations));
        Ok(())
    });
    lived.unwrap_or_else(|error| panic!("{error}"));
}

fn n_cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(100)
}

/// The store that is compared with the one in memory.
enum Other<'d> {
    /// `None` only while it is closed and opened again.
    Sqlite {
        place: Place,
        store: Option<Sqlite>,
    },
    Postgres {
        database: &'d Database,
        store: Box<Postgres>,
    },
}

impl Other<'_> {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Sqlite { store, .. } => store.as_ref().unwrap(),
            Self::Postgres { store, .. } => &**store,
        }
    }

    async fn reopen(&mut self, time: &Time) {
        match self {
            Self::Sqlite { place, store } => {
                *store = None;
                *store = Some(Sqlite::open(&place.file(), few(time)).unwrap());
            }
            Self::Postgres { database, store } => {
                **store = postgres::open(database, few(time)).await;
            }
        }
    }
}

struct Twins<'d> {
    time: Time,
    memory: Memory,
    other: Other<'d>,
    watch: Watch,
}

impl<'d> Twins<'d> {
    fn new(time: Time, other: Other<'d>) -> Self {
        let memory = Memory::new(few(&time));
        Self { time, memory, other, watch: Watch::default() }
    }

    async fn live(mut self, operations: Vec<Operation>) {
        for operation in operations {
            self.tell(&operation).await;
            self.compare().await;
        }
        self.other.reopen(&self.time).await;
        self.compare().await;
        self.compare_the_rest().await;
    }

    async fn tell(&mut self, operation: &Operation) {
        match operation {
            Operation::Pass(length) => self.time.pass(*length),
            Operation::Reopen => self.other.reopen(&self.time).await,
            Operation::Tell(request) => {
                let other = self.other.store();
                let answers = (request.ask(&self.memory).await, request.ask(other).await);
                same(&answers.0, &answers.1, operation);
            }
        }
    }

    /// Compares the results of the queries after each step.
    async fn compare(&mut self) {
        let other = self.other.store();
        let all = Filter { max: usize::MAX, ..Filter::default() };
        let jobs: Vec<Record> = self.memory.jobs(all.clone()).await.unwrap();
        same(&jobs, &other.jobs(all).await.unwrap(), "all jobs");
        let look = self.memory.look(None, usize::MAX).await.unwrap();
        same(&look, &other.look(None, usize::MAX).await.unwrap(), "look");
        let expired = self.memory.expired(99).await.unwrap();
        same(&expired, &other.expired(99).await.unwrap(), "expired");
        assert!(look.iter().all(|record| !record.state.is_terminal()));
        if let Other::Sqlite { place, .. } = &self.other {
            self.watch.check(&jobs, &place.file());
        }
    }

    /// Compares the results of the expensive queries after some steps.
    async fn compare_the_rest(&self) {
        let (memory, other) = (&self.memory, self.other.store());
        let since = self.time.now() - Millis(200_000);
        same(&memory.usage(since).await.unwrap(), &other.usage(since).await.unwrap(), "usage");
        same(&memory.runs(since, 9).await.unwrap(), &other.runs(since, 9).await.unwrap(), "runs");
        let settings = (memory.settings().await.unwrap(), other.settings().await.unwrap());
        same(&settings.0, &settings.1, "settings");
        let retry = model::Retry::DEFAULT;
        let notices = (memory.notices(retry, 99).await, other.notices(retry, 99).await);
        same(&notices.0.unwrap(), &notices.1.unwrap(), "notices");
        // In any order, and some twice.
        let ids: Vec<JobId> = (0..80).map(|n| JobId::number(n * 37 % 60)).collect();
        let pasts = (memory.attempts(ids.clone()).await, other.attempts(ids).await);
        same(&pasts.0.unwrap(), &pasts.1.unwrap(), "attempts");
        for number in 0..60 {
            let id = JobId::number(number);
            let job = memory.job(id.clone()).await.unwrap();
            same(&job, &other.job(id.clone()).await.unwrap(), "job");
            let page = LogPage { job: id, attempt: None, after: None, max: 99 };
            let logs = memory.logs(page.clone()).await.unwrap();
            same(&logs, &other.logs(page).await.unwrap(), "logs");
        }
    }
}

/// Limits that the cases reach.
fn few(time: &Time) -> Options {
    Options { jobs_max: 14, tenant_jobs_max: 10, ..options(time) }
}

fn same<T: PartialEq + Debug>(memory: &T, other: &T, what: impl Debug) {
    assert_eq!(memory, other, "memory (left) and the other (right) differ about {what:?}");
}
