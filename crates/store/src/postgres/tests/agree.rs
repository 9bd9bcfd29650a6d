//! The check finds each inconsistency in both directions, and names it.

use super::*;

/// The tables that the cases damage. A copy of each is kept beside it.
const HURT: [&str; 7] = ["jobs", "finished", "waits", "sessions", "grants", "queues", "holdings"];

/// In this store job 1 runs under a limit, job 2 is queued, job 3 waits for job 2, job 4 is queued,
/// and job 5 has succeeded. Each case has the damage, and all problems that the check then finds.
const CASES: &[(&str, &[&str])] = &[
    ("UPDATE finished SET id = 4", &["1 jobs that are both finished and not"]),
    ("UPDATE jobs SET queue = queue + 1 WHERE id = 4", &["1 jobs whose queue is not listed"]),
    ("UPDATE jobs SET n_blockers = 2 WHERE id = 3", &[BLOCKERS]),
    ("INSERT INTO waits VALUES (1, 4); UPDATE jobs SET n_dependents = 1 WHERE id = 1", &[BLOCKERS]),
    ("UPDATE jobs SET n_dependents = 2 WHERE id = 2", &[DEPENDENTS]),
    ("UPDATE jobs SET n_dependents = 0 WHERE id = 2", &[DEPENDENTS]),
    ("INSERT INTO waits VALUES (1, 7); UPDATE jobs SET n_dependents = 1 WHERE id = 1", &[WAITS]),
    ("INSERT INTO waits VALUES (0, 3); UPDATE jobs SET n_blockers = 2 WHERE id = 3", &[WAITS]),
    ("DELETE FROM sessions", &["1 attempts of workers that have no session"]),
    ("DELETE FROM grants", &[GRANTS]),
    ("UPDATE grants SET jobs = '{4}' WHERE worker = 'w'", &[GRANTS]),
    ("UPDATE grants SET worker = 'v'", &[GRANTS]),
    ("UPDATE jobs SET state = 'lost' WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET fence = 0 WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET n_blockers = -1 WHERE id = 4", &[BLOCKERS, COLUMNS]),
    ("UPDATE jobs SET n_dependents = -1 WHERE id = 4", &[DEPENDENTS, COLUMNS]),
    ("DELETE FROM waits; UPDATE jobs SET n_blockers = 0, n_dependents = 0", &[COLUMNS]),
    ("UPDATE jobs SET ready = 1 WHERE id = 3", &[COLUMNS]),
    ("UPDATE jobs SET state = 'queued', started = NULL WHERE id = 1", &[COLUMNS, PLACES]),
    ("UPDATE jobs SET claimed = NULL WHERE id = 1", &[COLUMNS]),
    ("UPDATE jobs SET why = NULL WHERE id = 1", &[COLUMNS]),
    ("UPDATE jobs SET started = NULL WHERE id = 1", &[COLUMNS]),
    ("UPDATE jobs SET fraction = 1 WHERE id = 1", &[COLUMNS]),
    ("UPDATE jobs SET holds = 'any' WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET fraction = 1, note = '' WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET cancelling = true WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET charges = '[]' WHERE id = 4", &[COLUMNS]),
    ("UPDATE jobs SET place = 1 WHERE id = 3", &[COLUMNS]),
    ("UPDATE jobs SET due = 1 WHERE id = 1", &[COLUMNS]),
    ("UPDATE finished SET state = 'running', cause = 'expired'", &[FINISHED]),
    ("UPDATE finished SET fence = 0", &[FINISHED]),
    ("UPDATE finished SET cause = 'expired'", &[FINISHED]),
    ("UPDATE finished SET state = 'failed'", &[FINISHED]),
    ("UPDATE jobs SET place = NULL WHERE id = 4", &[PLACES]),
    ("UPDATE holdings SET held = 3 WHERE name = 'one'", &[LIMITS]),
    ("DELETE FROM holdings WHERE name = 'one'", &[LIMITS]),
    ("INSERT INTO holdings VALUES ('another', 1)", &[LIMITS]),
    ("UPDATE jobs SET charges = NULL WHERE id = 1", &[LIMITS]),
];

const BLOCKERS: &str = "1 jobs that count those they wait for wrongly";
const DEPENDENTS: &str = "1 jobs that count those that wait for them wrongly";
const WAITS: &str = "1 waits for a job that is not there";
const GRANTS: &str = "1 attempts that are not among what their workers were given";
const COLUMNS: &str = "1 jobs of which one column belies another";
const FINISHED: &str = "1 finished jobs of which one column belies another";
const PLACES: &str = "1 jobs that wait for a worker and stand nowhere";
const LIMITS: &str = "1 limits of which another amount is in use than attempts use";

/// The store of the cases.
async fn fill(store: &Postgres) {
    let mut jobs = submission("a", "kind", 5);
    jobs.jobs[2].after_indexes = vec![1];
    submit(store, jobs).await;
    let limit = crate::Limit { name: "one".to_owned(), amount: 2, max: 9, spent: None };
    let claims =
        vec![limited(&JobId::number(1), "w", limit.clone()), claim(&JobId::number(5), "w")];
    store.claim(claims).await.unwrap();
    let start = crate::Start { job: JobId::number(1), attempt: 1, worker: WorkerId::new("w") };
    store.start(vec![start]).await.unwrap();
    store.complete(vec![end(&JobId::number(5), "w")]).await.unwrap();
    let connection = store.desk.connection().await.unwrap();
    connection.batch_execute("INSERT INTO holdings VALUES ('idle', 0)").await.unwrap();
}

#[tokio::test]
async fn check_names_each_inconsistency_and_no_other() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    fill(&store).await;
    let connection = store.desk.connection().await.unwrap();
    connection.batch_execute("CREATE SCHEMA kept").await.unwrap();
    for table in HURT {
        let keep = format!("CREATE TABLE kept.{table} AS TABLE {table}");
        connection.batch_execute(&keep).await.unwrap();
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    let mut never_found: Vec<&str> = check::rules().map(|(what, _)| *what).collect();
    for (harm, expected) in CASES {
        connection.batch_execute(harm).await.unwrap();
        let mut problems = store.check().await.unwrap().problems;
        problems.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(problems, expected, "{harm}");
        never_found.retain(|what| !problems.iter().any(|found| found.ends_with(what)));
        for table in HURT {
            let mend = format!("TRUNCATE {table}; INSERT INTO {table} SELECT * FROM kept.{table}");
            connection.batch_execute(&mend).await.unwrap();
        }
    }
    assert_eq!(never_found, Vec::<&str>::new(), "a rule that no case breaks");
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

/// All sums are of one snapshot, so concurrent commits do not make them disagree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_finds_nothing_during_concurrent_commits() {
    let (database, time) = (database(), Time::new());
    let (one, two) = (open(&database, &time).await, open(&database, &time).await);
    let limit = crate::Limit { name: "one".to_owned(), amount: 1, max: 900, spent: None };
    let work = tokio::spawn(async move {
        for _ in 0..30 {
            let mut jobs = submission("a", "kind", 4);
            jobs.jobs[1].after_indexes = vec![0];
            let jobs = one.submit(jobs).await.unwrap().unwrap().jobs;
            let first = &jobs[0].id;
            one.claim(vec![limited(first, "w", limit.clone())]).await.unwrap();
            one.complete(vec![end(first, "w")]).await.unwrap();
        }
    });
    let mut n_looks = 0;
    while !work.is_finished() || n_looks == 0 {
        assert_eq!(two.check().await.unwrap().problems, Vec::<String>::new());
        n_looks += 1;
    }
    work.await.unwrap();
}
