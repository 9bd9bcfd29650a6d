//! Schedulers send few notifications, and none within the transactions of other work.

use tokio::task::JoinSet;

use super::*;

/// Shadows the built-in `pg_notify`. It records each notification, and whether its transaction has
/// written anything.
const SCRIBE: &str = "CREATE TABLE said (at timestamptz, has_written boolean); \
    CREATE FUNCTION pg_notify(channel text, word text) RETURNS void LANGUAGE plpgsql AS $$ \
    DECLARE has_written boolean := pg_current_xact_id_if_assigned() IS NOT NULL; \
    BEGIN \
        INSERT INTO said VALUES (clock_timestamp(), has_written); \
        PERFORM pg_catalog.pg_notify(channel, word); \
    END $$";

/// The number of notifications, the number in transactions with writes, and the shortest pause
/// between two in milliseconds.
const SAID: &str = "SELECT count(*), count(*) FILTER (WHERE has_written), \
    min(extract(epoch FROM pause) * 1000)::float8 \
    FROM (SELECT has_written, at - lag(at) OVER (ORDER BY at) AS pause FROM said) AS s";

#[tokio::test]
async fn frequent_changes_share_notifications_outside_of_writes() {
    let (database, time) = (database(), Time::new());
    open(&database, &time)
        .await
        .desk
        .connection()
        .await
        .unwrap()
        .batch_execute(SCRIBE)
        .await
        .unwrap();
    let url = format!("{}?options=-c%20search_path%3Dmaitre,pg_catalog", database.url());
    let many = Options { jobs_max: 100_000, tenant_jobs_max: 100_000, ..options(&time) };
    let one = Arc::new(Postgres::connect(&url, many).await.unwrap());
    let two = open(&database, &time).await;
    let mut news = two.listen();
    assert_eq!(next(&mut news).await, News::Listening);
    let mut crowd = JoinSet::new();
    for n in 0..200 {
        let one = Arc::clone(&one);
        crowd.spawn(async move {
            submit(&one, submission("a", &format!("kind{}", n % 10), 1)).await;
        });
    }
    crowd.join_all().await;
    let setting = Setting { kind: SettingKind::Pool, name: "p".to_owned(), document: None };
    one.set(vec![setting]).await.unwrap();
    while next(&mut news).await != News::Settings {}
    let found = two.window(Window { reach: Reach::News, ..all(0, 1) }).await.unwrap().own;
    assert_eq!(found.len(), 200, "all 200 jobs were announced");
    let row = one.desk.connection().await.unwrap().query_one(SAID, &[]).await.unwrap();
    let (n_said, n_by_writers): (i64, i64) = (row.get(0), row.get(1));
    assert!((1..=200).contains(&n_said), "{n_said}");
    assert_eq!(n_by_writers, 0);
    let pause_ms: Option<f64> = row.get(2);
    assert!(pause_ms.is_none_or(|pause_ms| pause_ms >= 9.0), "{pause_ms:?}");
}
