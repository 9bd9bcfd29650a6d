//! The version before this one works with the schema of this one. Each version understands the rows
//! of the other, and continues its work.

use model::{Ending, JobId, Millis, State, WorkerId};
use store::conformance::{Time, options};
use store::{
    Cancelled, Claim, Claimed, End, Ended, LogPage, Postgres, Reach, Revived, Shared as _, Start,
    Store as _, Window,
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::postgres;
use crate::submit::submit;

/// The statements of the older version.
const STATEMENTS: &str = include_str!("older.sql");

/// The statements of the older version's store.
struct Older {
    client: Client,
    time: Time,
}

impl Older {
    async fn connect(url: &str, time: &Time) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("SET search_path = maitre").await.unwrap();
        client.batch_execute(STATEMENTS).await.unwrap();
        Self { client, time: time.clone() }
    }

    /// The rows of an answer as text. `NOW` stands for the current time.
    async fn ask(&self, sql: impl AsRef<str>) -> Vec<Vec<Option<String>>> {
        let sql = sql.as_ref().replace("NOW", &self.time.now().0.to_string());
        let said = self.client.simple_query(&sql).await;
        let said = said.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let rows = said.into_iter().filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
        });
        rows.collect()
    }

    async fn submit(&self) -> JobId {
        let id = self.ask("SELECT nextval('job_ids')").await[0][0].clone().unwrap();
        self.ask("EXECUTE ensure(ARRAY[77], ARRAY['tenant'], ARRAY['kind'], NULL, NOW)").await;
        self.ask(format!(
            "EXECUTE submit(ARRAY[{id}], ARRAY['tenant'], ARRAY['kind'], NULL, NULL, \
             ARRAY['queued'], ARRAY[1], ARRAY[0], ARRAY[NOW], ARRAY[false], ARRAY[0], ARRAY[0], \
             ARRAY[77], ARRAY[NOW], NULL, ARRAY['{{}}'], ARRAY['\\x07']::bytea[], NOW)"
        ))
        .await;
        JobId::number(id.parse().unwrap())
    }

    async fn sees(&self, job: &JobId) -> bool {
        let seen = self.ask("EXECUTE look(1, 0, 100)").await;
        seen.iter().any(|row| row[0] == Some(job.to_string()))
    }

    /// Whether it wins the claim.
    async fn claims(&self, job: &JobId, fence: u64) -> bool {
        let won = self.ask(format!(
            "EXECUTE claim(ARRAY[{job}], ARRAY[{fence}], ARRAY['w'], NULL, ARRAY['because'], \
             ARRAY['p'], NULL, NOW, ARRAY['w'], nextval('job_ids'), NULL)"
        ));
        won.await[0][0].is_none()
    }

    async fn starts(&self, job: &JobId, attempt: u32) -> bool {
        let sql = format!("EXECUTE start(ARRAY[{job}], ARRAY[{attempt}], ARRAY['w'], NOW)");
        !self.ask(sql).await.is_empty()
    }

    /// Whether it ends the job, with one of the two usual statements.
    async fn succeeds(&self, way: &str, job: &JobId, fence: u64) -> bool {
        let ended = self.ask(format!(
            "EXECUTE {way}(ARRAY[{job}], ARRAY[{fence}], ARRAY[NOW], NULL, ARRAY[1000], \
             ARRAY[1000], ARRAY['key'], NULL, NULL, NOW, 30000000, 0)"
        ));
        ended.await[0][0].is_none()
    }

    async fn notes_past(&self, job: &JobId, attempt: u32, ending: &str) {
        self.ask(format!(
            "EXECUTE note_past(ARRAY[{job}], ARRAY[{attempt}], ARRAY['w'], ARRAY[NOW], NULL, \
             ARRAY[NOW], ARRAY['{ending}'], ARRAY['oh'], NULL, NULL, NULL, NULL, ARRAY[false], \
             ARRAY['because'])"
        ))
        .await;
    }

    /// Fails an attempt with a retry.
    async fn fails(&self, job: &JobId, (attempt, fence): (u32, u64)) {
        self.ask("BEGIN").await;
        let changed = self.ask(format!(
            "EXECUTE change(ARRAY[{job}], ARRAY[{fence}], ARRAY['queued'], ARRAY[{fence} + 1], \
             ARRAY[0], ARRAY[{attempt}], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[NOW], \
             ARRAY[NOW + 5], ARRAY[false], ARRAY[false], ARRAY[false], ARRAY[0], ARRAY[0], \
             ARRAY['w'], ARRAY['oh'], NULL, NULL, NULL, ARRAY[NOW + 5], ARRAY[77])"
        ));
        assert_eq!(changed.await.len(), 1);
        self.notes_past(job, attempt, "transient").await;
        self.ask("EXECUTE charge(30000000, 0, ARRAY['tenant'], ARRAY[1000], ARRAY[0])").await;
        self.ask("COMMIT").await;
    }

    /// Ends an attempt and its job.
    async fn ends(&self, job: &JobId, (attempt, fence): (u32, u64), (state, cause): (&str, &str)) {
        self.ask("BEGIN").await;
        self.ask(format!(
            "EXECUTE finish(ARRAY[{job}], ARRAY[{fence}], ARRAY['{state}'], ARRAY[{fence} + 1], \
             ARRAY[1], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY['w'], ARRAY['{cause}'], \
             ARRAY['oh'], NULL, NULL, NULL, NOW)"
        ))
        .await;
        self.notes_past(job, attempt, "permanent").await;
        self.ask("COMMIT").await;
    }
}

