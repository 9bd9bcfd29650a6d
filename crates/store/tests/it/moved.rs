//! An import copies a file to a Postgres without a change.

use std::fmt::Write as _;
use std::path::Path;

use model::{Ending, JobId, Measured, Millis, Name, State, WorkerId};
use store::conformance::{Time, options};
use store::{
    Claim, Claimed, End, Filter, Idempotency, Limit, LogChunk, LogPage, Options, Postgres, Reach,
    Setting, SettingKind, Shared as _, Sqlite, Start, Store, Stream, Submission, Window,
};

use crate::place::Place;
use crate::postgres;
use crate::submit::{block_on, submission};

pub(crate) fn many(time: &Time) -> Options {
    Options { jobs_max: 100_000, tenant_jobs_max: 100_000, ..options(time) }
}

fn claim(job: &JobId, fence: u64) -> Claim {
    Claim {
        job: job.clone(),
        fence,
        worker: WorkerId::new("w"),
        pool: Name::new("p"),
        holds: Some(model::Ask::Any),
        why: "because".to_owned(),
        limits: Vec::new(),
    }
}

fn end(job: &JobId, ending: Ending) -> End {
    End {
        error: Some("zero \0 in it".to_owned()),
        result: Some(vec![0, 255]),
        exit_code: Some(3),
        measured: Measured { ram_peak_mb: Some(7), ..Measured::default() },
        fetched: Some((1, 2)),
        has_started: true,
        draw: 5,
        ..End::new(job.clone(), 1, WorkerId::new("w"), ending)
    }
}

/// A store with rows in every table.
pub(crate) fn fill(store: &Sqlite) {
    let key = Some(Idempotency { key: "key".to_owned(), body: [9; 32] });
    let mut first = Submission { idempotency: key, ..submission(12, 300) };
    first.jobs[3].after_indexes = vec![0, 2];
    first.jobs[4].on_hold = true;
    first.jobs[5].spec.not_before = Some(store.now() + Millis(3_600_000));
    first.jobs[6].spec.dedupe_key = Some("dedupe".to_owned());
    first.jobs[7].spec.labels = [("a".to_owned(), "é \"x\"".to_owned())].into();
    let jobs = block_on(store.submit(first)).unwrap().unwrap().jobs;
    let ids: Vec<JobId> = jobs.iter().map(|record| record.id.clone()).collect();
    block_on(store.join(WorkerId::new("w"), Millis(1_000))).unwrap();
    let claims = [0, 1, 2, 8, 9].map(|at| claim(&ids[at], jobs[at].fence)).to_vec();
    block_on(store.claim(claims)).unwrap();
    let start = Start { job: ids[1].clone(), attempt: 1, worker: WorkerId::new("w") };
    block_on(store.start(vec![start])).unwrap();
    let piece = LogChunk {
        job: ids[1].clone(),
        attempt: 1,
        stream: Stream::Err,
        offset: 0,
        at: store.now(),
        bytes: vec![1, 0, 2].into(),
    };
    block_on(store.log(vec![piece])).unwrap();
    let ends = [(0, Ending::Succeeded), (8, Ending::Transient), (9, Ending::Permanent)];
    block_on(store.complete(ends.map(|(at, ending)| end(&ids[at], ending)).to_vec())).unwrap();
    let setting = Setting {
        kind: SettingKind::Tenant,
        name: "t".to_owned(),
        document: Some("{\"weight\": 2}".to_owned()),
    };
    block_on(store.set(vec![setting])).unwrap();
    block_on(store.keep_minute(store.now(), "{\"r\": 1}".to_owned())).unwrap();
    block_on(store.submit(submission(5_000, 10))).unwrap().unwrap();
}

async fn all(store: &dyn Store) -> String {
    let everything = Filter { max: usize::MAX, ..Filter::default() };
    let mut said = format!("{:#?}", store.jobs(everything).await.unwrap());
    for number in 1..13 {
        let job = JobId::number(number);
        write!(said, "{:#?}", store.attempts(vec![job.clone()]).await.unwrap()).unwrap();
        let page = LogPage { job, attempt: None, after: None, max: 9 };
        write!(said, "{:#?}", store.logs(page).await.unwrap()).unwrap();
    }
    let since = store.now() - Millis(1_000_000);
    write!(said, "{:#?}", store.usage(since).await.unwrap()).unwrap();
    write!(said, "{:#?}", store.runs(since, 99).await.unwrap()).unwrap();
    let later = store.now() + Millis(60_000);
    write!(said, "{:#?}", store.minutes(since, later).await.unwrap()).unwrap();
    write!(said, "{:#?}", store.settings().await.unwrap()).unwrap();
    write!(said, "{:#?}", store.expired(99).await.unwrap()).unwrap();
    // Postgres text cannot hold a zero.
    said.replace("\\0", "\u{FFFD}")
}

