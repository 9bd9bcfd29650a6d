//! A process is killed while it works. All changes that it answered are there afterwards.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::{Ending, Millis, State, WorkerId};
use rusqlite::Connection;
use store::{Claim, Claimed, End, Ended, Options, Sqlite, Store};

use crate::place::Place;
use crate::submit::{block_on, submission};

/// Makes a new process of this binary the one that is killed.
const FILE: &str = "MAITRE_STORE_TEST_FILE";
const N_KILLS: u32 = 25;

/// Not a test of its own: the process that the next test kills. It prints each acknowledged change:
/// `t` for a submitted job, `d` for a completed one.
#[test]
fn the_process_that_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let store = Sqlite::open(Path::new(&file), Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let work = async {
        loop {
            tokio::join!(one(&store), one(&store), one(&store));
        }
    };
    runtime.block_on(work);
}

/// Submits two jobs and completes one of them.
async fn one(store: &Sqlite) {
    let records = store.submit(submission(2, 300)).await.unwrap().unwrap().jobs;
    for record in &records {
        say('t', &record.id.to_string());
    }
    let claim = Claim {
        job: records[0].id.clone(),
        fence: records[0].fence,
        worker: WorkerId::new("w"),
        limits: Vec::new(),
        holds: None,
        pool: model::Name::new("p"),
        why: String::new(),
    };
    let claimed = store.claim(vec![claim]).await.unwrap().remove(0);
    let Claimed::Won(record) = claimed else { panic!("nobody else claims") };
    let end = End::new(record.id.clone(), 1, WorkerId::new("w"), Ending::Succeeded);
    let ended = store.complete(vec![end]).await.unwrap().remove(0);
    assert!(matches!(ended, Ended::Accepted { .. }));
    say('d', &record.id.to_string());
}

fn say(what: char, id: &str) {
    // One write for each line, because a kill could cut a line in two.
    std::io::stdout().write_all(format!("\n{what} {id}\n").as_bytes()).unwrap();
}

fn spawn(file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["killed::the_process_that_is_killed", "--exact", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn acknowledged_changes_survive_a_kill() {
    let place = Place::new();
    let (mut taken, mut done) = (Vec::new(), Vec::new());
    for round in 0..N_KILLS {
        let mut child = spawn(&place.file());
        let output = BufReader::new(child.stdout.take().unwrap());
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60 + u64::from(round * 37 % 90)));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        for line in output.lines().map(Result::unwrap) {
            match line.split_once(' ') {
                Some(("t", id)) => taken.push(id.to_owned()),
                Some(("d", id)) => done.push(id.to_owned()),
                Some(_) | None => {}
            }
        }
        killer.join().unwrap();
        check(&place.file(), &taken, &done);
    }
    assert!(taken.len() > 100, "only {} jobs were taken in", taken.len());
    println!("{N_KILLS} kills, {} taken in, {} done, none lost", taken.len(), done.len());
}

fn check(file: &Path, taken: &[String], done: &[String]) {
    let store = Sqlite::open(file, Options::default()).unwrap();
    let mut ids: Vec<&String> = taken.iter().collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), taken.len(), "a number was answered twice");
    block_on(async {
        for id in taken {
            let found = store.job(model::JobId::new(id)).await.unwrap();
            assert!(found.is_some(), "job {id} was answered and is lost");
        }
        for id in done {
            let record = store.job(model::JobId::new(id)).await.unwrap().unwrap();
            assert_eq!((record.state, record.counts.attempts), (State::Succeeded, 1));
        }
        let completed: u64 = store
            .usage(store.now() - Millis(3_600_000))
            .await
            .unwrap()
            .iter()
            .map(|usage| usage.completed)
            .sum();
        let done: u64 = done.len().try_into().unwrap();
        // A kill may come between the commit and the answer of three concurrent tasks.
        assert!(completed >= done && completed <= done + 3 * u64::from(N_KILLS));
    });
    store.close();
    let connection = Connection::open(file).unwrap();
    let found: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}
