//! Jobs are cancelled, or given up because they are too late.

use model::{JobId, Record};
use rusqlite::{Connection, Result};

use super::row;
use super::settle::{Before, Finish, Settled, unfinished};
use super::writer::Desk;
use crate::transition::{self, Off};
use crate::{Cancelled, number};

pub(super) fn cancel(desk: &mut Desk, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
    jobs.iter().map(|id| cancel_one(desk, id)).collect()
}

pub(super) fn give_up(desk: &mut Desk, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
    jobs.iter().map(|id| give_up_one(desk, id)).collect()
}

fn cancel_one(desk: &mut Desk, id: &JobId) -> Result<Cancelled> {
    let Some(mut record) = unfinished(&desk.connection, id)? else {
        return final_before(&desk.connection, id);
    };
    let before = Before::of(&record);
    match transition::cancel(&mut record, desk.now()) {
        Off::Final => done(desk, record, before),
        Off::Stopping => {
            row::update(&desk.connection, before.fence, &record)?;
            Ok(Cancelled::Stopping(Box::new(record)))
        }
        Off::StoppingAlready => Ok(Cancelled::Stopping(Box::new(record))),
        Off::Before => Ok(Cancelled::Unchanged(Box::new(record))),
    }
}

fn give_up_one(desk: &mut Desk, id: &JobId) -> Result<Cancelled> {
    let Some(mut record) = unfinished(&desk.connection, id)? else {
        return final_before(&desk.connection, id);
    };
    let before = Before::of(&record);
    if transition::give_up(&mut record, desk.now()) {
        return done(desk, record, before);
    }
    Ok(Cancelled::Unchanged(Box::new(record)))
}

fn done(desk: &mut Desk, record: Record, before: Before) -> Result<Cancelled> {
    let settled = Finish::begin(&desk.connection, desk.now())?.finish(&record, before, None)?;
    let Settled { released, cancelled, changed, finished } =
        settled.ok_or(rusqlite::Error::StatementChangedRows(0))?;
    for tenant in &finished {
        desk.room.remove(tenant);
    }
    Ok(Cancelled::Done { record: Box::new(record), released, cancelled, changed })
}

fn final_before(connection: &Connection, id: &JobId) -> Result<Cancelled> {
    let record = match number::of(id) {
        Some(number) => row::finished(connection, number)?,
        None => None,
    };
    Ok(record.map_or(Cancelled::Unknown, |record| Cancelled::Unchanged(Box::new(record))))
}
