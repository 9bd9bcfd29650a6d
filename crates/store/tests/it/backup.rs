//! A copy that is made during writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::Millis;
use store::conformance::{Time, options};
use store::{Backup, Options, Sqlite, Store as _, backup};

use crate::place::Place;
use crate::submit::{block_on, submission, submit};

#[test]
fn backup_has_all_acknowledged_changes_and_is_usable() {
    let (place, time) = (Place::quick(), Time::new());
    let many = || Options { jobs_max: 1_000_000, tenant_jobs_max: 1_000_000, ..options(&time) };
    let store = Sqlite::open(&place.file(), many()).unwrap();
    let (n_answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let copies: Vec<_> = (0..5).map(|n| place.file().with_extension(format!("copy{n}"))).collect();
    let found: Vec<(u64, Backup)> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let n = block_on(submit(&store, 20)).unwrap().len();
                n_answered.fetch_add(u64::try_from(n).unwrap(), Ordering::SeqCst);
            }
        });
        let copy = |to: &std::path::PathBuf| {
            let before = n_answered.load(Ordering::SeqCst);
            (before, backup(&place.file(), to).unwrap())
        };
        let found = copies.iter().map(copy).collect();
        is_over.store(true, Ordering::SeqCst);
        found
    });
    for (copy, (before, backup)) in copies.iter().zip(&found) {
        assert!(backup.unfinished >= *before, "{backup:?} after {before} were answered");
        assert_eq!(backup.unfinished % 20, 0, "a submission is in it whole, or not at all");
        time.pass(Millis(1));
        let copy = Sqlite::open(copy, many()).unwrap();
        let next = block_on(submit(&copy, 1)).unwrap().remove(0);
        // Numbers may be skipped: they could have been reserved ahead of their jobs.
        assert!(next.id > model::JobId::number(backup.unfinished));
    }
}

#[test]
fn foreign_file_is_not_backed_up_and_leaves_no_file() {
    let place = Place::new();
    let (from, to) = (place.file(), place.file().with_extension("copy"));
    let refused = || backup(&from, &to).unwrap_err().to_string();
    assert!(refused().starts_with("there is no store at "), "{}", refused());
    std::fs::write(&from, "something else").unwrap();
    assert!(refused().contains("cannot be read as a store of Maitre"), "{}", refused());
    std::fs::remove_file(&from).unwrap();
    let store = Sqlite::open(&from, options(&Time::new())).unwrap();
    std::fs::write(&to, "precious").unwrap();
    assert!(refused().contains("is there already"), "{}", refused());
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "precious");
    store.close();
    let names = std::fs::read_dir(from.parent().unwrap()).unwrap();
    let names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains(".part")), "{names:?}");
}

#[test]
fn check_names_inconsistencies_of_a_file() {
    let (place, time) = (Place::quick(), Time::new());
    let store = Sqlite::open(&place.file(), options(&time)).unwrap();
    let mut jobs = submission(3, 10);
    jobs.jobs[1].after_indexes = vec![0];
    block_on(store.submit(jobs)).unwrap().unwrap();
    drop(store);
    let found = |harm: &str| {
        let file = rusqlite::Connection::open(place.file()).unwrap();
        file.execute_batch(harm).unwrap();
        store::check(&place.file()).unwrap().problems
    };
    assert_eq!(found(""), Vec::<String>::new());
    let (blockers, dependents, waits) = (
        "1 jobs that count those they wait for wrongly",
        "1 jobs that count those that wait for them wrongly",
        "1 waits for a job that is not there",
    );
    for (harm, mended, expected) in [
        ("UPDATE jobs SET n_blockers = 2 WHERE id = 2", "n_blockers = 1 WHERE id = 2", blockers),
        (
            "UPDATE jobs SET n_dependents = 0 WHERE id = 1",
            "n_dependents = 1 WHERE id = 1",
            dependents,
        ),
        ("INSERT INTO waits VALUES (3, 4)", "n_dependents = 0 WHERE id = 3", waits),
        ("INSERT INTO waits VALUES (1, 3)", "n_dependents = 1 WHERE id = 1", blockers),
    ] {
        // The count includes the extra edge, so only the other side disagrees.
        let counted = "UPDATE jobs SET n_dependents = (SELECT count(*) FROM waits \
            WHERE blocker = jobs.id)";
        let counted = if harm.starts_with("INSERT") { counted } else { "" };
        assert_eq!(found(&format!("{harm}; {counted}")), [expected], "{harm}");
        let mend = format!("DELETE FROM waits WHERE waiter > 2; UPDATE jobs SET {mended}");
        assert_eq!(found(&mend), Vec::<String>::new());
    }
}
