//! Changes of waiting jobs.

use model::{JobId, State};
use rusqlite::Result;

use super::row;
use super::settle::unfinished;
use super::writer::Desk;
use crate::{Amend, Amended, number, transition};

pub(super) fn amend(desk: &mut Desk, jobs: &[JobId], amend: Amend) -> Result<Vec<Amended>> {
    jobs.iter().map(|id| one(desk, id, amend)).collect()
}

fn one(desk: &mut Desk, id: &JobId, amend: Amend) -> Result<Amended> {
    let Some(mut record) = unfinished(&desk.connection, id)? else {
        let record = match number::of(id) {
            Some(number) => row::finished(&desk.connection, number)?,
            None => None,
        };
        return Ok(record.map_or(Amended::Unknown, |record| Amended::NotWaiting(record.state)));
    };
    match record.state {
        State::Blocked | State::Queued => {
            let fence = record.fence;
            if transition::amend(&mut record, amend) {
                row::update(&desk.connection, fence, &record)?;
            }
            Ok(Amended::Done(Box::new(record)))
        }
        State::Claimed | State::Running | State::Succeeded | State::Failed | State::Cancelled => {
            Ok(Amended::NotWaiting(record.state))
        }
    }
}
