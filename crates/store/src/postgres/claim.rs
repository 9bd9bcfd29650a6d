//! Claims: one guarded statement for all jobs of a call.

use std::collections::BTreeSet;
use std::sync::Arc;

use deadpool_postgres::GenericClient;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use model::{Record, Timestamp};
use tokio_postgres::types::ToSql;

use super::columns::Column;
use super::desk::Desk;
use super::fault::Fault;
use super::limits;
use super::row::{self, all_or_some, jobs_columns, read_some};
use crate::{Claim, Claimed, document, number, transition};

/// Claims by id and fence: an earlier claim raised the fence, and the rest of the guard repeats
/// what the claim was decided on. A worker that never connected gets an expired lease, so that the
/// reaper finds its attempts. `grants.rs` explains the rows of `grants`.
///
/// No indexed column changes, so Postgres writes no index. The job keeps its place in its queue
/// until its attempt starts, and queue scans skip it.
macro_rules! claim {
    ($won:literal, $answer:expr) => {
        concat!(
            "WITH greeted AS (INSERT INTO sessions (worker, generation, lease_until, has_left) \
            SELECT w.worker, 0, $8, false FROM unnest($9::text[]) AS w(worker) \
            ON CONFLICT DO NOTHING), \
            granted AS (INSERT INTO grants (call, worker, at, jobs) \
            SELECT $10, w.worker, $8, array_agg(w.id) FROM unnest($1::bigint[], $3::text[]) \
            AS w(id, worker) GROUP BY w.worker), \
            dropped AS (DELETE FROM grants WHERE call = ANY($11))",
            $won,
            "UPDATE jobs j SET state = 'claimed', fence = j.fence + 1, attempts = j.attempts + 1, \
            worker = u.worker, claimed = $8, holds = u.holds, why = u.why, pool = u.pool, \
            charges = u.charges, due = NULL \
            FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], \
            $6::text[], $7::text[]) AS u(id, fence, worker, holds, why, pool, charges) \
            WHERE j.id BETWEEN u.id AND u.id AND j.fence = u.fence AND j.state = 'queued' \
            AND NOT j.on_hold RETURNING ",
            $answer
        )
    };
}

const CLAIM: &str = claim!(" ", jobs_columns!());
/// For claims of which all records are known.
pub(super) const CLAIM_KNOWN: &str =
    claim!(", won AS (", concat!("j.id) SELECT ", all_or_some!("won")));

const LOST: &str = concat!("SELECT ", jobs_columns!(), " FROM jobs j WHERE j.id = ANY($1)");

/// Claims without limits: none of them waits for a lock of a limit.
pub(super) async fn claim(desk: &Desk, claims: &[Claim]) -> Result<Vec<Claimed>, Fault> {
    let connection = desk.connection().await?;
    claim_on(&connection, (desk, desk.now()), claims).await
}

/// Claims on a connection that may be in a transaction.
pub(super) async fn claim_on(
    connection: &impl GenericClient,
    (desk, now): (&Desk, Timestamp),
    claims: &[Claim],
) -> Result<Vec<Claimed>, Fault> {
    let mut answers: Vec<Option<Claimed>> = vec![None; claims.len()];
    for round in rounds(claims, |claim| number::of(&claim.job)) {
        let claims: Vec<&Claim> = round.iter().map(|at| &claims[*at]).collect();
        for (at, answer) in round.into_iter().zip(once((desk, now), connection, &claims).await?) {
            answers[at] = Some(answer);
        }
    }
    Ok(answers.into_iter().map(|answer| answer.unwrap_or(Claimed::Lost(None))).collect())
}

async fn once(
    (desk, now): (&Desk, Timestamp),
    connection: &impl GenericClient,
    claims: &[&Claim],
) -> Result<Vec<Claimed>, Fault> {
    let mut won = write((desk, now), connection, claims).await?;
    let ids: Vec<i64> = claims.iter().filter_map(|claim| number::of(&claim.job)).collect();
    let lost: Vec<i64> = ids.iter().copied().filter(|id| !won.contains_key(id)).collect();
    let mut others: HashMap<i64, Record> = HashMap::default();
    if !lost.is_empty() {
        let statement = connection.prepare_cached(LOST).await?;
        for row in connection.query(&statement, &[&lost]).await? {
            others.insert(row.try_get(0)?, row::read(&row)?);
        }
    }
    let answer = |id: i64| match won.remove(&id) {
        Some(record) => Claimed::Won(record),
        None => Claimed::Lost(others.remove(&id).map(Box::new)),
    };
    Ok(ids.into_iter().map(answer).collect())
}

