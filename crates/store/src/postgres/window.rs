//! The first jobs of each queue, however long the queues are: one step into an index for each.

use std::collections::HashMap;

use deadpool_postgres::Object;
use model::{Record, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::columns::{PRIORITY_CLAMP, STEP_MS};
use super::desk::Desk;
use super::fault::Fault;
use super::row::{self, jobs_columns};
use super::tell::Told;
use crate::{Reach, Seen, Window};

/// Jobs of one queue, at least and at most.
const EACH: (usize, usize) = (8, 1_000);
/// Jobs of others that are looked at, for each one of one's own.
const OTHERS: usize = 4;
/// A job of others that is so much further ahead than the first of one's own is overdue.
const OVERDUE_MS: i64 = 1_000;
/// Jobs whose moment has come that stand in their queues with one look.
const DUE_MAX: i64 = 1_000;

macro_rules! first_jobs {
    ($queues:literal, $from:literal, $stripe:literal) => {
        concat!(
            "SELECT ",
            jobs_columns!(),
            ", j.queue, j.place FROM ",
            $queues,
            " CROSS JOIN LATERAL (SELECT * FROM jobs w WHERE w.queue = q.queue \
             AND w.place IS NOT NULL AND w.place >= ",
            $from,
            " AND w.id % $1 ",
            $stripe,
            " $2 ORDER BY w.queue, w.place, w.id LIMIT $3) j"
        )
    };
}

const ALL_OWN: &str = first_jobs!("queues q", "(-9223372036854775808)", "=");
const ALL_OTHERS: &str = first_jobs!("queues q", "(-9223372036854775808)", "<>");
const SOME_OWN: &str =
    first_jobs!("unnest($4::bigint[], $5::bigint[]) AS q(queue, first)", "q.first", "=");
const SOME_OTHERS: &str =
    first_jobs!("unnest($4::bigint[], $5::bigint[]) AS q(queue, first)", "q.first", "<>");

#[cfg(test)]
/// Every statement by which work is looked for, for those who want to see how it is answered.
pub(super) const STATEMENTS: [&str; 4] = [ALL_OWN, ALL_OTHERS, SOME_OWN, SOME_OTHERS];

/// A row of the window: its queue, its place, and the job.
struct Found {
    queue: i64,
    place: i64,
    record: Record,
}

pub(super) async fn window(desk: &Desk, ask: Window) -> Result<Seen, Fault> {
    let connection = desk.connection().await?;
    let next_due = let_in(desk, &connection).await?;
    let from = match ask.reach {
        Reach::News => desk.marks.take_fresh(),
        Reach::All => Vec::new(),
    };
    if ask.reach == Reach::News && from.is_empty() {
        return Ok(Seen { next_due, ..Seen::default() });
    }
    let n_queues = match ask.reach {
        Reach::News => from.len(),
        Reach::All => count_queues(&connection).await?,
    };
    let each = (ask.jobs_max / n_queues.max(1)).clamp(EACH.0, EACH.1);
    let look = Look { connection: &connection, stripe: ask.stripe, from: &from };
    let (own, others) = match ask.reach {
        Reach::News => {
            let own = look.some(SOME_OWN, each).await?;
            (own, look.some(SOME_OTHERS, each / OTHERS).await?)
        }
        Reach::All => {
            let own = look.all(ALL_OWN, each).await?;
            (own, look.all(ALL_OTHERS, each / OTHERS).await?)
        }
    };
    let first = first_of(own.iter().chain(&others));
    let full = full(&own, each);
    match ask.reach {
        Reach::News => desk.marks.raise(&from, &first, &full),
        Reach::All => desk.marks.set(first, &full),
    }
    Ok(seen(own, others, !full.is_empty(), next_due))
}

struct Look<'a> {
    connection: &'a Object,
    stripe: (usize, usize),
    from: &'a [(i64, i64)],
}

