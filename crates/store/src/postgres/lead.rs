//! Leads: one holder at a time, and its document for the next one. Times are the database's.

use model::{Millis, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::desk::Desk;
use super::fault::Fault;
use crate::{Lead, number};

const TAKE: &str = "INSERT INTO leads AS l (name, holder, token, lead_until, document) \
    SELECT $1, $2, 1, n.now + $3, '' FROM (SELECT coalesce($4::bigint, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now) n \
    ON CONFLICT (name) DO UPDATE SET \
    token = l.token + CASE WHEN l.holder <> excluded.holder THEN 1 ELSE 0 END, \
    holder = excluded.holder, lead_until = excluded.lead_until \
    WHERE l.holder = excluded.holder OR l.lead_until <= excluded.lead_until - $3 \
    RETURNING name, holder, token, lead_until, document";

pub(super) async fn lead(
    desk: &Desk,
    name: &str,
    holder: &str,
    length: Millis,
) -> Result<Option<Lead>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(TAKE).await?;
    let values: [&(dyn ToSql + Sync); 4] = [&name, &holder, &length.0, &desk.told_time()];
    let row = connection.query_opt(&statement, &values).await?;
    row.as_ref().map(read).transpose()
}

const KEEP: &str = "UPDATE leads SET document = $3 WHERE name = $1 AND token = $2";

pub(super) async fn keep(
    desk: &Desk,
    name: &str,
    token: u64,
    document: &str,
) -> Result<bool, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(KEEP).await?;
    let values: [&(dyn ToSql + Sync); 3] = [&name, &number::signed(token), &document];
    Ok(connection.execute(&statement, &values).await? == 1)
}

const LEADS: &str = "SELECT name, holder, token, lead_until, document FROM leads \
    WHERE starts_with(name, $1) ORDER BY name COLLATE \"C\"";

pub(super) async fn leads(desk: &Desk, prefix: &str) -> Result<Vec<Lead>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(LEADS).await?;
    connection.query(&statement, &[&prefix]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Lead, Fault> {
    Ok(Lead {
        name: row.try_get(0)?,
        holder: row.try_get(1)?,
        token: number::size(row.try_get(2)?),
        until: Timestamp(row.try_get(3)?),
        document: row.try_get(4)?,
    })
}