#[test]
fn import_copies_everything_and_jobs_continue() {
    let (time, place) = (Time::new(), Place::quick());
    let file = Sqlite::open(&place.file(), many(&time)).unwrap();
    fill(&file);
    let (database, runtime) = (postgres::database(), postgres::runtime());
    let store = runtime.block_on(postgres::open(&database, many(&time)));
    runtime.block_on(async {
        let before = all(&file).await;
        for table in ["attempts", "finished", "jobs"] {
            interrupted(&store, &place.file(), table).await;
            // No scheduler starts on an incomplete import.
            let refused = Postgres::connect(database.url(), many(&time)).await.map(drop);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("half there") && refused.contains("store move"), "{refused}");
        }
        let again = Postgres::connect_to_import(database.url(), many(&time)).await;
        let store = again.unwrap_or_else(|error| panic!("{error}"));
        let mut told = 0;
        let n_jobs = store.import(&place.file(), |_, _, _| told += 1).await.unwrap();
        assert!(told > 0);
        assert_eq!(n_jobs, 5_012);
        assert_eq!(all(&store).await, before);
        let checked = store.check().await.unwrap();
        assert_eq!(checked.problems, Vec::<String>::new());
        assert_eq!(checked.unfinished + checked.finished, 5_012);
        // An import that is complete is not repeated, and the store is whole.
        let refused = store.import(&place.file(), |_, _, _| {}).await.unwrap_err().to_string();
        assert!(refused.contains("empty database"), "{refused}");
        assert_eq!(all(&store).await, before);
        Postgres::connect(database.url(), many(&time)).await.map(drop).unwrap();
        let ask = Window { stripe: (0, 1), jobs_max: 9_999, spare_max: 0, reach: Reach::All };
        assert_eq!(store.window(ask).await.unwrap().own.len(), 2_000);
        let next = store.submit(submission(1, 10)).await.unwrap().unwrap();
        assert!(next.jobs[0].id > JobId::number(5_012));
        let revived = store.revive(vec![JobId::number(10)]).await.unwrap();
        assert!(matches!(revived[..], [store::Revived::Done(_)]));
        assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn imported_attempts_count_under_limits() {
    let (time, place) = (Time::new(), Place::quick());
    let file = Sqlite::open(&place.file(), many(&time)).unwrap();
    let mut jobs = submission(2, 10);
    jobs.jobs[0].spec.cost = model::Fixed::thousandths(2_500);
    let jobs = block_on(file.submit(jobs)).unwrap().unwrap().jobs;
    let (kind, tenant) = (&jobs[0].spec.kind, &jobs[0].spec.tenant);
    let named = Some(model::Ask::Named(Name::new("R")));
    let first = Claim { holds: named, ..claim(&jobs[0].id, jobs[0].fence) };
    block_on(file.claim(vec![first])).unwrap();
    let (database, runtime) = (postgres::database(), postgres::runtime());
    let store = runtime.block_on(postgres::open(&database, many(&time)));
    runtime.block_on(async {
        store.import(&place.file(), |_, _, _| {}).await.unwrap();
        assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
        let ask = Window { stripe: (0, 1), jobs_max: 9, spare_max: 0, reach: Reach::All };
        let fence = store.window(ask).await.unwrap().own[0].fence;
        let under = |parts: &[&str], max| Claim {
            limits: vec![Limit { name: parts.join("\u{1f}"), amount: 1, max, spent: None }],
            ..claim(&jobs[1].id, fence)
        };
        let (kind, tenant) = (kind.to_string(), tenant.to_string());
        let limits: [(&[&str], i64); 6] = [
            (&["resource", "R"], 1),
            (&["jobs", &tenant], 1),
            (&["quota", &tenant, "p"], 1),
            (&["type", &kind], 1),
            (&["budget", &tenant], 2_500),
            (&["budgets"], 2_500),
        ];
        for (parts, max) in limits {
            let answer = store.claim(vec![under(parts, max)]).await.unwrap();
            assert!(matches!(&answer[..], [Claimed::Refused(_)]), "{parts:?}: {answer:?}");
        }
        store.complete(vec![end(&jobs[0].id, Ending::Permanent)]).await.unwrap();
        let answer = store.claim(vec![under(&["resource", "R"], 1)]).await.unwrap();
        assert!(matches!(&answer[..], [Claimed::Won(_)]), "{answer:?}");
        assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn import_of_a_file_used_meanwhile_is_refused() {
    let (time, place) = (Time::new(), Place::quick());
    let file = Sqlite::open(&place.file(), many(&time)).unwrap();
    fill(&file);
    let (database, runtime) = (postgres::database(), postgres::runtime());
    let store = runtime.block_on(postgres::open(&database, many(&time)));
    runtime.block_on(async {
        interrupted(&store, &place.file(), "jobs").await;
        let jobs = file.look(None, 99).await.unwrap();
        let waiting = jobs.iter().find(|job| job.state == State::Queued).unwrap();
        file.amend(vec![waiting.id.clone()], store::Amend::Priority(7)).await.unwrap();
        let refused = store.import(&place.file(), |_, _, _| {}).await.unwrap_err().to_string();
        assert!(refused.contains("was used after the move began"), "{refused}");
    });
}

/// Begins an import, and drops it in the middle of a table.
pub(crate) async fn interrupted(store: &Postgres, file: &Path, table: &str) {
    let stop = tokio::sync::Notify::new();
    let moving = store.import(file, |at, _, _| {
        if at == table {
            stop.notify_one();
        }
    });
    tokio::select! {
        biased;
        () = stop.notified() => {}
        moved = moving => panic!("it came to its end: {moved:?}"),
    }
}
