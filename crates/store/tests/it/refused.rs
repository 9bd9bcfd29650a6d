//! Files that are damaged, newer or of another program are refused with a reason, and not changed.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rusqlite::Connection;
use store::conformance::{Time, options};
use store::{Error, Sqlite};

use crate::place::Place;
use crate::submit::{block_on, submit};

/// The reason why a file is refused. It must be the same file afterwards.
fn refusal(file: &Path) -> String {
    let before = std::fs::read(file).unwrap();
    let refused = Sqlite::open(file, options(&Time::new())).map(drop).unwrap_err();
    let Error::Unusable(reason) = refused else { panic!("{refused}") };
    assert!(before == std::fs::read(file).unwrap(), "the file was changed");
    assert!(reason.contains(&file.display().to_string()), "{reason}");
    reason
}

/// A store with some jobs, closed.
fn some_store(place: &Place) {
    let store = Sqlite::open(&place.file(), options(&Time::new())).unwrap();
    block_on(submit(&store, 20)).unwrap();
    store.close();
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let place = Place::new();
    std::fs::write(place.file(), "a diary, and a long one at that\n".repeat(100)).unwrap();
    let reason = refusal(&place.file());
    assert!(reason.contains("not a database"), "{reason}");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let place = Place::new();
    let connection = Connection::open(place.file()).unwrap();
    connection.execute_batch("CREATE TABLE jobs (id INTEGER)").unwrap();
    drop(connection);
    let reason = refusal(&place.file());
    assert!(reason.contains("not a store of Maitre"), "{reason}");
}

#[test]
fn a_newer_schema_is_refused() {
    let place = Place::new();
    some_store(&place);
    let connection = Connection::open(place.file()).unwrap();
    connection.execute_batch("INSERT INTO migrations VALUES (999, '0999_next', 'x', 0)").unwrap();
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    drop(connection);
    let reason = refusal(&place.file());
    assert!(reason.contains("newer version") && reason.contains("0999_next"), "{reason}");
}

#[test]
fn another_schema_of_the_same_number_is_refused() {
    let place = Place::new();
    some_store(&place);
    let connection = Connection::open(place.file()).unwrap();
    connection.execute_batch("UPDATE migrations SET checksum = 'other'").unwrap();
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    drop(connection);
    let reason = refusal(&place.file());
    assert!(reason.contains("another schema"), "{reason}");
}

#[test]
fn a_damaged_page_is_refused_wherever_it_is() {
    let place = Place::new();
    some_store(&place);
    let whole = std::fs::read(place.file()).unwrap();
    let n_pages = whole.len() / 4_096;
    let mut n_refused = 0;
    for page in 1..n_pages {
        std::fs::write(place.file(), &whole).unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(place.file()).unwrap();
        let start = u64::try_from(page * 4_096).unwrap();
        file.seek(SeekFrom::Start(start)).unwrap();
        file.write_all(&[0xA5; 4_096]).unwrap();
        drop(file);
        let reason = refusal(&place.file());
        assert!(reason.contains("damaged") || reason.contains("cannot be"), "{reason}");
        n_refused += 1;
    }
    assert!(n_refused > 10, "only {n_refused} pages");
    std::fs::write(place.file(), &whole).unwrap();
    Sqlite::open(&place.file(), options(&Time::new())).unwrap();
}

#[test]
fn a_file_that_lost_its_end_is_refused() {
    let place = Place::new();
    some_store(&place);
    let whole = std::fs::read(place.file()).unwrap();
    std::fs::write(place.file(), &whole[..whole.len() - 3 * 4_096]).unwrap();
    refusal(&place.file());
}