async fn write(
    (desk, now): (&Desk, Timestamp),
    connection: &impl GenericClient,
    claims: &[&Claim],
) -> Result<HashMap<i64, Arc<Record>>, Fault> {
    // In the order of ids, so that two schedulers do not deadlock.
    let mut sorted: Vec<(i64, &Claim)> =
        claims.iter().filter_map(|claim| Some((number::of(&claim.job)?, *claim))).collect();
    sorted.sort_unstable_by_key(|(id, _)| *id);
    let ids: Vec<i64> = sorted.iter().map(|(id, _)| *id).collect();
    let fences: Vec<i64> = sorted.iter().map(|(_, claim)| number::signed(claim.fence)).collect();
    let workers: Vec<String> = sorted.iter().map(|(_, claim)| claim.worker.to_string()).collect();
    let ask =
        |(_, claim): &(i64, &Claim)| claim.holds.as_ref().map(document::write_ask).transpose();
    let holds: Column<Option<String>> = sorted.iter().map(ask).collect::<Result<_, _>>()?;
    let whys: Vec<&str> = sorted.iter().map(|(_, claim)| claim.why.as_str()).collect();
    let pools: Vec<String> = sorted.iter().map(|(_, claim)| claim.pool.to_string()).collect();
    let known = known(desk, &sorted, now);
    let sql = if known.is_some() { CLAIM_KNOWN } else { CLAIM };
    let statement = connection.prepare_cached(sql).await?;
    let charges: Column<Option<String>> =
        sorted.iter().map(|(_, claim)| limits::charges(&claim.limits)).collect::<Result<_, _>>()?;
    let greeted: BTreeSet<&str> = workers.iter().map(String::as_str).collect();
    let greeted: Vec<&str> = greeted.into_iter().collect();
    let (call, over) = (desk.grants.call(), desk.grants.take_over());
    let values: [&(dyn ToSql + Sync); 11] =
        [&ids, &fences, &workers, &holds, &whys, &pools, &charges, &now.0, &greeted, &call, &over];
    let rows = connection.query(&statement, &values).await?;
    let mut won: HashMap<i64, Arc<Record>> = HashMap::with_capacity(ids.len());
    if let Some(known) = known {
        let some = read_some(&rows)?;
        let is_won = |id: &i64| some.as_ref().is_none_or(|some| some.contains(id));
        won.extend(known.into_iter().filter(|(id, _)| is_won(id)));
    } else {
        for row in rows {
            won.insert(row.try_get(0)?, Arc::new(row::read(&row)?));
        }
    }
    let attempts = won.iter().map(|(id, record)| (*id, record.counts.attempts));
    desk.grants.begin(call, &attempts.collect::<Vec<_>>());
    Ok(won)
}

/// The records after these claims, if all of them are in the cache of recent records.
fn known(desk: &Desk, claims: &[(i64, &Claim)], now: Timestamp) -> Option<Vec<(i64, Arc<Record>)>> {
    let mut recent = desk.recent();
    let known = claims.iter().map(|(id, claim)| {
        let (mut record, _) = recent.take(*id)?;
        transition::claim(Arc::make_mut(&mut record), claim, now).then_some((*id, record))
    });
    known.collect()
}

/// Keeps the records of won claims for their ends.
pub(super) fn keep(desk: &Desk, claims: &[Claim], answers: &[Claimed]) {
    let mut recent = desk.recent();
    for (claim, answer) in claims.iter().zip(answers) {
        if let (Some(id), Claimed::Won(record)) = (number::of(&claim.job), answer)
            && let Ok(charges) = limits::charges(&claim.limits)
        {
            recent.keep(id, Arc::clone(record), charges);
        }
    }
}

/// Splits the indexes of a list into rounds. No id is in one round twice, because a statement sees
/// each row once. Entries without an id are left out.
pub(super) fn rounds<T>(list: &[T], id: impl Fn(&T) -> Option<i64>) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut seen: HashSet<i64> = HashSet::with_capacity(list.len());
    for (at, entry) in list.iter().enumerate() {
        let Some(id) = id(entry) else { continue };
        if rounds.is_empty() || !seen.insert(id) {
            seen = HashSet::from_iter([id]);
            rounds.push(Vec::new());
        }
        if let Some(round) = rounds.last_mut() {
            round.push(at);
        }
    }
    rounds
}
