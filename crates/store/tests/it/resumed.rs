//! An interrupted import continues where it stopped, and ends only if it is complete.

use std::collections::BTreeMap;

use cluster::Database;
use store::conformance::Time;
use store::{Postgres, Sqlite};
use tokio_postgres::{Client, NoTls};

use crate::moved::{fill, interrupted, many};
use crate::place::Place;
use crate::postgres;

/// Tables with rows to import, those before `jobs` first.
const FILLED: [&str; 4] = ["settings", "attempts", "finished", "jobs"];

/// Counts the rows that are sent to each of them, existing ones included.
const COUNT_SENT: &str = "CREATE FUNCTION public.count_sent() RETURNS trigger LANGUAGE plpgsql \
    AS $$ BEGIN PERFORM nextval('public.sent_' || TG_TABLE_NAME); RETURN NEW; END $$";

/// A client that observes an import.
struct Witness {
    client: Client,
}

impl Witness {
    async fn of(database: &Database) -> Self {
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(COUNT_SENT).await.unwrap();
        for table in FILLED {
            let count = format!(
                "CREATE SEQUENCE public.sent_{table}; CREATE TRIGGER count_sent BEFORE INSERT \
                 ON maitre.{table} FOR EACH ROW EXECUTE FUNCTION public.count_sent()"
            );
            client.batch_execute(&count).await.unwrap();
        }
        Self { client }
    }

    async fn number(&self, sql: &str) -> u64 {
        let row = self.client.query_one(sql, &[]).await.unwrap();
        row.get::<_, i64>(0).unsigned_abs()
    }

    async fn rows(&self, table: &str) -> u64 {
        self.number(&format!("SELECT count(*) FROM maitre.{table}")).await
    }

    async fn sent(&self, table: &str) -> u64 {
        let sql = format!(
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.sent_{table}"
        );
        self.number(&sql).await
    }

    /// Ends the other connections, and waits for their end.
    async fn end_all_others(&self) {
        let sql = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity \
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.number(sql).await;
    }
}

/// The progress of an import by table: the row counts so far, and the total.
type Told = BTreeMap<String, (Vec<u64>, u64)>;

fn note(told: &mut Told, table: &str, n: u64, total: u64) {
    let (steps, last) = told.entry(table.to_owned()).or_insert((Vec::new(), total));
    steps.push(n);
    assert_eq!(*last, total, "`{table}` does not grow while it is moved");
}

fn assert_rises_to_the_end(told: &Told) {
    for (table, (steps, total)) in told {
        assert!(steps.is_sorted_by(|one, next| one < next), "{table}: {steps:?}");
        assert_eq!(steps.last(), Some(total), "{table}: {steps:?}");
    }
}

async fn connect(database: &Database, time: &Time) -> Postgres {
    let store = Postgres::connect_to_import(database.url(), many(time)).await;
    store.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn second_import_sends_only_missing_rows_and_reports_progress() {
    let (time, place) = (Time::new(), Place::quick());
    fill(&Sqlite::open(&place.file(), many(&time)).unwrap());
    let (database, runtime) = (postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let store = connect(&database, &time).await;
        let witness = Witness::of(&database).await;
        interrupted(&store, &place.file(), "jobs").await;
        witness.end_all_others().await;
        let mut before = BTreeMap::new();
        for table in FILLED {
            before.insert(table, (witness.rows(table).await, witness.sent(table).await));
        }
        let (n_there, _) = before["jobs"];
        assert!((2_000..5_000).contains(&n_there), "it stopped in the middle: {n_there}");
        let mut told = Told::new();
        let again = connect(&database, &time).await;
        again.import(&place.file(), |at, n, of| note(&mut told, at, n, of)).await.unwrap();
        for (table, (n_there, n_sent)) in before {
            let missing = witness.rows(table).await - n_there;
            assert_eq!(witness.sent(table).await - n_sent, missing, "rows sent to `{table}`");
        }
        assert_rises_to_the_end(&told);
        let (steps, total) = &told["jobs"];
        assert!(steps[0] > n_there && *total == 5_010, "{steps:?} of {total}");
        assert_eq!(told.len(), 1, "only missing tables are reported: {told:?}");
        assert_eq!(again.check().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn import_reports_progress_until_it_is_complete() {
    let (time, place) = (Time::new(), Place::quick());
    fill(&Sqlite::open(&place.file(), many(&time)).unwrap());
    let (database, runtime) = (postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let (store, mut told) = (connect(&database, &time).await, Told::new());
        store.import(&place.file(), |at, n, of| note(&mut told, at, n, of)).await.unwrap();
        assert_rises_to_the_end(&told);
        assert_eq!(told["jobs"], (vec![2_000, 4_000, 5_010], 5_010));
        assert!(FILLED.iter().all(|table| told.contains_key(*table)), "{told:?}");
    });
}

#[test]
fn import_finds_rows_lost_or_added_since_the_last_try() {
    let (time, place) = (Time::new(), Place::quick());
    fill(&Sqlite::open(&place.file(), many(&time)).unwrap());
    for (harm, found) in [
        ("DELETE FROM maitre.jobs WHERE id = 2", "`jobs` has 5009 rows there and 5010 here"),
        ("DELETE FROM maitre.attempts WHERE job = 1", "`attempts` has 2 rows there and 3 here"),
        (
            "INSERT INTO maitre.settings VALUES ('pool', 'new', '{}')",
            "`settings` has 2 rows there and 1 here",
        ),
    ] {
        let (database, runtime) = (postgres::database(), postgres::runtime());
        runtime.block_on(async {
            let store = connect(&database, &time).await;
            interrupted(&store, &place.file(), "jobs").await;
            database.say(harm).unwrap();
            let again = connect(&database, &time).await;
            let refused = again.import(&place.file(), |_, _, _| {}).await.unwrap_err().to_string();
            assert!(refused.contains(found), "{refused}");
            let refused = Postgres::connect(database.url(), many(&time)).await.map(drop);
            assert!(refused.unwrap_err().to_string().contains("half there"));
        });
    }
}
