//! Output of attempts.

use model::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::row;
use super::writer::Desk;
use crate::{LogChunk, LogPage, Stream, chunk, number};

const IS_CURRENT: &str = "SELECT 1 FROM jobs \
    WHERE id = ?1 AND attempts = ?2 AND worker IS NOT NULL";

const END: &str = "SELECT position + length(bytes) FROM logs \
    WHERE job = ?1 AND attempt = ?2 ORDER BY position DESC LIMIT 1";

const INSERT: &str = "INSERT INTO logs (job, attempt, position, stream, at, bytes) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) fn log(desk: &mut Desk, chunks: &[LogChunk]) -> Result<Vec<bool>> {
    let now = desk.now();
    let mut is_current = desk.connection.prepare_cached(IS_CURRENT)?;
    let mut end = desk.connection.prepare_cached(END)?;
    let mut insert = desk.connection.prepare_cached(INSERT)?;
    let mut answers = Vec::with_capacity(chunks.len());
    for piece in chunks {
        let id = number::of(&piece.job).unwrap_or(0);
        let attempt = piece.attempt;
        if is_current.query_row(params![id, attempt], |_| Ok(())).optional()?.is_none() {
            answers.push(false);
            continue;
        }
        let kept_to = end.query_row(params![id, attempt], |row| row.get::<_, i64>(0)).optional()?;
        let kept_to = kept_to.unwrap_or(0).unsigned_abs();
        match chunk::keep(piece.offset, &piece.bytes, kept_to, desk.options.log_bytes_max) {
            chunk::Keep::Nothing => answers.push(true),
            chunk::Keep::TooMuch => answers.push(false),
            chunk::Keep::From { offset, bytes } => {
                let (position, stream) = (row::count(offset), piece.stream.name());
                insert.execute(params![id, attempt, position, stream, now.0, bytes])?;
                answers.push(true);
            }
        }
    }
    Ok(answers)
}

const PAGE: &str = "SELECT attempt, position, stream, at, bytes FROM logs \
    WHERE job = ?1 AND (attempt, position) > (?2, ?3) AND (?4 IS NULL OR attempt = ?4) \
    ORDER BY attempt, position LIMIT ?5";

pub(super) fn logs(connection: &Connection, page: &LogPage) -> Result<Vec<LogChunk>> {
    let Some(id) = number::of(&page.job) else {
        return Ok(Vec::new());
    };
    // Attempt numbers start at one, so this is before the first.
    let (attempt, position) = page.after.map_or((0, 0), |(attempt, at)| (attempt, row::count(at)));
    let max = i64::try_from(page.max).unwrap_or(i64::MAX);
    let piece = |row: &Row<'_>| {
        Ok(LogChunk {
            job: page.job.clone(),
            attempt: row.get(0)?,
            offset: row.get::<_, i64>(1)?.unsigned_abs(),
            stream: row::named(row, 2, Stream::named)?.unwrap_or(Stream::Out),
            at: Timestamp(row.get(3)?),
            bytes: row.get::<_, Vec<u8>>(4)?.into(),
        })
    };
    connection
        .prepare_cached(PAGE)?
        .query_map(params![id, attempt, position, page.attempt, max], piece)?
        .collect()
}
