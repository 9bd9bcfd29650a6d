//! Usage and runs.

use std::collections::BTreeMap;

use model::{Fixed, Millis, Name, TenantId, Timestamp};
use rusqlite::{Connection, Result, Row, params};

use super::{read, row};
use crate::{Run, Usage, minute};

/// Sums stop at the largest number.
const CHARGE: &str = "INSERT INTO usage (minute, tenant, cost, completed) \
    VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET \
    cost = max(min(cost + excluded.cost, 9223372036854775807), -9223372036854775807), \
    completed = completed + excluded.completed";

/// Charges a tenant, in the minute of `now`.
pub(super) fn charge(
    connection: &Connection,
    tenant: &TenantId,
    (cost, n_completed): (Fixed, i64),
    now: Timestamp,
) -> Result<()> {
    let cost = cost.in_thousandths();
    let values = params![minute::of(now), tenant.to_string(), cost, n_completed];
    connection.prepare_cached(CHARGE)?.execute(values)?;
    Ok(())
}

const USAGE: &str = "SELECT tenant, cost, completed FROM usage WHERE minute >= ?1";

pub(super) fn usage(connection: &Connection, since: Timestamp) -> Result<Vec<Usage>> {
    let mut sums: BTreeMap<TenantId, (Fixed, u64)> = BTreeMap::new();
    let mut statement = connection.prepare_cached(USAGE)?;
    let mut rows = statement.query([minute::of(since)])?;
    while let Some(row) = rows.next()? {
        let sum = sums.entry(TenantId::new(row.get_ref(0)?.as_str()?)).or_default();
        sum.0 += Fixed::thousandths(row.get(1)?);
        sum.1 += row.get::<_, i64>(2)?.unsigned_abs();
    }
    let usage = |(tenant, (cost, completed))| Usage { tenant, cost, completed };
    Ok(sums.into_iter().map(usage).collect())
}

const INSERT_RUN: &str = "INSERT INTO runs (tenant, kind, history_key, at, wait, duration, \
    ending, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory, fetched_paths, fetched_bytes, \
    n_dependents) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

pub(super) fn insert_run(connection: &Connection, run: &Run) -> Result<()> {
    connection.prepare_cached(INSERT_RUN)?.execute(params![
        run.tenant.to_string(),
        run.kind.to_string(),
        run.history_key,
        run.at.0,
        run.wait.0,
        run.duration.0,
        run.ending.name(),
        run.measured.ram_peak_mb.map(row::count),
        run.measured.cpu_ms.map(row::count),
        run.measured.disk_bytes.map(row::count),
        run.measured.out_of_memory,
        run.fetched.map(|(paths, _)| paths),
        run.fetched.map(|(_, bytes)| row::count(bytes)),
        run.n_dependents,
    ])?;
    Ok(())
}

/// In the order of ids, which is the order of time.
const RUNS: &str = "SELECT tenant, kind, history_key, at, wait, duration, ending, fetched_paths, \
    fetched_bytes, n_dependents, ram_peak_mb, cpu_ms, disk_bytes, out_of_memory \
    FROM runs ORDER BY id DESC LIMIT ?1";

pub(super) fn runs(connection: &Connection, since: Timestamp, max: usize) -> Result<Vec<Run>> {
    let mut statement = connection.prepare_cached(RUNS)?;
    let mut rows = statement.query([i64::try_from(max).unwrap_or(i64::MAX)])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let run = run(row)?;
        if run.at < since {
            break;
        }
        runs.push(run);
    }
    Ok(runs)
}

fn run(row: &Row<'_>) -> Result<Run> {
    let bytes = row.get::<_, Option<i64>>(8)?.map(i64::unsigned_abs);
    Ok(Run {
        tenant: TenantId::new(row.get_ref(0)?.as_str()?),
        kind: Name::new(row.get_ref(1)?.as_str()?),
        history_key: row.get(2)?,
        at: Timestamp(row.get(3)?),
        wait: Millis(row.get(4)?),
        duration: Millis(row.get(5)?),
        ending: read::ending(row, 6)?,
        measured: read::measured(row, 10)?,
        fetched: row.get::<_, Option<u32>>(7)?.zip(bytes),
        n_dependents: row.get(9)?,
    })
}
