//! Usage and runs.

use model::{Fixed, Millis, Name, TenantId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::desk::{Desk, Sheet};
use super::fault::Fault;
use super::{read, row};
use crate::sums::Sums;
use crate::{Run, Usage, minute, number};

/// Adds to one row of usage for each tenant of a list. Sums stop at the largest number. Rows are
/// locked in the order of the tenants' names, so that no two transactions deadlock.
macro_rules! add_usage {
    ($minute:literal, $part:literal, $list:literal) => {
        concat!(
            "INSERT INTO usage AS s (minute, tenant, part, cost, completed) SELECT ",
            $minute,
            "::bigint, u.tenant, ",
            $part,
            "::integer, greatest(least(u.cost, 9223372036854775807), -9223372036854775807), \
             u.completed FROM (",
            $list,
            ") u ORDER BY u.tenant COLLATE \"C\" \
             ON CONFLICT (minute, tenant, part) DO UPDATE SET \
             cost = greatest(least(s.cost::numeric + excluded.cost, 9223372036854775807), \
             -9223372036854775807)::bigint, completed = s.completed + excluded.completed"
        )
    };
}
pub(super) use add_usage;

const CHARGE: &str = add_usage!(
    "$1",
    "$2",
    "SELECT * FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS n(tenant, cost, completed)"
);

/// Charges tenants, in the current minute.
pub(super) async fn charge(sheet: &Sheet<'_>, sums: &Sums) -> Result<(), Fault> {
    if sums.is_empty() {
        return Ok(());
    }
    let tenants: Vec<String> = sums.keys().map(TenantId::to_string).collect();
    let costs: Vec<i64> = sums.values().map(|(cost, _)| cost.in_thousandths()).collect();
    let completed: Vec<i64> = sums.values().map(|(_, n)| *n).collect();
    let statement = sheet.transaction.prepare_cached(CHARGE).await?;
    let minute = minute::of(sheet.now);
    let values: [&(dyn ToSql + Sync); 5] =
        [&minute, &sheet.desk.part(), &tenants, &costs, &completed];
    sheet.transaction.execute(&statement, &values).await?;
    Ok(())
}

const USAGE: &str = "SELECT tenant, \
    greatest(least(sum(cost), 9223372036854775807), -9223372036854775807)::bigint, \
    least(sum(completed), 9223372036854775807)::bigint \
    FROM usage WHERE minute >= $1 GROUP BY tenant";

pub(super) async fn usage(desk: &Desk, since: Timestamp) -> Result<Vec<Usage>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(USAGE).await?;
    let usage = |row: &Row| {
        Ok(Usage {
            tenant: TenantId::new(row.try_get(0)?),
            cost: Fixed::thousandths(row.try_get(1)?),
            completed: number::size(row.try_get(2)?),
        })
    };
    let rows = connection.query(&statement, &[&minute::of(since)]).await?;
    let mut usages: Vec<Usage> = rows.iter().map(usage).collect::<Result<_, Fault>>()?;
    usages.sort_unstable_by(|one, two| one.tenant.cmp(&two.tenant));
    Ok(usages)
}

const INSERT_RUNS: &str = "INSERT INTO runs (tenant, kind, history_key, at, wait, duration, \
    ending, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory, fetched_paths, fetched_bytes, \
    n_dependents) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], \
    $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], \
    $11::boolean[], $12::bigint[], $13::bigint[], $14::bigint[])";

pub(super) async fn insert_runs(sheet: &Sheet<'_>, runs: &[&Run]) -> Result<(), Fault> {
    if runs.is_empty() {
        return Ok(());
    }
    let statement = sheet.transaction.prepare_cached(INSERT_RUNS).await?;
    let values: [&(dyn ToSql + Sync); 14] = [
        &column(runs, |run| run.tenant.to_string()),
        &column(runs, |run| run.kind.to_string()),
        &column(runs, |run| run.history_key.clone()),
        &column(runs, |run| run.at.0),
        &column(runs, |run| run.wait.0),
        &column(runs, |run| run.duration.0),
        &column(runs, |run| run.ending.name()),
        &column(runs, |run| run.measured.ram_peak_mb.map(number::signed)),
        &column(runs, |run| run.measured.cpu_ms.map(number::signed)),
        &column(runs, |run| run.measured.disk_bytes.map(number::signed)),
        &column(runs, |run| run.measured.out_of_memory),
        &column(runs, |run| run.fetched.map(|(paths, _)| i64::from(paths))),
        &column(runs, |run| run.fetched.map(|(_, bytes)| number::signed(bytes))),
        &column(runs, |run| i64::from(run.n_dependents)),
    ];
    sheet.transaction.execute(&statement, &values).await?;
    Ok(())
}

fn column<T>(runs: &[&Run], of: impl Fn(&Run) -> T) -> Vec<T> {
    runs.iter().map(|run| of(run)).collect()
}

/// In the order of ids, which is nearly the order of time.
const RUNS: &str = "SELECT tenant, kind, history_key, at, wait, duration, ending, fetched_paths, \
    fetched_bytes, n_dependents, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory \
    FROM runs WHERE at >= $1 ORDER BY id DESC LIMIT $2";

pub(super) async fn runs(desk: &Desk, since: Timestamp, max: usize) -> Result<Vec<Run>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(RUNS).await?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    connection.query(&statement, &[&since.0, &max]).await?.iter().map(run).collect()
}

fn run(row: &Row) -> Result<Run, Fault> {
    let paths = row.try_get::<_, Option<i64>>(7)?;
    let bytes = row.try_get::<_, Option<i64>>(8)?.map(number::size);
    let paths = paths.map(|paths| u32::try_from(paths).unwrap_or(u32::MAX));
    Ok(Run {
        tenant: TenantId::new(row.try_get(0)?),
        kind: Name::new(row.try_get(1)?),
        history_key: row.try_get(2)?,
        at: Timestamp(row.try_get(3)?),
        wait: Millis(row.try_get(4)?),
        duration: Millis(row.try_get(5)?),
        ending: read::ending(row, 6)?,
        measured: read::measured(row, 10)?,
        fetched: paths.zip(bytes),
        n_dependents: row::small(row, 9)?,
    })
}
