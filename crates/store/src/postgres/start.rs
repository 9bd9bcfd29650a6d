//! Starts and progress of attempts.

use std::collections::{HashMap, HashSet};

use model::{Record, Timestamp};
use tokio_postgres::types::ToSql;

use super::claim::rounds;
use super::columns::clean;
use super::desk::Desk;
use super::fault::Fault;
use crate::{Report, Start, number, transition};

/// A repeated start changes nothing. A started job leaves its place in the queue.
pub(super) const START: &str = "UPDATE jobs j SET state = 'running', \
    started = coalesce(j.started, $4), place = NULL, \
    fence = j.fence + CASE j.state WHEN 'claimed' THEN 1 ELSE 0 END \
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u(id, attempt, worker) \
    WHERE j.id BETWEEN u.id AND u.id AND j.attempts = u.attempt \
    AND j.worker = u.worker RETURNING j.id, j.fence";

pub(super) async fn start(desk: &Desk, starts: &[Start]) -> Result<Vec<bool>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(START).await?;
    let mut answers = vec![false; starts.len()];
    for round in rounds(starts, |start| number::of(&start.job)) {
        let round = sorted(round, |at| number::of(&starts[at].job));
        let ids: Vec<i64> = round.iter().map(|(id, _)| *id).collect();
        let column = |at: usize| i64::from(starts[at].attempt);
        let attempts: Vec<i64> = round.iter().map(|(_, at)| column(*at)).collect();
        let workers: Vec<String> =
            round.iter().map(|(_, at)| starts[*at].worker.to_string()).collect();
        let now_ms = desk.now().0;
        let values: [&(dyn ToSql + Sync); 4] = [&ids, &attempts, &workers, &now_ms];
        let rows = connection.query(&statement, &values).await?;
        let current: HashMap<i64, u64> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, number::size(row.try_get(1)?))))
            .collect::<Result<_, Fault>>()?;
        let mut recent = desk.recent();
        for (id, at) in round {
            answers[at] = current.contains_key(&id);
            let is_started = |record: &&mut Record| current.get(&id) == Some(&(record.fence + 1));
            if let Some(record) = recent.get_mut(id).filter(is_started) {
                transition::start(record, Timestamp(now_ms));
            }
        }
    }
    Ok(answers)
}

pub(super) const PROGRESS: &str = "UPDATE jobs j SET fraction = u.fraction, note = u.note, \
    stage = u.stage, fence = j.fence + 1 \
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], \
    $6::text[]) AS u(id, attempt, worker, fraction, note, stage) \
    WHERE j.id BETWEEN u.id AND u.id AND j.attempts = u.attempt \
    AND j.worker = u.worker RETURNING j.id";

pub(super) async fn progress(desk: &Desk, reports: &[Report]) -> Result<Vec<bool>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(PROGRESS).await?;
    let mut answers = vec![false; reports.len()];
    for round in rounds(reports, |report| number::of(&report.job)) {
        let round = sorted(round, |at| number::of(&reports[at].job));
        let ids: Vec<i64> = round.iter().map(|(id, _)| *id).collect();
        let asked: Vec<&Report> = round.iter().map(|(_, at)| &reports[*at]).collect();
        let attempts: Vec<i64> = asked.iter().map(|report| i64::from(report.attempt)).collect();
        let workers: Vec<String> = asked.iter().map(|report| report.worker.to_string()).collect();
        let fractions: Vec<i64> =
            asked.iter().map(|report| report.progress.fraction.in_thousandths()).collect();
        let notes: Vec<String> = asked.iter().map(|report| clean(&report.progress.note)).collect();
        let stages: Vec<String> =
            asked.iter().map(|report| clean(&report.progress.stage)).collect();
        let values: [&(dyn ToSql + Sync); 6] =
            [&ids, &attempts, &workers, &fractions, &notes, &stages];
        let rows = connection.query(&statement, &values).await?;
        let current: HashSet<i64> =
            rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        for (id, at) in round {
            answers[at] = current.contains(&id);
        }
    }
    Ok(answers)
}

/// The indexes of a round with their ids, in the order of ids, so that two calls do not deadlock.
fn sorted(round: Vec<usize>, id: impl Fn(usize) -> Option<i64>) -> Vec<(i64, usize)> {
    let mut sorted: Vec<(i64, usize)> =
        round.into_iter().filter_map(|at| Some((id(at)?, at))).collect();
    sorted.sort_unstable();
    sorted
}
