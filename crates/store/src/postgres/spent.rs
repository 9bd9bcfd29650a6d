//! The charges in a window: of one tenant, or of all together.
//!
//! For all tenants there may be 100,000 rows, and a claim under such a budget adds them up while
//! other claims wait. A past minute changes no more, so its sum is read once and kept here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::desk::Sheet;
use super::fault::Fault;
use crate::{Spent, minute};

/// Age in minutes after which the charges of a minute no longer change. A completion charges at
/// most the minute before its start, and ends or fails within two minutes.
const SETTLED_AFTER: i64 = 60;
/// Minutes before the window that are kept, because calls may arrive out of order.
const SPARE: i64 = 5;

/// Charges of one tenant, by its own minutes.
pub(super) const SPENT_BY: &str = "SELECT \
    greatest(least(coalesce(sum(cost), 0), 9223372036854775807), -9223372036854775807)::bigint \
    FROM usage \
    WHERE tenant = $2 AND minute >= $1";
const SPENT: &str = "SELECT minute, \
    greatest(least(sum(cost), 9223372036854775807), -9223372036854775807)::bigint FROM usage \
    WHERE minute >= $1 GROUP BY minute";

/// The sums of past minutes.
#[derive(Debug, Default)]
pub(super) struct Settled(Mutex<Minutes>);

/// The sum of each minute in `from..until`. A minute without an entry has no charge.
#[derive(Debug, Default)]
struct Minutes {
    from: i64,
    until: i64,
    sums: BTreeMap<i64, i64>,
}

impl Minutes {
    /// The known sum of the minutes from `since` on, and the first minute that is not in it.
    fn known(&self, since: i64) -> (i64, i64) {
        if since < self.from || since >= self.until {
            return (0, since);
        }
        let sums = self.sums.range(since..).map(|(_, sum)| *sum);
        (sums.fold(0, i64::saturating_add), self.until)
    }

    /// Keeps sums that were read from `start` on, for a window that begins at `since`.
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

/// The charges in the window.
pub(super) async fn charged(sheet: &Sheet<'_>, of: &Spent) -> Result<i64, Fault> {
    let since = minute::of(of.since);
    let Some(tenant) = &of.tenant else { return charged_to_all(sheet, since).await };
    let statement = sheet.transaction.prepare_cached(SPENT_BY).await?;
    let tenant = tenant.to_string();
    Ok(sheet.transaction.query_one(&statement, &[&since, &tenant]).await?.try_get(0)?)
}

/// Reads the charges of all tenants if none are known yet. A claim under such a budget does this
/// before it locks any row.
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
    fn past_minutes_are_read_once_and_recent_ones_each_time() {
        let mut minutes = Minutes::default();
        assert_eq!(minutes.known(100), (0, 100));
        minutes.learn((100, 100), &[(100, 1), (150, 2), (190, 4)], 200);
        assert_eq!(minutes.known(100), (1, 140));
        assert_eq!(minutes.known(101), (0, 140));
        // An hour later, with a later window.
        minutes.learn((110, 140), &[(150, 2), (190, 4), (230, 8)], 260);
        assert_eq!((minutes.known(110), minutes.known(151)), ((6, 200), (4, 200)));
        assert_eq!(minutes.sums.len(), 2, "minutes before the window are dropped");
    }

    #[test]
    fn larger_window_is_read_completely() {
        let mut minutes = Minutes::default();
        minutes.learn((100, 100), &[(100, 1)], 200);
        assert_eq!(minutes.known(99), (0, 99));
        minutes.learn((99, 99), &[(99, 2), (100, 1), (145, 4)], 210);
        assert_eq!(minutes.known(99), (7, 150));
        // A window of less than an hour, and one that begins before any known minute.
        assert_eq!(minutes.known(180), (0, 180));
        minutes.learn((180, 180), &[(180, 9)], 211);
        assert_eq!(minutes.known(99), (7, 150), "nothing of it is long over");
        minutes.learn((180, 180), &[(180, 9)], 400);
        assert_eq!((minutes.known(180), minutes.known(99)), ((9, 340), (0, 99)));
    }

    #[test]
    fn minutes_that_two_claims_read_count_once() {
        let mut minutes = Minutes::default();
        minutes.learn((100, 100), &[(100, 1)], 200);
        for _ in 0..2 {
            minutes.learn((100, 140), &[(145, 2)], 210);
        }
        assert_eq!(minutes.known(100), (3, 150));
        // An answer that arrives after a later one.
        minutes.learn((100, 100), &[(100, 1)], 200);
        assert_eq!(minutes.known(100), (3, 150));
    }
}