impl Look<'_> {
    async fn all(&self, sql: &str, each: usize) -> Result<Vec<Found>, Fault> {
        self.found(sql, each, &[]).await
    }

    async fn some(&self, sql: &str, each: usize) -> Result<Vec<Found>, Fault> {
        let (queues, first): (Vec<i64>, Vec<i64>) = self.from.iter().copied().unzip();
        self.found(sql, each, &[&queues, &first]).await
    }

    async fn found(
        &self,
        sql: &str,
        each: usize,
        more: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Found>, Fault> {
        let (place, n_all) = self.stripe;
        // Alone, one has everything to oneself.
        if n_all <= 1 && (sql == ALL_OTHERS || sql == SOME_OTHERS) {
            return Ok(Vec::new());
        }
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (n_all, place, each) = (number(n_all.max(1)), number(place), number(each.max(1)));
        let statement = self.connection.prepare_cached(sql).await?;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&n_all, &place, &each];
        values.extend(more);
        let found = |row: &Row| {
            let next = row::N_COLUMNS;
            let (queue, place) = (row.try_get(next)?, row.try_get(next + 1)?);
            Ok(Found { queue, place, record: row::read(row)? })
        };
        self.connection.query(&statement, &values).await?.iter().map(found).collect()
    }
}

async fn count_queues(connection: &Object) -> Result<usize, Fault> {
    let row = connection.query_one("SELECT count(*) FROM queues", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}

fn first_of<'a>(found: impl Iterator<Item = &'a Found>) -> HashMap<i64, i64> {
    let mut first: HashMap<i64, i64> = HashMap::new();
    for Found { queue, place, .. } in found {
        let lowest = first.entry(*queue).or_insert(*place);
        *lowest = (*lowest).min(*place);
    }
    first
}

/// The queues that gave as many as were asked for: there may be more.
fn full(own: &[Found], each: usize) -> Vec<i64> {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for found in own {
        *counts.entry(found.queue).or_default() += 1;
    }
    counts.into_iter().filter(|(_, n)| *n >= each).map(|(queue, _)| queue).collect()
}

fn seen(own: Vec<Found>, others: Vec<Found>, is_more: bool, next_due: Option<Timestamp>) -> Seen {
    let heads = first_of(own.iter());
    let is_overdue = |found: &Found| {
        heads.get(&found.queue).is_some_and(|head| found.place + OVERDUE_MS < *head)
    };
    let (overdue, spare): (Vec<Found>, Vec<Found>) = others.into_iter().partition(is_overdue);
    let records = |found: Vec<Found>| found.into_iter().map(|found| found.record).collect();
    Seen { own: records(own), overdue: records(overdue), spare: records(spare), is_more, next_due }
}

const LET_IN: &str = "UPDATE jobs j SET due = NULL, \
    place = j.ready - $2::bigint * greatest(least(j.priority, $3::integer), -$3::integer) \
    FROM (SELECT w.id FROM jobs w WHERE w.due <= $1 ORDER BY w.due LIMIT $4 \
    FOR UPDATE SKIP LOCKED) d WHERE j.id = d.id RETURNING j.queue, j.place";
const NEXT_DUE: &str = "SELECT due FROM jobs WHERE due IS NOT NULL ORDER BY due LIMIT 1";

/// Jobs whose moment has come stand in their queues from now on. Answers when the next will.
async fn let_in(desk: &Desk, connection: &Object) -> Result<Option<Timestamp>, Fault> {
    let statement = connection.prepare_cached(NEXT_DUE).await?;
    let next = connection.query_opt(&statement, &[]).await?;
    let next = next.map(|row| row.try_get(0).map(Timestamp)).transpose()?;
    let now = desk.now();
    if next.is_none_or(|next| next > now) {
        return Ok(next);
    }
    let statement = connection.prepare_cached(LET_IN).await?;
    let values: [&(dyn ToSql + Sync); 4] = [&now.0, &STEP_MS, &PRIORITY_CLAMP, &DUE_MAX];
    let mut told = Told::default();
    for row in connection.query(&statement, &values).await? {
        told.work.push((row.try_get(0)?, row.try_get(1)?));
    }
    desk.tell(told);
    Ok(Some(now))
}
