//! How statements are answered: by an index each, however many jobs wait.

use deadpool_postgres::Object;

use super::*;

/// How a statement is answered, whatever its values are.
async fn plan(connection: &Object, sql: &str, values: &str) -> String {
    connection.batch_execute("DEALLOCATE ALL").await.unwrap();
    connection.batch_execute(&format!("PREPARE asked AS {sql}")).await.unwrap();
    let explain = format!("EXPLAIN EXECUTE asked{values}");
    let rows = connection.query(explain.as_str(), &[]).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    plan.join("\n")
}

/// With many jobs that wait, before and after the database counted them.
async fn with_many(check: impl AsyncFn(&Object)) {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    for tenant in ["a", "b", "c"] {
        submit(&store, submission(tenant, "kind", 3_000)).await;
    }
    let connection = store.desk.connection().await.unwrap();
    for analyze in ["", "ANALYZE"] {
        connection.batch_execute(analyze).await.unwrap();
        check(&connection).await;
    }
}

#[tokio::test]
async fn work_is_found_by_an_index_alone_however_long_the_queues() {
    with_many(async |connection| {
        for sql in window::STATEMENTS {
            let has_list = sql.contains("$5");
            let lists = "(1, 0, 5, ARRAY[1], ARRAY[0], ARRAY[0])";
            let values = if has_list { lists } else { "(1, 0, 5)" };
            let plan = plan(connection, sql, values).await;
            assert!(plan.contains("jobs_window"), "{plan}");
            // What was seen before is not passed by one by one.
            let condition = plan.lines().find(|line| line.contains("Index Cond")).unwrap_or("");
            assert!(condition.contains("ROW(place, id) >"), "{plan}");
            assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_silent_workers_had_is_found_without_a_walk_over_all_jobs() {
    with_many(async |connection| {
        for (sql, values) in [(lease::EXPIRED, "(NULL, 5)"), (lease::RENEW_ALL, "(5, NULL)")] {
            let plan = plan(connection, sql, values).await;
            assert!(plan.contains("jobs_worker") && !plan.contains("jobs_pkey"), "{plan}");
            assert!(!plan.contains("Seq Scan on jobs"), "{plan}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_worker_says_of_an_attempt_is_written_without_a_walk_over_its_others() {
    with_many(async |connection| {
        let (ids, texts) = ("ARRAY[1]", "ARRAY['w']");
        for (sql, values) in [
            (start::START, format!("({ids}, {ids}, {texts}, 5)")),
            (start::PROGRESS, format!("({ids}, {ids}, {texts}, {ids}, {texts}, {texts})")),
        ] {
            let plan = plan(connection, sql, &values).await;
            assert!(plan.contains("jobs_pkey") && !plan.contains("jobs_worker"), "{plan}");
        }
    })
    .await;
}
