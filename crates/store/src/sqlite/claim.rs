//! Jobs are taken out of the queue, each for one worker.

use std::collections::BTreeSet;

use model::{Ask, WorkerId};
use rusqlite::{CachedStatement, Result, params};

use super::fault::unreadable;
use super::row;
use super::writer::Desk;
use crate::{Claim, Claimed, document, number, transition};

pub(super) fn claim(desk: &mut Desk, claims: Vec<Claim>) -> Result<Vec<Claimed>> {
    let now = desk.now();
    let mut answers = Vec::with_capacity(claims.len());
    let mut workers: BTreeSet<WorkerId> = BTreeSet::new();
    let mut finder = row::finder(&desk.connection)?;
    let mut update = desk.connection.prepare_cached(CLAIM)?;
    for claim in claims {
        let Some(id) = number::of(&claim.job) else {
            answers.push(Claimed::Lost(None));
            continue;
        };
        let Some(mut record) = row::found(&mut finder, id)? else {
            answers.push(Claimed::Lost(None));
            continue;
        };
        if !transition::claim(&mut record, &claim, now) {
            answers.push(Claimed::Lost(Some(Box::new(record))));
            continue;
        }
        if !workers.contains(&claim.worker) {
            let values = params![claim.worker.to_string(), now.0];
            desk.connection.prepare_cached(SESSION)?.execute(values)?;
            workers.insert(claim.worker.clone());
        }
        write(&mut update, (id, record.fence), &claim, now.0)?;
        answers.push(Claimed::Won(Box::new(record)));
    }
    Ok(answers)
}

const CLAIM: &str = "UPDATE jobs SET state = 'claimed', fence = fence + 1, \
    attempts = attempts + 1, worker = ?3, claimed = ?4, holds = ?5, why = ?6, pool = ?7 \
    WHERE id = ?1 AND fence = ?2";

/// A worker that never came has a lease that is over: what it is given is not lost with it.
const SESSION: &str = "INSERT INTO sessions (worker, generation, lease_until, has_left) \
    VALUES (?1, 0, ?2, 0) ON CONFLICT DO NOTHING";

fn write(
    update: &mut CachedStatement<'_>,
    (id, fence): (i64, u64),
    claim: &Claim,
    now_ms: i64,
) -> Result<()> {
    let worker = claim.worker.to_string();
    let holds = claim.holds.as_ref().map(write_ask).transpose()?;
    let fence = fence.cast_signed() - 1;
    let values = params![id, fence, worker, now_ms, holds, claim.why, claim.pool.to_string()];
    row::one(update.execute(values)?)
}

fn write_ask(ask: &Ask) -> Result<String> {
    document::write_ask(ask).map_err(|error| unreadable(&error.to_string()))
}
