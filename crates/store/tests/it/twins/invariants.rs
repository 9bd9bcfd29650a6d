//! Invariants after every step, checked on the records and the tables alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::{JobId, Record, State};
use rusqlite::{Connection, OpenFlags};

/// The last seen record of each job.
#[derive(Default)]
pub(super) struct Watch {
    before: BTreeMap<JobId, Record>,
    highest: Option<JobId>,
}

impl Watch {
    pub(super) fn check(&mut self, jobs: &[Record], file: &Path) {
        check_keys(jobs);
        for record in jobs {
            check_record(record);
            match self.before.get(&record.id) {
                Some(before) => check_step(before, record),
                None => assert!(
                    self.highest.as_ref().is_none_or(|highest| record.id > *highest),
                    "the number {} was used before",
                    record.id
                ),
            }
        }
        check_edges(jobs, file);
        self.highest = self.highest.take().max(jobs.iter().map(|record| record.id.clone()).max());
        self.before = jobs.iter().map(|record| (record.id.clone(), record.clone())).collect();
    }
}

/// A tenant has at most one unfinished job of a type and dedupe key.
fn check_keys(jobs: &[Record]) {
    let mut keys = BTreeSet::new();
    for record in jobs.iter().filter(|record| !record.state.is_terminal()) {
        if let Some(key) = &record.spec.dedupe_key {
            let key = (&record.spec.tenant, &record.spec.kind, key);
            assert!(keys.insert(key), "two unfinished jobs have the key {key:?}");
        }
    }
}

/// Checks that the fields of a record agree.
fn check_record(record: &Record) {
    let state = record.state;
    assert_eq!(record.current.is_some(), state.is_live(), "{record:#?}");
    assert_eq!(record.finished.is_some(), state.is_terminal(), "{record:#?}");
    assert_eq!(state == State::Blocked, record.n_blockers > 0, "{record:#?}");
    let is_ready = record.ready.is_some() || state.is_terminal();
    assert_eq!(state == State::Blocked, !is_ready, "{record:#?}");
    assert!(!record.cancelling || state.is_live(), "{record:#?}");
    let is_without_cause = state == State::Succeeded || !state.is_terminal();
    assert_eq!(record.cause.is_none(), is_without_cause, "{record:#?}");
}

/// Checks the change of a record between two checks, with any number of steps in between.
fn check_step(before: &Record, after: &Record) {
    let told = || format!("{before:#?}\n{after:#?}");
    assert!(before.fence <= after.fence, "{}", told());
    assert_eq!(before.fence == after.fence, before == after, "{}", told());
    let is_revived = after.counts.revived > before.counts.revived;
    assert!(after.counts.attempts >= before.counts.attempts, "{}", told());
    // A request claims a job at most once, so a token is never skipped.
    assert!(after.counts.attempts - before.counts.attempts <= 1, "{}", told());
    if before.state.is_terminal() && !is_revived {
        assert_eq!(before, after, "a terminal state was left");
    }
    assert_eq!((&before.spec, before.created), (&after.spec, after.created));
    if let (Some(ready), false) = (before.ready, is_revived) {
        assert_eq!(after.ready, Some(ready), "its age was reset: {}", told());
    }
}

/// The counts of blockers and dependents match the edges.
fn check_edges(jobs: &[Record], file: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(file, flags).unwrap();
    let count = |column: &str| -> BTreeMap<JobId, u32> {
        let sql = format!("SELECT {column}, count(*) FROM waits GROUP BY {column}");
        let mut statement = connection.prepare(&sql).unwrap();
        let id = |row: &rusqlite::Row<'_>| {
            Ok((JobId::number(row.get::<_, i64>(0)?.unsigned_abs()), row.get(1)?))
        };
        statement.query_map([], id).unwrap().map(Result::unwrap).collect()
    };
    let (waiters, blockers) = (count("blocker"), count("waiter"));
    for record in jobs {
        let n_dependents = waiters.get(&record.id).copied().unwrap_or(0);
        let n_blockers = blockers.get(&record.id).copied().unwrap_or(0);
        assert_eq!((record.n_blockers, record.n_dependents), (n_blockers, n_dependents));
    }
}
