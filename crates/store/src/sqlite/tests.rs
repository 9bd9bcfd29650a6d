//! Cases for the writer thread: which calls share a commit, and which calls an error affects.

use std::sync::mpsc;

use model::{Ending, Name, Spec, TenantId, WorkerId};
use rusqlite::ffi;

use super::*;
use crate::conformance::{Time, options};
use crate::{Amend, Claim, Claimed, End, Ended, NewJob, Repeat, Store as _, Submission};

fn store() -> Sqlite {
    Sqlite::in_memory(options(&Time::new())).unwrap()
}

fn submission() -> Submission {
    let tenant = TenantId::new("tenant");
    let spec = Spec::new(tenant.clone(), Name::new("kind"));
    let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
    Submission::new(tenant, vec![job])
}

/// Makes calls while the thread is busy, so that they share one commit.
fn together<T>(store: &Sqlite, calls: Vec<Reply<'_, T>>) -> Vec<Result<T, Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (let_go, wait) = mpsc::channel::<()>();
        let busy = store.write(("be busy", 1), move |_| {
            wait.recv().ok();
            Ok(())
        });
        let mut futures: Vec<_> = calls.into_iter().map(Some).collect();
        let mut answers: Vec<Option<Result<T, Error>>> = futures.iter().map(|_| None).collect();
        let mut busy = Some(busy);
        let mut let_go = Some(let_go);
        std::future::poll_fn(|cx| {
            if let Some(future) = &mut busy
                && future.as_mut().poll(cx).is_ready()
            {
                busy = None;
            }
            for (future, answer) in futures.iter_mut().zip(&mut answers) {
                if let Some(running) = future
                    && let std::task::Poll::Ready(ready) = running.as_mut().poll(cx)
                {
                    *answer = Some(ready);
                    *future = None;
                }
            }
            // All of them are in the queue now.
            let_go = None;
            if answers.iter().all(Option::is_some) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        drop(let_go);
        answers.into_iter().flatten().collect()
    })
}

fn look(store: &Sqlite) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.look(None, 99)).unwrap().len()
}

#[test]
fn concurrent_calls_share_a_commit() {
    let store = store();
    let (sender, commits) = mpsc::channel::<()>();
    let call = store.write(("count commits", 1), move |desk| {
        desk.connection.commit_hook(Some(move || sender.send(()).is_err()))
    });
    together(&store, vec![call])[0].clone().unwrap();
    let calls = (0..30).map(|_| store.submit(submission())).collect();
    let answers = together(&store, calls);
    assert!(answers.iter().all(Result::is_ok));
    // The commit of the hook, the commit of `busy`, and one for all calls.
    let n_commits = commits.try_iter().count();
    assert!(n_commits <= 3, "{n_commits} commits for 30 calls");
    assert_eq!(look(&store), 30);
}

#[test]
fn connection_sets_durability_pragmas() {
    let folder = tempfile::tempdir().unwrap();
    let connection = open::file(&folder.path().join("maitre.db"), Timestamp(0)).unwrap();
    let pragma = |name: &str| -> String {
        let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    // The value 1 is `NORMAL`.
    assert_eq!([pragma("synchronous"), pragma("journal_mode")], ["1", "wal"]);
    assert_eq!([pragma("foreign_keys"), pragma("temp_store")], ["1", "2"]);
}

/// A store in a file whose commits are durable after `sync`.
fn durable_by(
    folder: &Path,
    sync: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
) -> Sqlite {
    let (path, time) = (folder.join("maitre.db"), Time::new());
    let connection = open::file(&path, Timestamp(0)).unwrap();
    let (disk, waits) = Disk::by(sync, Broken::default()).unwrap();
    let mut store = Sqlite::begin(connection, options(&time), disk.clone()).unwrap();
    store.writers.push(waits);
    store.add_reader(open::reader(&path).unwrap(), disk).unwrap();
    store
}

#[test]
fn no_answer_precedes_durability() {
    let folder = tempfile::tempdir().unwrap();
    let (asked_for, is_asked) = mpsc::channel();
    let (let_go, may_go) = mpsc::channel::<()>();
    let may_go = Mutex::new(may_go);
    let store = durable_by(folder.path(), move || {
        asked_for.send(()).ok();
        may_go.lock().unwrap().recv().ok();
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut submit = store.submit(submission());
        let mut read = store.look(None, 99);
        // The commit is made, a reader has read its rows, and the reader thread is free.
        assert!(poll(&mut submit).is_none());
        is_asked.recv().unwrap();
        assert!(poll(&mut read).is_none());
        let (has_read, is_read) = mpsc::channel();
        let mut next = store.read(Lane::One, "look on", move |_| Ok(has_read.send(()).is_ok()));
        assert!(poll(&mut next).is_none());
        is_read.recv().unwrap();
        assert!(poll(&mut submit).is_none() && poll(&mut read).is_none());
        drop(let_go);
        assert!(submit.await.unwrap().is_ok());
        assert_eq!(read.await.unwrap().len(), 1);
        assert!(next.await.unwrap());
    });
}

/// Polls a call, and returns its answer if there is one.
fn poll<T>(call: &mut Reply<'_, T>) -> Option<Result<T, Error>> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match call.as_mut().poll(&mut context) {
        std::task::Poll::Ready(answer) => Some(answer),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn failed_log_sync_is_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let (asked_for, is_asked) = mpsc::channel();
    let store = durable_by(folder.path(), move || {
        asked_for.send(()).ok();
        Err(std::io::Error::from_raw_os_error(5))
    });
    let answers = together(&store, vec![store.submit(submission()), store.submit(submission())]);
    assert!(answers.iter().all(|one| matches!(one, Err(Error::Broken { .. }))), "{answers:?}");
    let again = together(&store, vec![store.submit(submission())]);
    assert!(matches!(again[..], [Err(Error::Broken { .. })]), "{again:?}");
    let read = together(&store, vec![store.settings()]);
    assert!(matches!(read[..], [Err(Error::Broken { .. })]));
    assert_eq!(is_asked.try_iter().count(), 1);
}

#[test]
fn failed_call_leaves_nothing_and_affects_no_other_call() {
    let store = store();
    let submit = || -> Reply<'_, ()> {
        let call = store.submit(submission());
        Box::pin(async move { call.await.map(|submitted| drop(submitted.unwrap())) })
    };
    let fail = store.write(("fail", 1), |desk| {
        submit::submit(desk, submission())?.unwrap();
        desk.connection.execute("INSERT INTO nothing VALUES (1)", [])?;
        Ok(())
    });
    let answers = together(&store, vec![submit(), fail, submit()]);
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let told = answers[1].as_ref().unwrap_err().to_string();
    assert!(matches!(answers[1], Err(Error::Unavailable { doing: "fail", .. })), "{told}");
    assert_eq!(look(&store), 2);
    // The counts beside the tables are correct again: the tenant's limit still holds.
    let calls = (0..29).map(|_| store.submit(submission())).collect();
    let n_taken = together(&store, calls).iter().filter(|one| matches!(one, Ok(Ok(_)))).count();
    assert_eq!((n_taken, look(&store)), (28, 30));
}

