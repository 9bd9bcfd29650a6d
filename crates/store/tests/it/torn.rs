//! The log is truncated at any length. The rest is a prefix of the acknowledged jobs.

use std::path::Path;

use model::Record;
use store::conformance::{Time, options};
use store::{Options, Sqlite, Store};

use crate::place::Place;
use crate::submit::{block_on, submit};

fn with_wal(file: &Path) -> std::path::PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn many(time: &Time) -> Options {
    Options { jobs_max: 1_000_000, tenant_jobs_max: 1_000_000, ..options(time) }
}

#[test]
fn torn_log_leaves_a_prefix_of_the_jobs() {
    let (place, time) = (Place::new(), Time::new());
    let store = Sqlite::open(&place.file(), many(&time)).unwrap();
    // Each submission is one commit, so it must be stored completely or not at all.
    let n_commits = 40;
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..n_commits {
        records.extend(block_on(submit(&store, 3)).unwrap());
    }
    let database = std::fs::read(place.file()).unwrap();
    let wal = std::fs::read(with_wal(&place.file())).unwrap();
    assert!(wal.len() > 100_000, "the log was copied to the file already");
    store.close();

    let mut lengths: Vec<usize> = (0..60).map(|n| wal.len() * n / 60 + n * 7).collect();
    // Also just before, at and after the start of a frame.
    lengths.extend([0, 31, 32, 33, wal.len() - 1, wal.len()]);
    lengths.sort_unstable();
    let mut n_kept_before = 0;
    for length in lengths {
        let copy = Place::quick();
        std::fs::write(copy.file(), &database).unwrap();
        std::fs::write(with_wal(&copy.file()), &wal[..length.min(wal.len())]).unwrap();
        let store = Sqlite::open(&copy.file(), many(&time)).unwrap();
        let kept = block_on(store.look(None, usize::MAX)).unwrap();
        assert_eq!(kept, records[..kept.len()], "{length}");
        assert_eq!(kept.len() % 3, 0, "half a submission after {length} bytes");
        assert!(kept.len() >= n_kept_before);
        n_kept_before = kept.len();
        // The store continues with unused numbers.
        let more = block_on(submit(&store, 1)).unwrap();
        assert!(more[0].id > model::JobId::number(u64::try_from(kept.len()).unwrap()));
    }
    assert_eq!(n_kept_before, records.len());
}

#[test]
fn a_flipped_bit_in_the_log_ends_it_there() {
    let (place, time) = (Place::new(), Time::new());
    let store = Sqlite::open(&place.file(), many(&time)).unwrap();
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..20 {
        records.extend(block_on(submit(&store, 3)).unwrap());
    }
    let database = std::fs::read(place.file()).unwrap();
    let wal = std::fs::read(with_wal(&place.file())).unwrap();
    store.close();
    for n in 1..20 {
        let copy = Place::quick();
        let mut flipped = wal.clone();
        flipped[wal.len() * n / 20] ^= 4;
        std::fs::write(copy.file(), &database).unwrap();
        std::fs::write(with_wal(&copy.file()), &flipped).unwrap();
        let store = Sqlite::open(&copy.file(), many(&time)).unwrap();
        let kept = block_on(store.look(None, usize::MAX)).unwrap();
        assert_eq!(kept, records[..kept.len()]);
        assert!(kept.len() % 3 == 0 && kept.len() < records.len());
    }
}
