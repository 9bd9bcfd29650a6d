//! The jobs that workers were given: one row for each worker of a call that claimed jobs.
//!
//! **Invariant:** each live attempt is in a row of its worker, which the claim writes. A row may
//! name more: jobs that the claim lost, and attempts that ended. A row is deleted when none of its
//! attempts is live. The scheduler that claimed them counts them, and a periodic query deletes the
//! rows that no scheduler counts.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use model::{Millis, Timestamp};

use super::desk::Sheet;
use super::fault::Fault;

/// By then the ends of these attempts are written, or the attempts continue.
const SWEEP_AFTER: Millis = Millis::from_secs(60);
/// Calls that one step deletes.
const CALLS_MAX: i64 = 10_000;

/// A job, and the number of its attempt.
pub(super) type Attempt = (i64, u32);

/// Calls of this scheduler.
pub(super) struct Grants(Mutex<Calls>);

struct Calls {
    next: i64,
    /// Calls with live attempts, and how many each has.
    open: HashMap<i64, usize>,
    /// The call that claimed an attempt.
    of: HashMap<Attempt, i64>,
    /// Calls without live attempts.
    over: Vec<i64>,
}

impl Default for Grants {
    /// Numbers start at a random value, so that two schedulers do not share one.
    fn default() -> Self {
        let next = RandomState::new().hash_one(()).cast_signed();
        let calls =
            Calls { next, open: HashMap::default(), of: HashMap::default(), over: Vec::new() };
        Self(Mutex::new(calls))
    }
}

impl Grants {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new call.
    pub(super) fn call(&self) -> i64 {
        let mut calls = self.calls();
        calls.next = calls.next.wrapping_add(1);
        calls.next
    }

    /// Calls whose rows can be deleted. The caller deletes them.
    pub(super) fn take_over(&self) -> Vec<i64> {
        std::mem::take(&mut self.calls().over)
    }

    /// Records the attempts that a call claimed.
    pub(super) fn begin(&self, call: i64, attempts: &[Attempt]) {
        let mut calls = self.calls();
        if attempts.is_empty() {
            calls.over.push(call);
            return;
        }
        calls.open.insert(call, attempts.len());
        calls.of.extend(attempts.iter().map(|attempt| (*attempt, call)));
    }

    /// Records that these attempts ended.
    pub(super) fn end(&self, attempts: impl IntoIterator<Item = Attempt>) {
        let mut calls = self.calls();
        let Calls { open, of, over, .. } = &mut *calls;
        for call in attempts.into_iter().filter_map(|attempt| of.remove(&attempt)) {
            let Some(n_open) = open.get_mut(&call) else { continue };
            *n_open -= 1;
            if *n_open == 0 {
                open.remove(&call);
                over.push(call);
            }
        }
    }

    fn open(&self) -> Vec<i64> {
        self.calls().open.keys().copied().collect()
    }

    /// Stops counting these calls.
    fn forget(&self, gone: &[i64]) {
        let mut calls = self.calls();
        let Calls { open, of, .. } = &mut *calls;
        let n_open = open.len();
        for call in gone {
            open.remove(call);
        }
        if open.len() < n_open {
            of.retain(|_, call| open.contains_key(call));
        }
    }
}

/// The job `u.id`, if `u.worker` has it. `OFFSET 0` forces the lookup by id.
macro_rules! theirs {
    () => {
        "(SELECT * FROM jobs w WHERE w.id BETWEEN u.id AND u.id AND w.worker = u.worker OFFSET 0) j"
    };
}
pub(super) use theirs;

const DROP: &str = "DELETE FROM grants WHERE call = ANY($1)";

/// Deletes the rows of calls without a live attempt, of every scheduler.
pub(super) const SWEEP: &str = concat!(
    "DELETE FROM grants WHERE call = ANY(ARRAY(SELECT g.call FROM grants g \
     GROUP BY g.call HAVING max(g.at) < $1 AND NOT bool_or(EXISTS (SELECT 1 FROM \
     (SELECT g.worker, n.id FROM unnest(g.jobs) AS n(id)) u CROSS JOIN LATERAL ",
    theirs!(),
    ")) LIMIT $2))"
);

const GONE: &str = "SELECT u.call FROM unnest($1::bigint[]) AS u(call) \
    WHERE NOT EXISTS (SELECT 1 FROM grants g WHERE g.call = u.call)";

/// Deletes rows without a live attempt.
pub(super) async fn sweep(sheet: &Sheet<'_>) -> Result<(), Fault> {
    let grants = &sheet.desk.grants;
    let statement = sheet.transaction.prepare_cached(DROP).await?;
    sheet.transaction.execute(&statement, &[&grants.take_over()]).await?;
    let Timestamp(before) = sheet.now - SWEEP_AFTER;
    let statement = sheet.transaction.prepare_cached(SWEEP).await?;
    sheet.transaction.execute(&statement, &[&before, &CALLS_MAX]).await?;
    // A peer may have deleted rows too, and a rolled back claim has none.
    let statement = sheet.transaction.prepare_cached(GONE).await?;
    let rows = sheet.transaction.query(&statement, &[&grants.open()]).await?;
    let gone: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    grants.forget(&gone);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ends_with_the_last_of_its_attempts() {
        let grants = Grants::default();
        let (one, two) = (grants.call(), grants.call());
        assert_ne!(one, two);
        grants.begin(one, &[(1, 1), (2, 1)]);
        grants.begin(two, &[(3, 1)]);
        grants.end([(1, 1), (3, 1), (3, 1), (2, 9)]);
        assert_eq!(grants.take_over(), [two]);
        grants.end([(2, 1)]);
        assert_eq!((grants.take_over(), grants.take_over()), (vec![one], vec![]));
        assert!(grants.calls().of.is_empty());
    }

    #[test]
    fn end_of_an_attempt_does_not_end_the_next() {
        let grants = Grants::default();
        let (one, two) = (grants.call(), grants.call());
        grants.begin(one, &[(1, 1)]);
        grants.begin(two, &[(1, 2)]);
        grants.end([(1, 1)]);
        assert_eq!(grants.take_over(), [one]);
    }

    #[test]
    fn call_without_won_claims_has_no_live_attempts() {
        let grants = Grants::default();
        let call = grants.call();
        grants.begin(call, &[]);
        assert_eq!(grants.take_over(), [call]);
    }

    #[test]
    fn deleted_grants_are_not_counted() {
        let grants = Grants::default();
        let (one, two) = (grants.call(), grants.call());
        grants.begin(one, &[(1, 1), (2, 1)]);
        grants.begin(two, &[(3, 1)]);
        grants.forget(&[one, 77]);
        grants.end([(1, 1), (2, 1)]);
        assert!(grants.take_over().is_empty());
        grants.end([(3, 1)]);
        assert_eq!(grants.take_over(), [two]);
        assert!(grants.calls().of.is_empty());
    }
}
