//! Ends in one statement leave the same rows as ends in a transaction.

use model::{Ending, Fixed};

use super::*;
use crate::Ended;

/// All rows of a tenant: its jobs, their runs, and its charges.
async fn left(store: &Postgres, tenant: &str) -> Vec<String> {
    let connection = store.desk.connection().await.unwrap();
    let sql = "SELECT (to_jsonb(f) - 'id' - 'tenant' - 'queue')::text FROM finished f \
        WHERE tenant = $1 UNION ALL \
        SELECT (to_jsonb(r) - 'id' - 'tenant')::text FROM runs r WHERE tenant = $1 UNION ALL \
        SELECT to_jsonb(p)::text FROM (SELECT worker, claimed, started, ended, ending, why \
        FROM pasts WHERE job IN (SELECT id FROM finished WHERE tenant = $1)) p UNION ALL \
        SELECT concat(sum(cost), ' ', sum(completed)) FROM usage WHERE tenant = $1 ORDER BY 1";
    let rows = connection.query(sql, &[&tenant]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Claimed jobs of a tenant, and their ends.
async fn claimed(store: &Postgres, tenant: &str, n_jobs: usize) -> Vec<crate::End> {
    claimed_of(store, tenant, n_jobs, None).await
}

/// The same, with a group or without one.
async fn claimed_of(
    store: &Postgres,
    tenant: &str,
    n_jobs: usize,
    group: Option<&str>,
) -> Vec<crate::End> {
    let mut jobs = submission(tenant, "kind", n_jobs);
    for job in &mut jobs.jobs {
        job.spec.history_key = "k".to_owned();
        job.spec.group = group.map(str::to_owned);
    }
    let jobs = store.submit(jobs).await.unwrap().unwrap().jobs;
    let claims = jobs.iter().map(|record| claim(&record.id, "w")).collect();
    store.window(all(0, 1)).await.unwrap();
    store.claim(claims).await.unwrap();
    let mut ends: Vec<crate::End> = jobs.iter().map(|record| end(&record.id, "w")).collect();
    for (place, end) in ends.iter_mut().enumerate() {
        end.has_started = place % 2 == 0;
        end.exit_code = (place % 3 == 0).then_some(0);
        end.cost = (place % 5 == 0).then(|| Fixed::whole(7));
        end.fetched = (place % 7 == 0).then_some((3, 4_000));
    }
    ends
}

#[tokio::test]
async fn plain_ends_leave_the_rows_of_other_ends() {
    for group in [None, Some("g")] {
        leave_the_same(group).await;
    }
}

async fn leave_the_same(group: Option<&str>) {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let plain = claimed_of(&one, "a", 40, group).await;
    let other = claimed_of(&one, "b", 40, group).await;
    time.pass(Millis(1_234));
    let ended = one.complete(plain).await.unwrap();
    // A scheduler that did not claim the jobs does not know them, so it needs a transaction.
    let others = two.complete(other).await.unwrap();
    assert!(ended.iter().chain(&others).all(|end| matches!(end, Ended::Accepted { .. })));
    let (a, b) = (left(&one, "a").await, left(&one, "b").await);
    // Jobs, runs, attempts, and the sums.
    assert_eq!(a.len(), 40 + one.desk.options.runs_max + 40 + 1);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a, b);
    }
    for answer in &ended {
        let Ended::Accepted { record, .. } = answer else { unreachable!() };
        assert_eq!(two.job(record.id.clone()).await.unwrap().as_ref(), Some(&**record));
    }
}

#[tokio::test]
async fn plain_end_of_a_job_that_a_peer_changed_is_not_lost() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let mut ends = claimed(&one, "a", 4).await;
    let job = |place: usize| ends[place].job.clone();
    two.cancel(vec![job(0)]).await.unwrap();
    let start = crate::Start { job: job(1), attempt: 1, worker: WorkerId::new("w") };
    two.start(vec![start]).await.unwrap();
    two.complete(vec![end(&job(2), "w")]).await.unwrap();
    ends.push(ends[3].clone());
    let ended = one.complete(ends.clone()).await.unwrap();
    let states: Vec<Option<&str>> = ended
        .iter()
        .map(|end| match end {
            Ended::Accepted { record, .. } => Some(record.state.name()),
            Ended::Repeated | Ended::Stale => None,
        })
        .collect();
    let expected = [Some("cancelled"), Some("succeeded"), None, Some("succeeded"), None];
    assert_eq!(states, expected, "the same end twice counts once");
    assert_eq!((&ended[2], &ended[4]), (&Ended::Repeated, &Ended::Repeated));
    assert_eq!(one.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn failed_measured_or_stale_ends_are_not_plain() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let ends = claimed(&store, "a", 5).await;
    let has_none = |ends: &[crate::End]| {
        let plains = plain::Plains::of(&store.desk, ends, store.desk.now());
        !(0..ends.len()).any(|at| plains.has(at))
    };
    let mut failed = ends[0].clone();
    failed.ending = Ending::Transient;
    let mut said = ends[1].clone();
    said.result = Some(vec![1]);
    let mut measured = ends[2].clone();
    measured.measured.cpu_ms = Some(1);
    let mut older = ends[3].clone();
    older.attempt = 9;
    assert!(has_none(&[failed, said, measured, older]));
    assert!(!has_none(&ends[4..]) && has_none(&ends[4..]), "it is taken once");
    assert!(!has_none(&ends[..1]), "an end that was not taken keeps its record");
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// A reader that sees a final job sees all its output.
#[tokio::test]
async fn end_waits_for_earlier_output() {
    let (database, time) = (database(), Time::new());
    let (store, other) = (open(&database, &time).await, open(&database, &time).await);
    let ends = claimed(&store, "a", 1).await;
    let job = ends[0].job.clone();
    let (attempt, stream, at) = (1, crate::Stream::Out, time.now());
    let bytes = b"last words"[..].into();
    let words = crate::LogChunk { job: job.clone(), attempt, stream, offset: 0, at, bytes };
    let holder = other.desk.connection().await.unwrap();
    let watcher = other.desk.connection().await.unwrap();
    holder.batch_execute("BEGIN; LOCK TABLE logs IN SHARE MODE").await.unwrap();
    let done = std::cell::RefCell::new(Vec::new());
    let keep = async {
        store.log(vec![words]).await.unwrap();
        done.borrow_mut().push("output");
    };
    let finish = async {
        store.complete(ends).await.unwrap();
        done.borrow_mut().push("end");
    };
    let let_go = async {
        while watcher.query_one(WAITING, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Time for an end to overtake the output.
        for _ in 0..20 {
            let record = other.job(job.clone()).await.unwrap().unwrap();
            assert!(!record.state.is_terminal());
        }
        holder.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(keep, finish, let_go);
    assert_eq!(*done.borrow(), ["output", "end"]);
}
