//! The first jobs of each queue, with one index lookup for each, for queues of any length.

use std::sync::Arc;

use deadpool_postgres::Object;
use foldhash::{HashMap, HashMapExt as _};
use model::Timestamp;
use tokio_postgres::types::ToSql;

use super::columns::{PRIORITY_CLAMP, STEP_MS};
use super::desk::Desk;
use super::fault::Fault;
use super::marks::{Found, Spot};
use super::row::{self, Queued, queued_columns};
use super::tell::Told;
use crate::{Reach, Seen, Window, number};

/// Jobs of one queue, at least and at most.
const EACH: (usize, usize) = (8, 2_000);
/// Jobs of other shards that are read for each job of the own shard.
const OTHERS: usize = 4;
/// A job of a different shard is overdue if it is so much further ahead than the first own job.
const OVERDUE_MS: i64 = 1_000;
/// Due jobs that one scan puts into their queues.
const DUE_MAX: i64 = 1_000;

macro_rules! first_jobs {
    ($queues:literal, $stripe:literal) => {
        concat!(
            "SELECT ",
            queued_columns!(),
            " FROM ",
            $queues,
            " CROSS JOIN LATERAL (SELECT * FROM jobs w WHERE w.queue = q.queue \
             AND w.place IS NOT NULL AND (w.place, w.id) > (q.place, q.id) AND w.state = 'queued' \
             AND w.id % $1 ",
            $stripe,
            " $2 ORDER BY w.queue, w.place, w.id LIMIT $3) j"
        )
    };
}

/// All queues from their heads.
macro_rules! all_queues {
    ($stripe:literal) => {
        first_jobs!(
            "(SELECT queue, (-9223372036854775808)::bigint AS place, \
             (-9223372036854775808)::bigint AS id FROM queues) q",
            $stripe
        )
    };
}

/// Some queues, each from a position on.
macro_rules! some_queues {
    ($stripe:literal) => {
        first_jobs!(
            "unnest($4::bigint[], $5::bigint[], $6::bigint[]) AS q(queue, place, id)",
            $stripe
        )
    };
}

const ALL_OWN: &str = all_queues!("=");
const ALL_OTHERS: &str = all_queues!("<>");
const SOME_OWN: &str = some_queues!("=");
const SOME_OTHERS: &str = some_queues!("<>");

#[cfg(test)]
/// Every statement of a queue scan, for tests of the plans.
pub(super) const STATEMENTS: [&str; 4] = [ALL_OWN, ALL_OTHERS, SOME_OWN, SOME_OTHERS];

pub(super) async fn window(desk: &Desk, ask: Window) -> Result<Seen, Fault> {
    let connection = desk.connection().await?;
    let next_due = let_in(desk, &connection).await?;
    desk.marks.look_for(ask.stripe);
    let (after, news) = match ask.reach {
        Reach::News => (desk.marks.take_news(), HashMap::default()),
        Reach::More => (desk.marks.take_more(), HashMap::default()),
        Reach::All => (Vec::new(), desk.marks.take_all_news()),
    };
    let is_all = ask.reach == Reach::All;
    if !is_all && after.is_empty() {
        let is_more = desk.marks.is_more();
        return Ok(Seen { is_whole: true, is_more, next_due, ..Seen::default() });
    }
    let n_queues = if is_all { count_queues(&connection).await? } else { after.len() };
    let each = (ask.jobs_max / n_queues.max(1)).clamp(EACH.0, EACH.1);
    let n_others = (each / OTHERS).min(ask.spare_max);
    let look = Look { connection: &connection, stripe: ask.stripe, after: &after };
    let (own, others) = if is_all {
        (look.all(ALL_OWN, each).await?, look.all(ALL_OTHERS, n_others).await?)
    } else {
        (look.some(SOME_OWN, each).await?, look.some(SOME_OTHERS, n_others).await?)
    };
    let found = found(&own, each);
    let is_whole = found.values().all(|found| !found.is_full);
    if is_all {
        desk.marks.begin_again(news, &found);
    } else {
        desk.marks.move_on(&after, &found);
    }
    let is_more = desk.marks.is_more();
    keep(desk, &own);
    Ok(Seen { is_whole, is_more, next_due, ..seen(own, others) })
}