/// Both versions, on one database.
struct Both {
    old: Older,
    new: Postgres,
    time: Time,
}

impl Both {
    async fn meet(url: &str) -> Self {
        let time = Time::new();
        let new = Postgres::connect(url, options(&time)).await.unwrap();
        Self { old: Older::connect(url, &time).await, new, time }
    }

    async fn job(&self, job: &JobId) -> model::Record {
        self.new.job(job.clone()).await.unwrap().unwrap()
    }

    async fn submit(&self) -> JobId {
        submit(&self.new, 1).await.unwrap().remove(0).id
    }

    async fn new_sees(&self, job: &JobId) -> bool {
        let ask = Window { stripe: (0, 1), jobs_max: 100, spare_max: 0, reach: Reach::All };
        let seen = self.new.window(ask).await.unwrap();
        seen.own.iter().any(|record| record.id == *job)
    }

    async fn new_claims(&self, job: &JobId) -> bool {
        let claim = Claim {
            job: job.clone(),
            fence: self.job(job).await.fence,
            worker: WorkerId::new("w"),
            pool: model::Name::new("p"),
            holds: None,
            why: "because".to_owned(),
            limits: Vec::new(),
        };
        matches!(self.new.claim(vec![claim]).await.unwrap()[..], [Claimed::Won(_)])
    }

    async fn new_starts(&self, job: &JobId, attempt: u32) -> bool {
        let start = Start { job: job.clone(), attempt, worker: WorkerId::new("w") };
        self.new.start(vec![start]).await.unwrap()[0]
    }

    async fn new_ends(&self, job: &JobId, attempt: u32, ending: Ending) -> bool {
        let end = End::new(job.clone(), attempt, WorkerId::new("w"), ending);
        matches!(self.new.complete(vec![end]).await.unwrap()[..], [Ended::Accepted { .. }])
    }

    /// The state of a job, and the endings of its attempts.
    async fn fate(&self, job: &JobId) -> (State, Vec<Ending>) {
        let pasts = self.new.attempts(vec![job.clone()]).await.unwrap().remove(0);
        (self.job(job).await.state, pasts.into_iter().map(|past| past.ending).collect())
    }
}

