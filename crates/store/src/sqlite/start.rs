//! Starts and progress of attempts.

use model::Progress;
use rusqlite::{OptionalExtension as _, Result, params};

use super::writer::Desk;
use crate::{Report, Start, number, transition};

const START: &str = "UPDATE jobs SET state = 'running', started = ?4, fence = fence + 1 \
    WHERE id = ?1 AND attempts = ?2 AND worker = ?3 AND state = 'claimed'";

const IS_CURRENT: &str = "SELECT 1 FROM jobs WHERE id = ?1 AND attempts = ?2 AND worker = ?3";

pub(super) fn start(desk: &mut Desk, starts: &[Start]) -> Result<Vec<bool>> {
    let now = desk.now();
    let Desk { connection, recent, .. } = desk;
    let mut update = connection.prepare_cached(START)?;
    let mut is_current = connection.prepare_cached(IS_CURRENT)?;
    let mut answers = Vec::with_capacity(starts.len());
    for start in starts {
        let Some(id) = number::of(&start.job) else {
            answers.push(false);
            continue;
        };
        let worker = start.worker.to_string();
        let n_rows = update.execute(params![id, start.attempt, worker, now.0])?;
        if let Some(record) = recent.get_mut(id).filter(|_| n_rows == 1) {
            transition::start(record, now);
        }
        let mut known = || is_current.query_row(params![id, start.attempt, worker], |_| Ok(()));
        answers.push(n_rows == 1 || known().optional()?.is_some());
    }
    Ok(answers)
}

const PROGRESS: &str = "UPDATE jobs SET fraction = ?4, note = ?5, stage = ?6, fence = fence + 1 \
    WHERE id = ?1 AND attempts = ?2 AND worker = ?3";

pub(super) fn progress(desk: &mut Desk, reports: &[Report]) -> Result<Vec<bool>> {
    let mut update = desk.connection.prepare_cached(PROGRESS)?;
    let mut answers = Vec::with_capacity(reports.len());
    for report in reports {
        let Some(id) = number::of(&report.job) else {
            answers.push(false);
            continue;
        };
        let Progress { fraction, note, stage } = &report.progress;
        let (worker, fraction) = (report.worker.to_string(), fraction.in_thousandths());
        let values = params![id, report.attempt, worker, fraction, note, stage];
        answers.push(update.execute(values)? == 1);
    }
    Ok(answers)
}
