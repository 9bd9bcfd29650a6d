//! Ends of attempts: the attempt is stored, and its job is queued again or final.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use model::{Ending, WorkerId};

use super::desk::{Desk, Sheet, Stage};
use super::draft::{Draft, Hold};
use super::fault::Fault;
use super::grants::Attempt;
use super::history;
use super::lease;
use super::plain::Plains;
use super::row::{self, finished_these};
use super::settle::{Edges, Settled, settle};
use crate::sums::{Sums, charge, newest};
use crate::transition::{self, After};
use crate::{End, Ended, Error, Provided, Run, number};

pub(super) const DOING: &str = "end attempts";

/// Ends attempts: first those that need more than one statement, then the plain ones. Values that
/// cannot be written fail before the first write.
pub(super) async fn complete(desk: Arc<Desk>, ends: Vec<End>) -> Result<Vec<Ended>, Error> {
    let desk = &*desk;
    let mut answers: Vec<Option<Ended>> = vec![None; ends.len()];
    let now = desk.now();
    let plains = Plains::of(desk, &ends, now);
    let others = (0..ends.len()).filter(|at| !plains.has(*at)).collect();
    fully(desk, &ends, others, &mut answers).await?;
    let written = plains.write(desk, now, &mut answers).await;
    desk.grants.end(over(&ends, &answers));
    written?;
    let left = (0..ends.len()).filter(|at| answers[*at].is_none()).collect();
    fully(desk, &ends, left, &mut answers).await?;
    Ok(answers.into_iter().flatten().collect())
}

/// Ends these attempts in a transaction.
async fn fully(
    desk: &Desk,
    ends: &[End],
    places: Vec<usize>,
    answers: &mut [Option<Ended>],
) -> Result<(), Error> {
    if places.is_empty() {
        return Ok(());
    }
    let stage = Completing { ends: places.iter().map(|at| ends[*at].clone()).collect() };
    for (at, answer) in places.into_iter().zip(desk.run(DOING, &stage).await?) {
        answers[at] = Some(answer);
    }
    desk.grants.end(over(ends, answers));
    Ok(())
}

/// The attempts that these answers ended.
fn over(ends: &[End], answers: &[Option<Ended>]) -> impl Iterator<Item = Attempt> {
    let accepted = ends
        .iter()
        .zip(answers)
        .filter(|(_, answer)| matches!(answer, Some(Ended::Accepted { .. })));
    accepted.filter_map(|(end, _)| Some((number::of(&end.job)?, end.attempt)))
}

/// Whether these ends may change other jobs. Two such transactions that change the same jobs could
/// deadlock.
pub(super) fn changes_others(desk: &Desk, ends: &[End]) -> bool {
    let recent = desk.recent();
    let is_free = |end: &End| {
        let record = number::of(&end.job).and_then(|id| recent.get(id));
        record.is_some_and(|record| record.n_dependents == 0)
    };
    !ends.iter().all(is_free)
}

/// Ends of attempts.
struct Completing {
    ends: Vec<End>,
}

impl Stage for Completing {
    type Answer = Vec<Ended>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Ended>, Fault> {
        let ids: Vec<i64> = self.ends.iter().filter_map(|end| number::of(&end.job)).collect();
        let mut draft = Draft::default();
        self.recall(sheet, &mut draft);
        draft.load(sheet, &ids, Hold::Hope).await?;
        let mut sums = Sums::new();
        let mut answers = Vec::with_capacity(self.ends.len());
        let past = self.pasts(sheet, &draft).await?;
        let kept = self.kept(sheet).await?;
        let silent = self.ends.iter().filter(|end| end.provided == Provided::Silence);
        let heard =
            lease::heard(sheet, &silent.map(|end| end.worker.to_string()).collect()).await?;
        let mut over: BTreeSet<String> = BTreeSet::new();
        for end in &self.ends {
            let is_heard =
                end.provided == Provided::Silence && heard.contains(&end.worker.to_string());
            let answer = one(sheet, &mut draft, (end, is_heard), (&past, &kept)).await?;
            if end.provided == Provided::Silence && matches!(answer, Ended::Accepted { .. }) {
                over.insert(end.worker.to_string());
            }
            charge(&mut sums, end, &answer);
            answers.push(answer);
        }
        lease::close(sheet, &over).await?;
        let runs = newest(&answers, sheet.desk.options.runs_max);
        let runs: Vec<&Run> = runs.into_iter().map(|(_, run)| run).collect();
        draft.write(sheet).await?;
        // Last: a transaction that charges the same tenant waits for this one from here to the
        // commit.
        tokio::try_join!(history::insert_runs(sheet, &runs), history::charge(sheet, &sums))?;
        Ok(answers)
    }
}

