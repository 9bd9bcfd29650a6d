//! Claims of jobs.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Ask, Record, Timestamp, WorkerId};
use rusqlite::{CachedStatement, Result, params};

use super::fault::unreadable;
use super::row;
use super::writer::Desk;
use crate::recent::Recent;
use crate::{Claim, Claimed, document, number, transition};

pub(super) fn claim(desk: &mut Desk, claims: Vec<Claim>) -> Result<Vec<Claimed>> {
    let now = desk.now();
    let Desk { connection, recent, .. } = desk;
    let mut stage = Stage {
        now,
        recent,
        finder: row::finder(connection)?,
        update: connection.prepare_cached(CLAIM)?,
        greet: connection.prepare_cached(SESSION)?,
        greeted: BTreeSet::new(),
    };
    claims.into_iter().map(|claim| stage.one(&claim)).collect()
}

/// The parts that all claims share, prepared once.
struct Stage<'d> {
    now: Timestamp,
    recent: &'d mut Recent<()>,
    finder: CachedStatement<'d>,
    update: CachedStatement<'d>,
    greet: CachedStatement<'d>,
    greeted: BTreeSet<WorkerId>,
}

impl Stage<'_> {
    fn one(&mut self, claim: &Claim) -> Result<Claimed> {
        let Some(id) = number::of(&claim.job) else {
            return Ok(Claimed::Lost(None));
        };
        if let Some((mut record, ())) = self.recent.take(id)
            && transition::claim(Arc::make_mut(&mut record), claim, self.now)
            && self.write((id, &record), claim)?
        {
            return self.won((id, record), claim);
        }
        let Some(mut record) = row::found(&mut self.finder, id)? else {
            return Ok(Claimed::Lost(None));
        };
        if !transition::claim(&mut record, claim, self.now) {
            return Ok(Claimed::Lost(Some(Box::new(record))));
        }
        row::one(usize::from(self.write((id, &record), claim)?))?;
        self.won((id, Arc::new(record)), claim)
    }

    /// `false`: the row has a different fence.
    fn write(&mut self, (id, record): (i64, &Record), claim: &Claim) -> Result<bool> {
        let worker = claim.worker.to_string();
        let holds = claim.holds.as_ref().map(write_ask).transpose()?;
        let fence = record.fence.cast_signed() - 1;
        let pool = claim.pool.to_string();
        let values = params![id, fence, worker, self.now.0, holds, claim.why, pool];
        Ok(self.update.execute(values)? == 1)
    }

    fn won(&mut self, (id, record): (i64, Arc<Record>), claim: &Claim) -> Result<Claimed> {
        if !self.greeted.contains(&claim.worker) {
            self.greet.execute(params![claim.worker.to_string(), self.now.0])?;
            self.greeted.insert(claim.worker.clone());
        }
        self.recent.keep(id, Arc::clone(&record), ());
        Ok(Claimed::Won(record))
    }
}

const CLAIM: &str = "UPDATE jobs SET state = 'claimed', fence = fence + 1, \
    attempts = attempts + 1, worker = ?3, claimed = ?4, holds = ?5, why = ?6, pool = ?7 \
    WHERE id = ?1 AND fence = ?2";

/// A worker that never connected gets an expired lease, so that the reaper finds its attempts.
const SESSION: &str = "INSERT INTO sessions (worker, generation, lease_until, has_left) \
    VALUES (?1, 0, ?2, 0) ON CONFLICT DO NOTHING";

fn write_ask(ask: &Ask) -> Result<String> {
    document::write_ask(ask).map_err(|error| unreadable(&error.to_string()))
}
