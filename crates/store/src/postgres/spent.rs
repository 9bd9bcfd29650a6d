//! What was charged in a window: of a tenant, or of all together.
//!
//! Of all together there may be a hundred thousand rows, and whoever claims under such a budget
//! adds them up while others wait. But what a minute comes to changes no more once it is long over:
//! that is read once, and kept here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::desk::Sheet;
use super::fault::Fault;
use crate::{Spent, minute};

/// Minutes after which nobody charges a minute any more: whoever writes an end picks the minute
/// just before that, and has the answer or gives up within two.
const SETTLED_AFTER: i64 = 60;
/// Minutes before the window that are kept: who asked a moment ago may be answered last.
const SPARE: i64 = 5;

/// By its own minutes.
pub(super) const SPENT_BY: &str = "SELECT \
    greatest(least(coalesce(sum(cost), 0), 9223372036854775807), -9223372036854775807)::bigint \
    FROM usage \
    WHERE tenant = $2 AND minute >= $1";
const SPENT: &str = "SELECT minute, \
    greatest(least(sum(cost), 9223372036854775807), -9223372036854775807)::bigint FROM usage \
    WHERE minute >= $1 GROUP BY minute";

/// What minutes came to that are long over.
#[derive(Debug, Default)]
pub(super) struct Settled(Mutex<Minutes>);

/// What each minute from `from` on and before `until` came to; nothing, if it is not there.
#[derive(Debug, Default)]
struct Minutes {
    from: i64,
    until: i64,
    sums: BTreeMap<i64, i64>,
}

impl Minutes {
    /// What minutes came to from `since` on, as far as that is known, and how far that is.
    fn known(&self, since: i64) -> (i64, i64) {
        if since < self.from || since >= self.until {
            return (0, since);
        }
        let sums = self.sums.range(since..).map(|(_, sum)| *sum);
        (sums.fold(0, i64::saturating_add), self.until)
    }

    /// What was read from `start` on, for somebody who asked for what there is since `since`.
    fn learn(&mut self, (since, start): (i64, i64), read: &[(i64, i64)], now: i64) {
        let until = now - SETTLED_AFTER;
        let is_known = self.from <= since && until <= self.until;
        let follows = self.from <= since && start == self.until;
        if until <= start || is_known || !(follows || start == since) {
            return;
        }
        if !follows {
            self.sums.clear();
        }
        let from = if follows { self.from.max(since - SPARE) } else { since };
        self.sums = self.sums.split_off(&from);
        self.sums.extend(read.iter().copied().filter(|(minute, _)| *minute < until));
        (self.from, self.until) = (from, until);
    }
}

impl Settled {
    fn minutes(&self) -> std::sync::MutexGuard<'_, Minutes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was charged in the window.
pub(super) async fn charged(sheet: &Sheet<'_>, of: &Spent) -> Result<i64, Fault> {
    let since = minute::of(of.since);
    let Some(tenant) = &of.tenant else { return charged_to_all(sheet, since).await };
    let statement = sheet.transaction.prepare_cached(SPENT_BY).await?;
    let tenant = tenant.to_string();
    Ok(sheet.transaction.query_one(&statement, &[&since, &tenant]).await?.try_get(0)?)
}

/// Reads what was charged to all, if nothing of that is known here yet: whoever claims under such a
/// budget does it before it locks what others need.
pub(super) async fn prepare(
    sheet: &Sheet<'_>,
    asked: impl Iterator<Item = &Spent>,
) -> Result<(), Fault> {
    let Some(of) = asked.filter(|of| of.tenant.is_none()).last() else { return Ok(()) };
    let since = minute::of(of.since);
    let (_, start) = sheet.desk.settled.minutes().known(since);
    if start == since && since + SETTLED_AFTER < minute::of(sheet.now) {
        charged_to_all(sheet, since).await?;
    }
    Ok(())
}

async fn charged_to_all(sheet: &Sheet<'_>, since: i64) -> Result<i64, Fault> {
    let (known, start) = sheet.desk.settled.minutes().known(since);
    let statement = sheet.transaction.prepare_cached(SPENT).await?;
    let rows = sheet.transaction.query(&statement, &[&start]).await?;
    let read: Vec<(i64, i64)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, Fault>>()?;
    sheet.desk.settled.minutes().learn((since, start), &read, minute::of(sheet.now));
    Ok(read.iter().fold(known, |sum, (_, cost)| sum.saturating_add(*cost)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_over_is_read_once_and_the_rest_each_time() {
        let mut minutes = Minutes::default();
        assert_eq!(minutes.known(100), (0, 100));
        minutes.learn((100, 100), &[(100, 1), (150, 2), (190, 4)], 200);
        assert_eq!(minutes.known(100), (1, 140));
        assert_eq!(minutes.known(101), (0, 140));
        // An hour later, with a window that moved along.
        minutes.learn((110, 140), &[(150, 2), (190, 4), (230, 8)], 260);
        assert_eq!((minutes.known(110), minutes.known(151)), ((6, 200), (4, 200)));
        assert_eq!(minutes.sums.len(), 2, "what nobody asks for any more is gone");
    }

    #[test]
    fn who_asks_for_more_than_is_known_has_all_of_it_read() {
        let mut minutes = Minutes::default();
        minutes.learn((100, 100), &[(100, 1)], 200);
        assert_eq!(minutes.known(99), (0, 99));
        minutes.learn((99, 99), &[(99, 2), (100, 1), (145, 4)], 210);
        assert_eq!(minutes.known(99), (7, 150));
        // A window of less than an hour, and one that begins where nothing is known.
        assert_eq!(minutes.known(180), (0, 180));
        minutes.learn((180, 180), &[(180, 9)], 211);
        assert_eq!(minutes.known(99), (7, 150), "nothing of it is long over");
        minutes.learn((180, 180), &[(180, 9)], 400);
        assert_eq!((minutes.known(180), minutes.known(99)), ((9, 340), (0, 99)));
    }

    #[test]
    fn what_two_read_at_once_counts_once() {
        let mut minutes = Minutes::default();
        minutes.learn((100, 100), &[(100, 1)], 200);
        for _ in 0..2 {
            minutes.learn((100, 140), &[(145, 2)], 210);
        }
        assert_eq!(minutes.known(100), (3, 150));
        // It was asked before, and answered late.
        minutes.learn((100, 100), &[(100, 1)], 200);
        assert_eq!(minutes.known(100), (3, 150));
    }
}
