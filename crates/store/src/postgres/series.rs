//! Minutes: counts of schedulers.

use model::Timestamp;
use tokio_postgres::Row;

use super::columns::clean;
use super::desk::Desk;
use super::fault::Fault;
use crate::{Minute, minute};

const KEEP: &str = "INSERT INTO minutes (minute, scheduler, document) VALUES ($1, $2, $3) \
    ON CONFLICT (minute, scheduler) DO UPDATE SET document = excluded.document";

pub(super) async fn keep(
    desk: &Desk,
    (at, scheduler): (Timestamp, i64),
    document: &str,
) -> Result<(), Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(KEEP).await?;
    let values = (minute::of(at), clean(document));
    connection.execute(&statement, &[&values.0, &scheduler, &values.1]).await?;
    Ok(())
}

const MINUTES: &str = "SELECT minute, scheduler, document FROM minutes \
    WHERE minute >= $1 AND minute < $2 ORDER BY minute, scheduler";

pub(super) async fn minutes(
    desk: &Desk,
    from: Timestamp,
    before: Timestamp,
) -> Result<Vec<Minute>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(MINUTES).await?;
    let span = (minute::of(from), minute::of(before));
    let counted = |row: &Row| {
        let (at, scheduler) = (minute::begin(row.try_get(0)?), row.try_get(1)?);
        Ok(Minute { at, scheduler, document: row.try_get(2)? })
    };
    connection.query(&statement, &[&span.0, &span.1]).await?.iter().map(counted).collect()
}