/// A claim that was rolled back and a change that was not have the same fence.
#[test]
fn rollback_clears_the_cache() {
    let store = store();
    let submitted = together(&store, vec![store.submit(submission())]).remove(0).unwrap().unwrap();
    let job = submitted.jobs[0].id.clone();
    let worker = WorkerId::new("nobody");
    let claim = Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new("default"),
        limits: Vec::new(),
        holds: None,
        why: String::new(),
    };
    let undone = store.write(("fail", 1), |desk| {
        assert!(matches!(claim::claim(desk, vec![claim])?[..], [Claimed::Won(_)]));
        desk.connection.execute("INSERT INTO nothing VALUES (1)", [])?;
        Ok(())
    });
    assert!(together(&store, vec![undone])[0].is_err());
    let change = store.write(("amend", 1), {
        let job = job.clone();
        move |desk| amend::amend(desk, &[job], Amend::Priority(7)).map(drop)
    });
    assert!(together(&store, vec![change])[0].is_ok());
    let end = End::new(job.clone(), 1, worker, Ending::Succeeded);
    let ended = together(&store, vec![store.complete(vec![end])]).remove(0).unwrap();
    assert!(matches!(ended[..], [Ended::Stale]), "{ended:?}");
    assert_eq!(look(&store), 1);
}

#[test]
fn deleted_job_leaves_no_row() {
    let store = store();
    let submitted = together(&store, vec![store.submit(submission())]).remove(0).unwrap().unwrap();
    let (job, worker) = (submitted.jobs[0].id.clone(), WorkerId::new("w"));
    let claim = Claim {
        job: job.clone(),
        fence: 1,
        worker: worker.clone(),
        pool: Name::new("p"),
        limits: Vec::new(),
        holds: None,
        why: String::new(),
    };
    together(&store, vec![store.claim(vec![claim])]).remove(0).unwrap();
    let end = End { forget: true, ..End::new(job, 1, worker, Ending::Succeeded) };
    together(&store, vec![store.complete(vec![end])]).remove(0).unwrap();
    let count = store.write(("count", 1), |desk| {
        let sql = "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM specs) \
            + (SELECT count(*) FROM finished) + (SELECT count(*) FROM attempts)";
        desk.connection.query_row(sql, [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(together(&store, vec![count]).remove(0).unwrap(), 0);
}

#[test]
fn failed_commit_fails_all_its_calls_and_leaves_nothing() {
    let store = store();
    let submit = || -> Reply<'_, ()> {
        let call = store.submit(submission());
        Box::pin(async move { call.await.map(|submitted| drop(submitted.unwrap())) })
    };
    let poison = store.write(("poison", 1), |desk| {
        desk.connection.execute_batch("PRAGMA defer_foreign_keys = ON")?;
        desk.connection.execute("INSERT INTO keyed VALUES (98, 99)", [])?;
        Ok(())
    });
    let answers = together(&store, vec![submit(), poison, submit()]);
    assert!(answers.iter().all(|one| matches!(one, Err(Error::Unavailable { .. }))), "{answers:?}");
    assert_eq!(look(&store), 0);
    assert!(together(&store, vec![submit()])[0].is_ok());
    assert_eq!(look(&store), 1);
}

#[test]
fn failed_disk_breaks_the_store_for_good() {
    let store = store();
    let submit = || -> Reply<'_, ()> {
        let call = store.submit(submission());
        Box::pin(async move { call.await.map(|submitted| drop(submitted.unwrap())) })
    };
    let fail = store.write(("sync", 1), |_| -> rusqlite::Result<()> {
        Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None))
    });
    let answers = together(&store, vec![submit(), fail, submit()]);
    assert!(answers.iter().all(|one| matches!(one, Err(Error::Broken { .. }))), "{answers:?}");
    assert!(matches!(together(&store, vec![submit()])[0], Err(Error::Broken { .. })));
    let read = together(&store, vec![store.settings()]);
    assert!(matches!(read[0], Err(Error::Broken { .. })));
}
