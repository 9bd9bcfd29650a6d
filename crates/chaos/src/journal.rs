//! The journal that the database writes, and an auditor that compares counters with the rows that
//! they count.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use crate::Error;
use crate::load::BUDGET;

/// The interval of comparisons.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The timeout of a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The limit of stored findings.
const FINDINGS_MAX: usize = 20;

/// A direct connection, not through the faulty links.
pub(crate) async fn connect(url: &str) -> Result<Client, Error> {
    let mut config: Config = url.parse()?;
    config.application_name("chaos").connect_timeout(CONNECT);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Installs the journal: from now on, it records every change of a job.
pub(crate) async fn install(url: &str) -> Result<(), Error> {
    let client = connect(url).await?;
    client.batch_execute(include_str!("journal.sql")).await?;
    for trigger in TRIGGERS {
        client.batch_execute(trigger).await?;
    }
    Ok(())
}

/// One statement each. Two tables locked in one transaction could cause a deadlock.
const TRIGGERS: [&str; 4] = [
    "CREATE TRIGGER journal_begin AFTER INSERT OR DELETE ON maitre.jobs \
     FOR EACH ROW EXECUTE FUNCTION journal.step()",
    "CREATE TRIGGER journal_change AFTER UPDATE ON maitre.jobs \
     FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.attempts <> NEW.attempts \
     OR OLD.worker IS DISTINCT FROM NEW.worker) EXECUTE FUNCTION journal.step()",
    "CREATE TRIGGER journal_piece AFTER INSERT ON maitre.logs \
     FOR EACH ROW EXECUTE FUNCTION journal.piece()",
    "CREATE TRIGGER journal_note AFTER UPDATE ON maitre.jobs \
     FOR EACH ROW WHEN (NEW.note IS NOT NULL AND OLD.note IS DISTINCT FROM NEW.note) \
     EXECUTE FUNCTION journal.note()",
];

/// In one snapshot: the usage of each limit by its own row, and by live attempts.
const BALANCE: &str = "SELECT coalesce(h.name, u.name), coalesce(h.held, 0)::bigint, \
    coalesce(u.used, 0)::bigint FROM maitre.holdings h FULL JOIN ( \
    SELECT e ->> 0 AS name, sum((e ->> 1)::bigint) AS used FROM maitre.jobs, \
    jsonb_array_elements(charges::jsonb) e WHERE charges IS NOT NULL GROUP BY 1) u \
    ON u.name = h.name WHERE coalesce(h.held, 0) <> coalesce(u.used, 0)";
/// In one snapshot: the charges of a tenant, and the reservations of its live attempts.
const SPENT: &str = "SELECT ((SELECT coalesce(sum(cost), 0) FROM maitre.usage \
    WHERE tenant = $1) + (SELECT coalesce(sum(held), 0) FROM maitre.holdings \
    WHERE name = 'budget' || chr(31) || $1))::bigint";

/// Compares until it is stopped, also while the database is down at times.
pub(crate) struct Auditor {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

/// The findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) n_looks: usize,
    pub(crate) findings: Vec<String>,
}

impl Seen {
    fn add(&mut self, findings: Vec<String>) {
        self.n_looks += 1;
        let room = FINDINGS_MAX.saturating_sub(self.findings.len());
        self.findings.extend(findings.into_iter().take(room));
    }
}

impl Auditor {
    pub(crate) fn start(url: String) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let note = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                // The connection ends with the database, so it is made again.
                let _ = look(&url, &note).await;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Self { seen, task }
    }

    pub(crate) fn stop(self) -> Seen {
        self.task.abort();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn look(url: &str, seen: &Mutex<Seen>) -> Result<(), Error> {
    let client = connect(url).await?;
    loop {
        let mut findings = Vec::new();
        for row in client.query(BALANCE, &[]).await? {
            let (name, held, used): (String, i64, i64) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let name = name.replace('\u{1f}', " ");
            findings.push(format!("{held} of `{name}` is counted, and {used} is in use"));
        }
        let spent: i64 = client.query_one(SPENT, &[&BUDGET.0]).await?.try_get(0)?;
        if spent > BUDGET.1 * 1_000 {
            let (tenant, max) = BUDGET;
            findings.push(format!("tenant {tenant} has {spent} thousandths of a budget of {max}"));
        }
        seen.lock().unwrap_or_else(PoisonError::into_inner).add(findings);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
