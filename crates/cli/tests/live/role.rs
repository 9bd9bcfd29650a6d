//! A role that runs schedulers and owns nothing, with the rights that our page says it needs.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use cluster::Database;

use crate::shared::database;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/postgres.md");
/// What the page calls the role.
const NAME: &str = "runner";

/// A role of its own: roles are the whole server's.
struct Role {
    name: String,
    url: String,
}

impl Role {
    /// Named after the database, with the rights of the page.
    fn of(database: &Database) -> Self {
        let (base, rest) = database.url().rsplit_once('/').unwrap();
        let (own, question) = rest.split_once('?').unwrap_or((rest, ""));
        let (scheme, host) = base.split_once("://").unwrap();
        let host = host.split_once('@').map_or(host, |(_, host)| host);
        let name = format!("{NAME}_{own}");
        let url = format!("{scheme}://{name}:hush@{host}/{own}?{question}");
        database.say(&grants().replace(NAME, &name).replace('…', "hush")).unwrap();
        Self { name, url }
    }

    fn says(&self, database: &Database, sql: &str) -> Result<(), cluster::Error> {
        database.say(&format!("SET ROLE {}; {sql}", self.name))
    }

    fn forget(&self, database: &Database) {
        let name = &self.name;
        database.say(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).unwrap();
    }
}

/// The rights of the page.
fn grants() -> String {
    statements(&format!("CREATE ROLE {NAME}"))
}

/// Statements as they stand on the page, from the one that begins so.
fn statements(start: &str) -> String {
    let from = PAGE.find(&format!("    {start}")).expect("the page has them");
    let lines = PAGE[from..].lines().take_while(|line| line.starts_with("    "));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a later version may add.
const NEXT: &str = "CREATE TABLE maitre.novelties (id bigserial PRIMARY KEY, what text NOT NULL)";

#[test]
fn a_role_that_owns_nothing_runs_schedulers_with_the_rights_of_our_page() {
    let database = database();
    // The owner makes the schema.
    drop(Site::start(&["serve", "--store", database.url()]));
    let role = Role::of(&database);
    let serve = ["serve", "--store", &role.url];
    let mut site = Site::start(&serve);
    site.work("w1", &[]);
    assert_eq!(site.said(&["run", "--", "echo", "hello"]), "hello\n");
    let failed = site.submit(&["--attempts", "1", "--", "false"]);
    let after = site.submit(&["--after", &failed, "--", "true"]);
    site.wait(&after, "state", "cancelled");
    site.said(&["set", "tenant", "few", r#"{"jobs_max": 1}"#]);
    let limited = site.submit(&["--tenant", "few", "--", "true"]);
    site.wait(&limited, "state", "succeeded");
    site.said(&["retry", &failed]);
    site.wait(&failed, "state", "failed");
    let held = site.submit(&["--hold", "--", "true"]);
    site.said(&["cancel", &held]);
    site.wait(&held, "state", "cancelled");
    site.said(&["set", "type", "exec", r#"{"forget": true}"#]);
    let gone = site.submit(&["--", "true"]);
    site.until("nothing is left of it", || {
        (!site.maitre(&["job", &gone]).status.success()).then_some(())
    });
    // Killed and started again, also once a later version has made a table of its own.
    site.kill_scheduler();
    database.say(NEXT).unwrap();
    site.launch(&serve);
    assert_eq!(site.said(&["run", "--", "echo", "again"]), "again\n");
    let novelty = "INSERT INTO maitre.novelties (what) VALUES ('x'); \
        SELECT * FROM maitre.novelties; DELETE FROM maitre.novelties";
    role.says(&database, novelty).unwrap();
    site.said(&["store", "check", "--store", &role.url]);
    // It changes rows, and nothing else.
    for sql in
        ["DROP TABLE maitre.jobs", "ALTER TABLE maitre.jobs ADD x int", "CREATE TABLE maitre.x ()"]
    {
        assert!(role.says(&database, sql).is_err(), "{sql}");
    }
    drop(site);
    // A schema that is to be brought up to date first is the owner's to bring there.
    let older = "DELETE FROM maitre.migrations \
        WHERE number = (SELECT max(number) FROM maitre.migrations)";
    database.say(older).unwrap();
    let mut maitre = Site::program(env!("CARGO_BIN_EXE_maitre"));
    let refused = maitre.args(serve).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("as the schema's owner, once"), "{said}");
    role.forget(&database);
}

#[test]
fn what_our_page_says_to_watch_can_be_asked() {
    let database = database();
    let asked = statements("SELECT 'transaction '");
    let asked = asked.trim().trim_end_matches(';');
    // Whoever asks has a snapshot too.
    database.say(&format!("SELECT 1 / count(*) FROM ({asked}) oldest WHERE age >= 0")).unwrap();
}
