//! A store that moves to a Postgres while the machine gives out under it.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::process::Stdio;

use cluster::Database;
use serde_json::{Value, json};

use crate::shared::{database, serve, until_there};
use crate::site::Site;

/// Unfinished jobs that nobody runs: a few batches of what is moved at a time.
const N_WAITING: usize = 5_000;
/// The third batch of jobs takes longer than anybody has patience for.
const GATE: &str = "CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql \
    AS $$ BEGIN PERFORM pg_sleep(25); RETURN NEW; END $$; \
    CREATE TRIGGER gate BEFORE INSERT ON maitre.jobs FOR EACH ROW WHEN (NEW.id > 4500) \
    EXECUTE FUNCTION public.gate()";
const IS_AT_THE_GATE: &str = "SELECT count(*) = 1 FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event = 'PgSleep'";
/// The server has not noticed yet that whoever asked is gone.
const END_ALL: &str = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid()";
/// Instead of being held up, they are counted, whether they are there already or not.
const COUNT: &str = "DROP TRIGGER gate ON maitre.jobs; CREATE SEQUENCE public.sent; \
    CREATE FUNCTION public.count_sent() RETURNS trigger LANGUAGE plpgsql \
    AS $$ BEGIN PERFORM nextval('public.sent'); RETURN NEW; END $$; \
    CREATE TRIGGER count_sent BEFORE INSERT ON maitre.jobs FOR EACH ROW \
    EXECUTE FUNCTION public.count_sent()";

/// Whether something is so in the database: a query that answers yes or no.
fn holds(database: &Database, query: &str) -> bool {
    database.say(&format!("SELECT 1 / ({query})::int")).is_ok()
}

/// A scheduler on a file that has seen a few things, killed with a job under way; what there was,
/// and that job.
fn used_file() -> (Site, Value, String) {
    let mut site = Site::serve();
    site.work("w1", &[]);
    assert_eq!(site.said(&["run", "--", "echo", "hello"]), "hello\n");
    let failed = site.submit(&["--", "sh", "-c", "exit 3"]);
    site.wait(&failed, "state", "failed");
    let held = site.submit(&["--", "sh", "-c", &until_there(&site.path("go"))]);
    site.wait(&held, "state", "running");
    site.submit(&["--after", &held, "--need", "gpu=a100", "--", "true"]);
    let lines = "{\"command\": [\"true\"]}\n".repeat(N_WAITING);
    std::fs::write(site.path("jobs.jsonl"), lines).unwrap();
    site.said(&["submit", "--need", "gpu=a100", "--file", "jobs.jsonl"]);
    site.kill_scheduler();
    site.kill_worker(0);
    let there = checked(&site, &file(&site));
    assert_eq!(there["unfinished"], json!(N_WAITING + 2), "{there}");
    (site, there, held)
}

/// What a look at a whole store finds.
fn checked(site: &Site, store: &str) -> Value {
    let said = site.said(&["store", "check", "--json", "--store", store]);
    serde_json::from_str(&said).unwrap()
}

fn file(site: &Site) -> String {
    format!("sqlite://{}", site.data().display())
}

#[test]
fn a_move_that_is_killed_in_the_middle_goes_on_and_loses_nothing() {
    let (mut site, there, held) = used_file();
    let (database, from) = (database(), file(&site));
    // From nowhere nothing comes, but the schema is there from now on.
    std::fs::create_dir(site.path("nothing")).unwrap();
    let nothing = format!("sqlite://{}", site.path("nothing"));
    let moved = site.maitre(&["store", "move", &nothing, database.url()]);
    assert!(!moved.status.success());
    database.say(GATE).unwrap();
    let mut mover = site.command(&["store", "move", &from, database.url()]);
    let mut mover = mover.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    site.until("it is in the middle", || holds(&database, IS_AT_THE_GATE).then_some(()));
    mover.kill().unwrap();
    mover.wait().unwrap();
    database.say(END_ALL).unwrap();
    assert!(holds(&database, "SELECT count(*) = 4000 FROM maitre.jobs"));
    // Nobody works on half of it.
    let mut maitre = Site::program(env!("CARGO_BIN_EXE_maitre"));
    maitre.args(["serve", "--listen", "127.0.0.1:0", "--store", database.url()]);
    let refused = String::from_utf8_lossy(&maitre.output().unwrap().stderr).into_owned();
    assert!(refused.contains("half there"), "{refused}");
    database.say(COUNT).unwrap();
    let said = site.said(&["store", "move", &from, database.url()]);
    assert!(said.starts_with("5004 jobs moved from "), "{said}");
    let rest = format!("SELECT last_value = {} FROM public.sent", N_WAITING + 2 - 4_000);
    assert!(holds(&database, &rest), "the second call sends what is left");
    database.say("DROP TRIGGER count_sent ON maitre.jobs").unwrap();
    assert_eq!(checked(&site, database.url()), there);
    // What was under way has been lost with its worker, and is done again.
    let mut next = serve(&database);
    std::fs::write(site.path("go"), "").unwrap();
    next.work("w2", &[]);
    let done = next.wait(&held, "state", "succeeded");
    assert_eq!((&done["attempts"], &done["losses"]), (&json!(2), &json!(1)));
    assert_eq!(next.said(&["logs", "1"]), "hello\n");
    // The file is what it was.
    site.launch(&["serve"]);
    assert_eq!(site.job(&held)["attempts"], 1);
}