/// The worker and the ending of earlier attempts, by job and number.
type Pasts = HashMap<(i64, i64), (WorkerId, Option<Ending>)>;

pub(super) const PASTS: &str = concat!(
    "SELECT job, number, worker, ending FROM attempts WHERE job = ANY($1) UNION ALL \
     SELECT j.id, j.attempts, j.last_worker, 'succeeded' FROM ",
    finished_these!(),
    " WHERE j.claimed IS NOT NULL"
);

pub(super) const KEPT: &str = "SELECT job FROM keyed WHERE job = ANY($1) \
    UNION ALL SELECT job FROM logs WHERE job = ANY($1)";

impl Completing {
    /// Puts recently claimed records into the draft.
    fn recall(&self, sheet: &Sheet<'_>, draft: &mut Draft) {
        let mut recent = sheet.desk.recent();
        for end in &self.ends {
            let Some(id) = number::of(&end.job) else { continue };
            if let Some((record, charges)) = recent.take(id)
                && transition::is_current(&record, end.attempt, &end.worker)
            {
                draft.recall(id, record, charges);
            }
        }
    }

    /// The jobs without retention that have further data, which must be kept.
    async fn kept(&self, sheet: &Sheet<'_>) -> Result<HashSet<i64>, Fault> {
        let ends = self.ends.iter().filter(|end| end.forget);
        let jobs: Vec<i64> = ends.filter_map(|end| number::of(&end.job)).collect();
        if jobs.is_empty() {
            return Ok(HashSet::new());
        }
        let statement = sheet.transaction.prepare_cached(KEPT).await?;
        let rows = sheet.transaction.query(&statement, &[&jobs]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Reads the endings of attempts whose job has a different current attempt.
    async fn pasts(&self, sheet: &Sheet<'_>, draft: &Draft) -> Result<Pasts, Fault> {
        let mut jobs = Vec::new();
        for end in &self.ends {
            let Some(id) = number::of(&end.job) else { continue };
            let is_current = |record| transition::is_current(record, end.attempt, &end.worker);
            if !draft.get(id).is_some_and(is_current) {
                jobs.push(id);
            }
        }
        if jobs.is_empty() {
            return Ok(Pasts::new());
        }
        let statement = sheet.transaction.prepare_cached(PASTS).await?;
        let past = |row: &tokio_postgres::Row| {
            let worker = WorkerId::new(row.try_get(2)?);
            Ok(((row.try_get(0)?, row.try_get(1)?), (worker, row::named(row, 3, Ending::named)?)))
        };
        sheet.transaction.query(&statement, &[&jobs]).await?.iter().map(past).collect()
    }
}

async fn one(
    sheet: &Sheet<'_>,
    draft: &mut Draft,
    (end, is_heard): (&End, bool),
    (pasts, kept): (&Pasts, &HashSet<i64>),
) -> Result<Ended, Fault> {
    let Some(id) = number::of(&end.job) else {
        return Ok(Ended::Stale);
    };
    let current = draft.get_mut(id);
    let current = current.filter(|record| transition::is_current(record, end.attempt, &end.worker));
    let Some(record) = current else {
        return Ok(ended_before(draft, (id, end), pasts));
    };
    if is_heard {
        return Ok(Ended::Stale);
    }
    let edges = Edges::of(record);
    let is_forgotten = !kept.contains(&id) && transition::is_forgotten(record, end);
    let patience = &sheet.desk.options.patience;
    let Some(After { past, charged, run }) = transition::end(record, end, patience, sheet.now)
    else {
        return Ok(Ended::Stale);
    };
    let record = Arc::new(record.clone());
    if is_forgotten {
        draft.forgotten.insert(id);
    } else {
        draft.pasts.push((id, past));
    }
    let settled = if record.state.is_terminal() {
        settle(sheet, draft, (id, edges)).await?
    } else {
        Settled::default()
    };
    let Settled { released, cancelled, changed } = settled;
    Ok(Ended::Accepted { record, charged, run, released, cancelled, changed })
}

fn ended_before(draft: &Draft, (id, end): (i64, &End), pasts: &Pasts) -> Ended {
    let is_this = |worker: &WorkerId, ending| *worker == end.worker && ending == end.ending;
    let here = draft.pasts.iter().any(|(job, past)| {
        *job == id && past.number == end.attempt && is_this(&past.worker, past.ending)
    });
    let before = pasts.get(&(id, i64::from(end.attempt)));
    let before =
        before.is_some_and(|(worker, ending)| ending.is_some_and(|ending| is_this(worker, ending)));
    if here || before { Ended::Repeated } else { Ended::Stale }
}
