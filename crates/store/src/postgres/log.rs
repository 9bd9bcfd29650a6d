//! Output of attempts.

use std::collections::{HashMap, HashSet};

use model::Timestamp;
use tokio_postgres::types::ToSql;

use super::desk::{Desk, Sheet, Stage};
use super::fault::Fault;
use super::row;
use super::write::exactly;
use crate::{LogChunk, LogPage, Stream, chunk, number};

/// Output chunks to store.
pub(super) struct Logging {
    pub(super) chunks: Vec<LogChunk>,
}

/// Locks for share, so that an end waits for earlier output.
const CURRENT: &str = "SELECT j.id, j.attempts FROM jobs j \
    WHERE j.id = ANY($1) AND j.worker IS NOT NULL ORDER BY j.id FOR SHARE";

const KEPT: &str = "SELECT u.job, u.attempt, l.kept \
    FROM unnest($1::bigint[], $2::bigint[]) AS u(job, attempt) \
    CROSS JOIN LATERAL (SELECT logs.position + length(logs.bytes) AS kept FROM logs \
    WHERE logs.job = u.job AND logs.attempt = u.attempt ORDER BY logs.position DESC LIMIT 1) l";

const INSERT: &str = "INSERT INTO logs (job, attempt, position, stream, at, bytes) \
    SELECT u.job, u.attempt, u.position, u.stream, $6, u.bytes \
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[]) \
    AS u(job, attempt, position, stream, bytes)";

#[derive(Default)]
struct Pieces<'a> {
    jobs: Vec<i64>,
    attempts: Vec<i64>,
    positions: Vec<i64>,
    streams: Vec<&'static str>,
    bytes: Vec<&'a [u8]>,
}

impl Stage for Logging {
    type Answer = Vec<bool>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<bool>, Fault> {
        let ids: Vec<i64> = self.chunks.iter().filter_map(|piece| number::of(&piece.job)).collect();
        let statement = sheet.transaction.prepare_cached(CURRENT).await?;
        let rows = sheet.transaction.query(&statement, &[&ids]).await?;
        let current: HashSet<(i64, i64)> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, Fault>>()?;
        let mut kept = kept(sheet, &current).await?;
        let (mut answers, mut pieces) = (Vec::with_capacity(self.chunks.len()), Pieces::default());
        let bytes_max = sheet.desk.options.log_bytes_max;
        for piece in &self.chunks {
            let key = (number::of(&piece.job).unwrap_or(0), i64::from(piece.attempt));
            if !current.contains(&key) {
                answers.push(false);
                continue;
            }
            let kept_to = kept.entry(key).or_default();
            match chunk::keep(piece.offset, &piece.bytes, *kept_to, bytes_max) {
                chunk::Keep::Nothing => answers.push(true),
                chunk::Keep::TooMuch => answers.push(false),
                chunk::Keep::From { offset, bytes } => {
                    *kept_to = offset + u64::try_from(bytes.len()).unwrap_or(0);
                    pieces.jobs.push(key.0);
                    pieces.attempts.push(key.1);
                    pieces.positions.push(number::signed(offset));
                    pieces.streams.push(piece.stream.name());
                    pieces.bytes.push(bytes);
                    answers.push(true);
                }
            }
        }
        pieces.write(sheet).await?;
        Ok(answers)
    }
}

/// The number of stored bytes of each attempt.
async fn kept(
    sheet: &Sheet<'_>,
    attempts: &HashSet<(i64, i64)>,
) -> Result<HashMap<(i64, i64), u64>, Fault> {
    let (jobs, numbers): (Vec<i64>, Vec<i64>) = attempts.iter().copied().unzip();
    let statement = sheet.transaction.prepare_cached(KEPT).await?;
    let rows = sheet.transaction.query(&statement, &[&jobs, &numbers]).await?;
    let entry = |row: &tokio_postgres::Row| {
        Ok(((row.try_get(0)?, row.try_get(1)?), number::size(row.try_get(2)?)))
    };
    rows.iter().map(entry).collect()
}

impl Pieces<'_> {
    async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let Self { jobs, attempts, positions, streams, bytes } = self;
        let values: [&(dyn ToSql + Sync); 6] =
            [jobs, attempts, positions, streams, bytes, &sheet.now.0];
        exactly(sheet, INSERT, &values, jobs.len()).await
    }
}

const PAGE: &str = "SELECT attempt, position, stream, at, bytes FROM logs \
    WHERE job = $1 AND (attempt, position) > ($2, $3) \
    AND ($4::bigint IS NULL OR attempt = $4) ORDER BY attempt, position LIMIT $5";

pub(super) async fn logs(desk: &Desk, page: &LogPage) -> Result<Vec<LogChunk>, Fault> {
    let Some(id) = number::of(&page.job) else {
        return Ok(Vec::new());
    };
    // Attempt numbers start at one, so this is before the first.
    let after = page.after.map_or((0, 0), |(attempt, at)| (i64::from(attempt), number::signed(at)));
    let max = i64::try_from(page.max).unwrap_or(i64::MAX);
    let attempt = page.attempt.map(i64::from);
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(PAGE).await?;
    let values: [&(dyn ToSql + Sync); 5] = [&id, &after.0, &after.1, &attempt, &max];
    let piece = |row: &tokio_postgres::Row| {
        Ok(LogChunk {
            job: page.job.clone(),
            attempt: row::small(row, 0)?,
            offset: number::size(row.try_get(1)?),
            stream: row::named(row, 2, Stream::named)?.unwrap_or(Stream::Out),
            at: Timestamp(row.try_get(3)?),
            bytes: row.try_get::<_, Vec<u8>>(4)?.into(),
        })
    };
    connection.query(&statement, &values).await?.iter().map(piece).collect()
}
