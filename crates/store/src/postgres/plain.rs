//! The usual completion: the job succeeds, returns nothing, and has no dependent. It takes one
//! statement without an explicit transaction, so no lock is held between statements.

use std::sync::Arc;

use foldhash::{HashSet, HashSetExt as _};
use model::{Counts, Measured, Record, Spec, Timestamp};

use super::columns::Successes;
use super::complete::DOING;
use super::desk::Desk;
use super::fault::Fault;
use super::row::read_some;
use super::write::{SUCCEED, SUCCEED_AND_GO, SUCCEED_AT_ONCE};
use crate::sums::newest;
use crate::transition::{self, After};
use crate::{End, Ended, Error, Past, minute, number};

/// The plain ends of a call, if the cached records of their jobs are current.
#[derive(Default)]
pub(super) struct Plains {
    kept: Plain,
    /// Ends of jobs that are not stored.
    forgotten: Plain,
}

/// Plain ends that are written in one statement.
#[derive(Default)]
struct Plain {
    /// In the order of the call, as the answers are.
    ends: Vec<Foreseen>,
    answers: Vec<Ended>,
    /// A job has a key or a group, or this is not its first attempt.
    has_more: bool,
}

/// One end: its index in the call, and its effect.
struct Foreseen {
    at: usize,
    id: i64,
    /// The fence before the end.
    fence: u64,
    past: Past,
}

impl Plains {
    pub(super) fn of(desk: &Desk, ends: &[End], now: Timestamp) -> Self {
        let mut plains = Self::default();
        // Ends of the same job take effect in their order.
        let mut ids: HashSet<i64> = HashSet::with_capacity(ends.len());
        let all = ends.iter().filter_map(|end| number::of(&end.job));
        let again: HashSet<i64> = all.filter(|id| !ids.insert(*id)).collect();
        let mut recent = desk.recent();
        for (at, end) in ends.iter().enumerate() {
            let id = number::of(&end.job).filter(|id| !again.contains(id));
            let Some(id) = id else { continue };
            let Some((record, charges)) = recent.take(id) else { continue };
            let is_current = transition::is_current(&record, end.attempt, &end.worker);
            if is_current && charges.is_none() && is_plain(&record, end) {
                let is_forgotten = transition::is_forgotten(&record, end);
                let plain = if is_forgotten { &mut plains.forgotten } else { &mut plains.kept };
                plain.foresee((desk, now), (at, id, end), record);
            } else {
                recent.keep(id, record, charges);
            }
        }
        plains
    }

    /// Whether the end with this index is among them.
    pub(super) fn has(&self, at: usize) -> bool {
        [&self.kept, &self.forgotten].into_iter().any(|plain| plain.has(at))
    }

    /// Writes them. An end whose cached record was outdated gets no answer, and needs a
    /// transaction.
    pub(super) async fn write(
        self,
        desk: &Desk,
        now: Timestamp,
        answers: &mut [Option<Ended>],
    ) -> Result<(), Error> {
        let Self { mut kept, forgotten } = self;
        // A job with further data is stored after all.
        let left = forgotten.write_down((desk, now), SUCCEED_AND_GO, answers).await?;
        kept.ends.extend(left.ends);
        kept.answers.extend(left.answers);
        let sql = if kept.has_more { SUCCEED } else { SUCCEED_AT_ONCE };
        kept.write_down((desk, now), sql, answers).await.map(drop)
    }
}

impl Plain {
    fn foresee(
        &mut self,
        (desk, now): (&Desk, Timestamp),
        (at, id, end): (usize, i64, &End),
        mut record: Arc<Record>,
    ) {
        let fence = record.fence;
        let patience = &desk.options.patience;
        let after = transition::end(Arc::make_mut(&mut record), end, patience, now);
        let Some(After { past, charged, run }) = after else { return };
        let Spec { dedupe_key, group, .. } = &*record.spec;
        let is_first = record.counts == Counts { attempts: 1, ..Counts::default() };
        self.has_more |= !is_first || dedupe_key.is_some() || group.is_some();
        self.ends.push(Foreseen { at, id, fence, past });
        let (released, cancelled, changed) = (Vec::new(), Vec::new(), Vec::new());
        self.answers.push(Ended::Accepted { record, charged, run, released, cancelled, changed });
    }

    fn has(&self, at: usize) -> bool {
        self.ends.binary_search_by_key(&at, |end| end.at).is_ok()
    }

    /// Writes the ends and sets their answers. Returns those that need a transaction.
    async fn write_down(
        self,
        (desk, now): (&Desk, Timestamp),
        sql: &str,
        answers: &mut [Option<Ended>],
    ) -> Result<Self, Error> {
        if self.ends.is_empty() {
            return Ok(self);
        }
        let some = desk.writing(DOING, || self.write(desk, sql, now)).await?;
        Ok(self.answer(desk, some.as_ref(), answers))
    }

    /// Returns the jobs that ended, or `None` if all did.
    async fn write(
        &self,
        desk: &Desk,
        sql: &str,
        now: Timestamp,
    ) -> Result<Option<HashSet<i64>>, Fault> {
        let newest = newest(&self.answers, desk.options.runs_max);
        let is_newest = |at: usize| newest.binary_search_by_key(&at, |(at, _)| *at).is_ok();
        let mut sorted: Vec<usize> = (0..self.ends.len()).collect();
        sorted.sort_unstable_by_key(|at| self.ends[*at].id);
        let mut successes = Successes::default();
        for at in sorted {
            let (Foreseen { id, fence, past, .. }, answer) = (&self.ends[at], &self.answers[at]);
            let Ended::Accepted { record, charged, run, .. } = answer else { continue };
            let run = run.as_deref().filter(|_| is_newest(at));
            successes.push((*id, *fence), record, past, (Some(*charged), run));
        }
        let connection = desk.connection().await?;
        let statement = connection.prepare_cached(sql).await?;
        let (minute, part) = (minute::of(now), desk.part());
        let values = successes.values(&now, &minute, &part);
        read_some(&connection.query(&statement, &values).await?)
    }

    /// Sets the answers of the ends of `some`, or of all for `None`. Returns the rest.
    fn answer(
        self,
        desk: &Desk,
        some: Option<&HashSet<i64>>,
        answers: &mut [Option<Ended>],
    ) -> Self {
        let has_ended = |id: &i64| some.is_none_or(|some| some.contains(id));
        let ended = self.ends.iter().zip(&self.answers).filter(|(end, _)| has_ended(&end.id));
        desk.room.change(ended.filter_map(|(_, answer)| match answer {
            Ended::Accepted { record, .. } => Some((&record.spec.tenant, -1)),
            Ended::Repeated | Ended::Stale => None,
        }));
        let mut left = Self::default();
        for (end, answer) in self.ends.into_iter().zip(self.answers) {
            if has_ended(&end.id) {
                answers[end.at] = Some(answer);
            } else {
                left.ends.push(end);
                left.answers.push(answer);
            }
        }
        left
    }
}

/// Whether an end has no effect but that its job is final.
fn is_plain(record: &Record, end: &End) -> bool {
    transition::is_bare(record, end) && end.error.is_none() && end.measured == Measured::default()
}