/// Keeps the records for the claims.
fn keep(desk: &Desk, own: &[Queued]) {
    let mut recent = desk.recent();
    for Queued { record, .. } in own.iter().filter(|row| row.is_whole) {
        if let Some(id) = number::of(&record.id) {
            recent.keep(id, Arc::clone(record), None);
        }
    }
}

struct Look<'a> {
    connection: &'a Object,
    stripe: (usize, usize),
    after: &'a [(i64, Spot)],
}

impl Look<'_> {
    async fn all(&self, sql: &str, each: usize) -> Result<Vec<Queued>, Fault> {
        self.rows(sql, each, &[]).await
    }

    async fn some(&self, sql: &str, each: usize) -> Result<Vec<Queued>, Fault> {
        let queues: Vec<i64> = self.after.iter().map(|(queue, _)| *queue).collect();
        let (places, ids): (Vec<i64>, Vec<i64>) = self.after.iter().map(|(_, spot)| *spot).unzip();
        self.rows(sql, each, &[&queues, &places, &ids]).await
    }

    async fn rows(
        &self,
        sql: &str,
        each: usize,
        more: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Queued>, Fault> {
        let (place, n_all) = self.stripe;
        // A scheduler without peers has all shards.
        let is_alone = n_all <= 1 && (sql == ALL_OTHERS || sql == SOME_OTHERS);
        if is_alone || each == 0 {
            return Ok(Vec::new());
        }
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (n_all, place, each) = (number(n_all.max(1)), number(place), number(each));
        let statement = self.connection.prepare_cached(sql).await?;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&n_all, &place, &each];
        values.extend(more);
        let rows = self.connection.query(&statement, &values).await?;
        rows.iter().map(row::read_queued).collect()
    }
}

async fn count_queues(connection: &Object) -> Result<usize, Fault> {
    let row = connection.query_one("SELECT count(*) FROM queues", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}

/// The last position in each queue, and whether the queue gave as many as asked for.
fn found(own: &[Queued], each: usize) -> HashMap<i64, Found> {
    let mut found: HashMap<i64, (Spot, usize)> = HashMap::new();
    for row in own {
        let spot = (row.place, number::of(&row.record.id).unwrap_or(i64::MAX));
        let (last, n_rows) = found.entry(row.queue).or_insert((spot, 0));
        *last = spot.max(*last);
        *n_rows += 1;
    }
    let is_full = |(last, n_rows)| Found { last, is_full: n_rows >= each };
    found.into_iter().map(|(queue, seen)| (queue, is_full(seen))).collect()
}

fn seen(own: Vec<Queued>, others: Vec<Queued>) -> Seen {
    let mut heads: HashMap<i64, i64> = HashMap::new();
    for Queued { queue, place, .. } in &own {
        let head = heads.entry(*queue).or_insert(*place);
        *head = (*head).min(*place);
    }
    let is_overdue =
        |row: &Queued| heads.get(&row.queue).is_some_and(|head| row.place + OVERDUE_MS < *head);
    let (overdue, spare): (Vec<Queued>, Vec<Queued>) = others.into_iter().partition(is_overdue);
    let records = |rows: Vec<Queued>| rows.into_iter().map(|row| row.record).collect();
    let (own, overdue, spare) = (records(own), records(overdue), records(spare));
    Seen { own, overdue, spare, ..Seen::default() }
}

const LET_IN: &str = "UPDATE jobs j SET due = NULL, \
    place = j.ready - $2::bigint * greatest(least(j.priority, $3::integer), -$3::integer) \
    FROM (SELECT w.id FROM jobs w WHERE w.due <= $1 ORDER BY w.due LIMIT $4 \
    FOR UPDATE SKIP LOCKED) d WHERE j.id = d.id RETURNING j.queue, j.place";
const NEXT_DUE: &str = "SELECT due FROM jobs WHERE due IS NOT NULL ORDER BY due LIMIT 1";

/// Puts jobs whose time has come into their queues. Returns the time of the next.
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