#[test]
fn job_runs_with_either_version_and_with_both_in_turn() {
    let (database, runtime) = (postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let both = Both::meet(database.url()).await;
        let (old, succeeded) = (&both.old, (State::Succeeded, vec![Ending::Succeeded]));
        // Only the old version.
        let job = old.submit().await;
        assert!(old.sees(&job).await && old.claims(&job, 1).await && !old.claims(&job, 1).await);
        assert!(old.starts(&job, 1).await && old.succeeds("succeed", &job, 3).await);
        assert_eq!(both.fate(&job).await, succeeded);
        // The new version claims a job that the old one accepted, and ends an attempt that the old
        // one started.
        let job = old.submit().await;
        assert!(both.new_sees(&job).await && both.new_claims(&job).await);
        assert!(!old.claims(&job, 1).await && old.starts(&job, 1).await);
        let output = format!(
            "EXECUTE note_output(ARRAY[{job}], ARRAY[1], ARRAY[0], ARRAY['out'], \
             ARRAY['\\x6869']::bytea[], NOW)"
        );
        old.ask(output).await;
        assert!(both.new_ends(&job, 1, Ending::Succeeded).await);
        assert_eq!(both.fate(&job).await, succeeded);
        let page = LogPage { job, attempt: None, after: None, max: 9 };
        assert_eq!(both.new.logs(page).await.unwrap()[0].bytes[..], *b"hi");
        // In the other direction, with both statements.
        for way in ["succeed", "succeed_at_once"] {
            let job = both.submit().await;
            assert!(old.sees(&job).await && old.claims(&job, 1).await);
            assert!(!both.new_sees(&job).await && both.new_starts(&job, 1).await);
            let report = format!(
                "EXECUTE progress(ARRAY[{job}], ARRAY[1], ARRAY['w'], ARRAY[500], ARRAY['half'], \
                 ARRAY['stage'])"
            );
            assert_eq!(old.ask(report).await.len(), 1);
            assert!(!old.succeeds(way, &job, 3).await, "it is not as it was");
            assert!(old.succeeds(way, &job, 4).await);
            assert_eq!(both.fate(&job).await, succeeded);
            assert!(!both.new_ends(&job, 1, Ending::Succeeded).await);
        }
        assert_eq!(both.new.check().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn retries_and_cancellations_continue_with_the_other_version() {
    let (database, runtime) = (postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let both = Both::meet(database.url()).await;
        let (old, wait) = (&both.old, || both.time.pass(Millis(1_000_000)));
        let job = both.submit().await;
        assert!(old.claims(&job, 1).await && both.new_ends(&job, 1, Ending::Transient).await);
        assert!(!old.sees(&job).await, "it waits for its moment");
        wait();
        // A scan leaves the job in its queue.
        assert!(both.new_sees(&job).await && old.sees(&job).await && both.new_claims(&job).await);
        old.fails(&job, (2, both.job(&job).await.fence)).await;
        assert!(!both.new_sees(&job).await);
        wait();
        assert!(both.new_sees(&job).await && old.sees(&job).await);
        assert!(old.claims(&job, both.job(&job).await.fence).await);
        old.ends(&job, (3, both.job(&job).await.fence), ("failed", "permanent")).await;
        let endings = [Ending::Transient, Ending::Transient, Ending::Permanent];
        assert_eq!(both.fate(&job).await, (State::Failed, endings.to_vec()));
        let revived = both.new.revive(vec![job.clone()]).await.unwrap();
        assert!(matches!(revived[..], [Revived::Done(_)]));
        assert!(old.sees(&job).await && old.claims(&job, both.job(&job).await.fence).await);
        // The new version cancels a job of the old one, which ends it as cancelled.
        let called_off = both.new.cancel(vec![job.clone()]).await.unwrap();
        assert!(matches!(called_off[..], [Cancelled::Stopping(_)]), "{called_off:?}");
        let cancelling = both.job(&job).await;
        assert!(cancelling.cancelling && !old.sees(&job).await);
        old.ends(&job, (4, cancelling.fence), ("cancelled", "asked")).await;
        assert_eq!(both.fate(&job).await.0, State::Cancelled);
        assert_eq!(both.new.check().await.unwrap().problems, Vec::<String>::new());
    });
}

#[test]
fn both_versions_renew_sessions_and_delete_old_jobs() {
    let (database, runtime) = (postgres::database(), postgres::runtime());
    runtime.block_on(async {
        let both = Both::meet(database.url()).await;
        let (old, job) = (&both.old, both.submit().await);
        assert_eq!(old.ask("EXECUTE greet('w', 1000, NOW)").await[0][0].as_deref(), Some("1"));
        assert!(old.claims(&job, 1).await);
        let session = store::Session { worker: WorkerId::new("w"), generation: 1 };
        assert_eq!(both.new.renew(vec![session.clone()], Millis(500)).await.unwrap(), [true]);
        assert!(old.ask("EXECUTE expired(NOW, 9)").await.is_empty());
        both.time.pass(Millis(600));
        assert_eq!(old.ask("EXECUTE expired(NOW, 9)").await[0][0], Some(job.to_string()));
        old.ask("EXECUTE renew_all(1000, NOW)").await;
        assert!(both.new.expired(9).await.unwrap().is_empty());
        both.new.join(WorkerId::new("w"), Millis(1_000)).await.unwrap();
        let renewed = old.ask("EXECUTE renew(ARRAY['w'], ARRAY[1], 1000, NOW)").await;
        assert!(renewed.is_empty(), "it is another session by now");
        // A job without retention leaves no row for the old version.
        let end =
            End { forget: true, ..End::new(job.clone(), 1, session.worker, Ending::Succeeded) };
        let ended = both.new.complete(vec![end]).await.unwrap();
        assert!(
            matches!(ended[..], [Ended::Accepted { .. }])
                && both.new.job(job.clone()).await.unwrap().is_none()
        );
        assert!(!old.succeeds("succeed", &job, 2).await);
        assert!(old.ask(format!("EXECUTE pasts(ARRAY[{job}])")).await.is_empty());
        old.ask("EXECUTE sweep(NOW + 1, 99)").await;
        // The old version deletes the jobs of both versions.
        let kept = [both.submit().await, old.submit().await];
        for job in &kept {
            assert!(both.new_claims(job).await && both.new_ends(job, 1, Ending::Succeeded).await);
        }
        old.ask("EXECUTE forget(NOW + 1, 99)").await;
        for job in kept {
            assert!(both.new.job(job).await.unwrap().is_none());
        }
        assert_eq!(both.new.check().await.unwrap().problems, Vec::<String>::new());
    });
}
