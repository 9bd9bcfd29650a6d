//! Revival of jobs that failed or were cancelled.

use model::{JobId, State};
use rusqlite::Result;

use super::row;
use super::writer::Desk;
use crate::plan::Known as _;
use crate::{Revived, number, transition};

pub(super) fn revive(desk: &mut Desk, jobs: &[JobId]) -> Result<Vec<Revived>> {
    jobs.iter().map(|id| one(desk, id)).collect()
}

fn one(desk: &mut Desk, id: &JobId) -> Result<Revived> {
    let Some(number) = number::of(id) else {
        return Ok(Revived::Unknown);
    };
    let Some(mut record) = row::either(&desk.connection, number)? else {
        return Ok(Revived::Unknown);
    };
    match record.state {
        State::Failed | State::Cancelled => {}
        State::Blocked | State::Queued | State::Claimed | State::Running | State::Succeeded => {
            return Ok(Revived::NotFinished(record.state));
        }
    }
    if let Some(key) = record.spec.dedupe_key.as_deref() {
        let tenant = record.spec.tenant.to_string();
        let holder = desk.connection.holder(&tenant, (&record.spec.kind, key))?;
        if let Some(holder) = holder {
            return Ok(Revived::Taken(number::id(holder)));
        }
    }
    if let Some(refusal) = desk.room.refusal(&record.spec.tenant, 1) {
        return Ok(Revived::Full(refusal));
    }
    transition::revive(&mut record, desk.now());
    let delete = "DELETE FROM finished WHERE id = ?1";
    row::one(desk.connection.prepare_cached(delete)?.execute([number])?)?;
    row::insert_job(&mut desk.connection.prepare_cached(row::INSERT_JOB)?, number, &record)?;
    desk.room.add(&record.spec.tenant);
    Ok(Revived::Done(Box::new(record)))
}
