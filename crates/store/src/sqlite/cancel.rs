//! Jobs are called off, or given up because they are too late.

use model::{JobId, Record};
use rusqlite::{Connection, Result};

use super::settle::{self, Settled};
use super::writer::Desk;
use super::{row, settle::unfinished};
use crate::transition::{self, Off};
use crate::{Cancelled, number};

pub(super) fn cancel(desk: &mut Desk, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
    jobs.iter().map(|id| cancel_one(desk, id)).collect()
}

pub(super) fn give_up(desk: &mut Desk, jobs: &[JobId]) -> Result<Vec<Cancelled>> {
    jobs.iter().map(|id| give_up_one(desk, id)).collect()
}

fn cancel_one(desk: &mut Desk, id: &JobId) -> Result<Cancelled> {
    let Some((number, mut record)) = unfinished(&desk.connection, id)? else {
        return final_before(&desk.connection, id);
    };
    let fence = record.fence;
    match transition::cancel(&mut record, desk.now()) {
        Off::Final => done(desk, number, record),
        Off::Stopping => {
            row::update(&desk.connection, fence, &record)?;
            Ok(Cancelled::Stopping(Box::new(record)))
        }
        Off::StoppingAlready => Ok(Cancelled::Stopping(Box::new(record))),
        Off::Before => Ok(Cancelled::Unchanged(Box::new(record))),
    }
}

fn give_up_one(desk: &mut Desk, id: &JobId) -> Result<Cancelled> {
    let Some((number, mut record)) = unfinished(&desk.connection, id)? else {
        return final_before(&desk.connection, id);
    };
    if transition::give_up(&mut record, desk.now()) {
        return done(desk, number, record);
    }
    Ok(Cancelled::Unchanged(Box::new(record)))
}

fn done(desk: &mut Desk, number: i64, record: Record) -> Result<Cancelled> {
    let Settled { released, cancelled, changed } = settle::finish(desk, number, &record)?;
    Ok(Cancelled::Done { record: Box::new(record), released, cancelled, changed })
}

fn final_before(connection: &Connection, id: &JobId) -> Result<Cancelled> {
    let record = match number::of(id) {
        Some(number) => row::finished(connection, number)?,
        None => None,
    };
    Ok(record.map_or(Cancelled::Unknown, |record| Cancelled::Unchanged(Box::new(record))))
}
