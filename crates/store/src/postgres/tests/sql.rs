//! Clients that submit jobs and read results with SQL in their own transactions.

use model::{Millis, Name, Spec, TenantId};

use super::{all, database, ids, open, submission, submit};
use crate::conformance::Time;
use crate::{Amend, Reach, Shared as _, Store as _, Window};

#[tokio::test]
async fn job_is_submitted_in_a_transaction_of_its_client() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let mut connection = store.desk.connection().await.unwrap();
    let sql = "SELECT maitre.submit(tenant => 'shop', type => 'invoice', payload => 'x', \
        priority => 2, needs => '{\"os\": [\"linux\", \"bsd\"]}', labels => '{\"a\": \"1\"}', \
        dedupe_key => 'k', attempts_max => 5, cost => 2.5, run_timeout => '1 min', \
        group_name => 'g', slots => 2, pool => 'p', on_demand => true, hint => 'h')";
    let transaction = connection.transaction().await.unwrap();
    transaction.query_one(sql, &[]).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(store.look(None, 9).await.unwrap(), []);
    let id: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
    let again: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(id, again);
    let record = store.job(crate::number::id(id)).await.unwrap().unwrap();
    let spec = Spec {
        payload: b"x".to_vec(),
        priority: 2,
        needs: [(Name::new("os"), vec![Name::new("linux"), Name::new("bsd")])].into(),
        labels: [("a".to_owned(), "1".to_owned())].into(),
        dedupe_key: Some("k".to_owned()),
        retry: model::Retry { attempts_max: 5, ..model::Retry::DEFAULT },
        cost: model::Fixed::thousandths(2_500),
        run_timeout: Some(Millis(60_000)),
        group: Some("g".to_owned()),
        slots: 2,
        pool: Some(Name::new("p")),
        on_demand: true,
        hint: Some(Name::new("h")),
        ..Spec::new(TenantId::new("shop"), Name::new("invoice"))
    };
    assert_eq!((&*record.spec, record.fence, record.priority), (&spec, 1, 2));
    assert_eq!(ids(&store.window(all(0, 1)).await.unwrap().own), [id.unsigned_abs()]);
    let plain: i64 = connection
        .query_one("SELECT maitre.submit('shop', 'plain', not_before => now() + '10 years')", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(ids(&store.window(all(0, 1)).await.unwrap().own), [id.unsigned_abs()]);
    store.cancel(vec![crate::number::id(plain)]).await.unwrap();
    let row = "SELECT id, state, type FROM maitre.completions";
    let row = connection.query_one(row, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (plain, "cancelled"));
}

/// The function computes a queue in its own way, and places as schedulers do.
#[tokio::test]
async fn job_submitted_by_sql_is_announced_when_it_waits_again() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let connection = store.desk.connection().await.unwrap();
    let sql = "SELECT maitre.submit('shop', 'invoice', priority => 40)";
    let id: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
    let mut same = submission("shop", "invoice", 1);
    same.jobs[0].spec.priority = 40;
    submit(&store, same).await;
    let rows = connection.query("SELECT ready - place FROM jobs", &[]).await.unwrap();
    let ahead: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(ahead, [16 * 64_000; 2]);
    let by_sql = vec![crate::number::id(id)];
    assert_eq!(store.window(all(0, 1)).await.unwrap().own.len(), 2);
    let news = Window { reach: Reach::News, ..all(0, 1) };
    store.window(news).await.unwrap();
    store.amend(by_sql.clone(), Amend::Hold).await.unwrap();
    store.amend(by_sql, Amend::Release).await.unwrap();
    assert_eq!(ids(&store.window(news).await.unwrap().own), [id.unsigned_abs()]);
}

#[tokio::test]
async fn invalid_sql_submission_names_its_argument() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let connection = store.desk.connection().await.unwrap();
    for (arguments, refusal) in [
        ("'', 'k'", "`tenant` is missing"),
        ("'t', E'a\\nb'", "`type` has control characters in it"),
        ("'t', repeat('x', 257)", "`type` has 257 bytes of at most 256"),
        ("'t', 'k', slots => 0", "`slots` is 0, which is not between 1 and 100000"),
        (
            "'t', 'k', attempts_max => NULL",
            "`attempts_max` is <NULL>, which is not between 1 and 100",
        ),
        ("'t', 'k', needs => '[]'", "`needs` is not an object such as {\"os\": [\"linux\"]}"),
        ("'t', 'k', needs => '{\"a\": 1}'", "`needs` has a value that is not a list of texts"),
        ("'t', 'k', needs => '{\"a\": [1]}'", "`needs` has a value that is not a list of texts"),
        (
            "'t', 'k', labels => '{\"a\": 1}'",
            "`labels` is not an object of texts such as {\"team\": \"red\"}",
        ),
        (
            "'t', 'k', labels => jsonb_build_object('a', repeat('x', 257))",
            "`labels` has 257 bytes of at most 256",
        ),
        (
            "'t', 'k', run_timeout => '-5 s'",
            "`run_timeout` is -5000, which is not between 1 and 253402300799999",
        ),
        (
            "'t', 'k', not_before => '1969-12-31 23:59:59Z'",
            "`not_before` is -1000, which is not between 0 and 253402300799999",
        ),
    ] {
        let sql = format!("SELECT maitre.submit({arguments})");
        let error = connection.query(sql.as_str(), &[]).await.unwrap_err();
        assert_eq!(
            error.as_db_error().map(tokio_postgres::error::DbError::message),
            Some(refusal),
            "{arguments}"
        );
    }
    assert_eq!(store.look(None, 9).await.unwrap(), []);
}

#[tokio::test]
async fn applications_that_submit_jobs_of_one_kind_do_not_wait_for_each_other() {
    let (database, time) = (database(), Time::new());
    let store = open(&database, &time).await;
    let one = store.desk.connection().await.unwrap();
    let other = store.desk.connection().await.unwrap();
    one.batch_execute("SELECT maitre.submit('shop', 'a'), maitre.submit('shop', 'b')")
        .await
        .unwrap();
    // With a row that was just confirmed, and with one that was not confirmed for hours.
    for age in ["1 minute", "2 hours"] {
        let used = format!(
            "UPDATE queues SET used = (extract(epoch FROM now() - interval '{age}') * 1000)::bigint"
        );
        one.batch_execute(&used).await.unwrap();
        for connection in [&one, &other] {
            connection.batch_execute("BEGIN; SET LOCAL lock_timeout = '1s'").await.unwrap();
        }
        for (connection, kind) in [(&one, "a"), (&other, "b"), (&one, "b"), (&other, "a")] {
            let submit = format!("SELECT maitre.submit('shop', '{kind}')");
            connection.batch_execute(&submit).await.unwrap();
        }
        for connection in [&one, &other] {
            connection.batch_execute("COMMIT").await.unwrap();
        }
    }
    assert_eq!(store.look(None, 99).await.unwrap().len(), 2 + 2 * 4);
}
