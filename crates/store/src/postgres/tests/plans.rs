//! Statements use an index each, with any number of waiting jobs.

use deadpool_postgres::Object;

use super::*;

/// The plan of a statement for any values.
async fn plan(connection: &Object, sql: &str, values: &str) -> String {
    connection.batch_execute("DEALLOCATE ALL").await.unwrap();
    connection.batch_execute(&format!("PREPARE asked AS {sql}")).await.unwrap();
    let explain = format!("EXPLAIN EXECUTE asked{values}");
    let rows = connection.query(explain.as_str(), &[]).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    plan.join("\n")
}

/// With many waiting jobs, before and after `ANALYZE`.
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
async fn queue_scans_use_only_indexes_for_any_queue_length() {
    with_many(async |connection| {
        for sql in window::STATEMENTS {
            let has_list = sql.contains("$5");
            let lists = "(1, 0, 5, ARRAY[1], ARRAY[0], ARRAY[0])";
            let values = if has_list { lists } else { "(1, 0, 5)" };
            let plan = plan(connection, sql, values).await;
            assert!(plan.contains("jobs_window"), "{plan}");
            // The scan does not skip known rows one by one.
            let condition = plan.lines().find(|line| line.contains("Index Cond")).unwrap_or("");
            assert!(condition.contains("ROW(place, id) >"), "{plan}");
            assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
        }
    })
    .await;
}

#[tokio::test]
async fn attempts_of_silent_workers_are_found_by_index() {
    with_many(async |connection| {
        let by_worker = [
            (lease::EXPIRED, "(NULL, 5)"),
            (lease::RENEW_ALL, "(5, NULL)"),
            (meet::HELD, "('w')"),
            (meet::UNSTARTED, "(5, 5)"),
        ];
        for (sql, values) in by_worker {
            let plan = plan(connection, sql, values).await;
            assert!(plan.contains("grants_worker") && !plan.contains("Seq Scan"), "{plan}");
            assert!(!plan.contains("on jobs") || plan.contains("Index Cond: ((id >= "), "{plan}");
        }
        let plan = plan(connection, meet::CALLED_OFF, "(ARRAY['w'])").await;
        assert!(plan.contains("jobs_cancelling") && !plan.contains("Seq Scan"), "{plan}");
    })
    .await;
}

#[tokio::test]
async fn every_row_that_is_changed_is_found_by_its_id() {
    let (ids, texts) = ("ARRAY[1]", "ARRAY['w']");
    let five = format!("{texts}, {texts}, {texts}, {texts}, {texts}");
    let ends =
        format!("({ids}, {ids}, {ids}, {ids}, {ids}, {ids}, {texts}, {ids}, {ids}, 5, 5, 5)");
    let statements = [
        (claim::CLAIM_KNOWN, format!("({ids}, {ids}, {five}, 5, {texts}, 5, {ids})")),
        (start::START, format!("({ids}, {ids}, {texts}, 5)")),
        (start::PROGRESS, format!("({ids}, {ids}, {texts}, {ids}, {texts}, {texts})")),
        (write::SUCCEED, ends.clone()),
        (write::SUCCEED_AT_ONCE, ends.clone()),
        (write::SUCCEED_AND_GO, ends),
        (write::GO, format!("({ids}, {ids})")),
    ];
    with_many(async |connection| {
        // The last case has a table that was empty at the last `ANALYZE`.
        for change in ["SELECT", "DELETE FROM jobs", "VACUUM jobs"] {
            connection.batch_execute(change).await.unwrap();
            for (sql, values) in &statements {
                let plan = plan(connection, sql, values).await;
                let is_by_id = "Index Cond: ((id >= u.id) AND (id <= u.id))";
                assert!(plan.contains("jobs_pkey") && plan.contains(is_by_id), "{plan}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn finished_jobs_are_found_by_id() {
    let statements = [complete::PASTS, read::ATTEMPTS, read::THESE, draft::FINISHED, known::STATES];
    with_many(async |connection| {
        for sql in statements {
            let plan = plan(connection, sql, "(ARRAY[1])").await;
            let is_by_id = "Index Cond: ((id >= u.id) AND (id <= u.id))";
            assert!(plan.contains("finished_pkey") && plan.contains(is_by_id), "{plan}");
            let is_past = sql.contains("FROM attempts");
            assert!(!is_past || plan.contains("attempts_pkey"), "{plan}");
            assert!(!plan.contains("Seq Scan"), "{plan}");
        }
    })
    .await;
}

#[tokio::test]
async fn limits_are_found_by_their_names_one_by_one() {
    with_many(async |connection| {
        let make =
            "INSERT INTO holdings (name, held) VALUES ('a', 1), ('b', 2) ON CONFLICT DO NOTHING";
        for change in [make, "VACUUM ANALYZE holdings"] {
            connection.batch_execute(change).await.unwrap();
            let plan = plan(connection, limits::CHANGE, "(ARRAY['a'], ARRAY[1])").await;
            let is_by_name = "Index Cond: ((name >= u.name) AND (name <= u.name))";
            assert!(plan.contains("holdings_pkey") && plan.contains(is_by_name), "{plan}");
            assert!(!plan.contains("Sort"), "{plan}");
        }
    })
    .await;
}

#[tokio::test]
async fn usage_of_a_tenant_is_the_sum_of_its_minutes() {
    with_many(async |connection| {
        let plan = plan(connection, spent::SPENT_BY, "(5, 'a')").await;
        let condition = plan.lines().find(|line| line.contains("Index Cond")).unwrap_or("");
        assert!(plan.contains("usage_tenant") && condition.contains("tenant"), "{plan}");
    })
    .await;
}

#[tokio::test]
async fn walk_finds_old_jobs_by_an_index_of_ids() {
    with_many(async |connection| {
        let statements = [(old::OLD, "(5, 5, 5, 5)"), (forget::JOBS, "(5, ARRAY[1])")];
        for (sql, values) in statements {
            let plan = plan(connection, sql, values).await;
            assert!(plan.contains("finished_pkey") && !plan.contains("Seq Scan"), "{plan}");
        }
    })
    .await;
}
