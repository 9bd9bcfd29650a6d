//! The records that a stage reads and changes. It writes them together at its end.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use model::{Name, Record, Spec, TenantId, Timestamp};

use super::columns::{Changes, Ends, NewJobs, Pasts, Successes};
use super::desk::Sheet;
use super::fault::Fault;
use super::limits;
use super::notice;
use super::row::{self, finished_columns, finished_these, jobs_columns};
use super::write::{BACK, FINISH, GO, INSERT_PASTS, SUCCEED, UPDATE, go, insert_over};
use crate::Past;

/// The table of a record when the stage began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// None: the job is new.
    New,
    /// Unfinished, with this fence.
    Unfinished(u64),
    /// Finished, with this fence.
    Finished(u64),
}

/// Records by number, with their changes.
#[derive(Default)]
pub(super) struct Draft {
    entries: BTreeMap<i64, (From, Box<Record>)>,
    /// The usage of current attempts under limits that hold across schedulers.
    charges: BTreeMap<i64, String>,
    /// Attempts that ended.
    pub(super) pasts: Vec<(i64, Past)>,
    /// Finished jobs that are not stored.
    pub(super) forgotten: HashSet<i64>,
}

const READ: &str =
    concat!("SELECT ", jobs_columns!(), ", j.charges FROM jobs j WHERE j.id = ANY($1)");
const LOCK: &str = concat!(
    "SELECT ",
    jobs_columns!(),
    ", j.charges FROM jobs j WHERE j.id = ANY($1) ORDER BY j.id FOR UPDATE"
);
pub(super) const FINISHED: &str =
    concat!("SELECT ", finished_columns!(), " FROM ", finished_these!());

/// The protection of rows against changes after they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// None: after a change, the write fails and the stage begins again.
    Hope,
    /// A row lock.
    Lock,
}

impl Draft {
    /// Reads unfinished jobs that the draft does not have.
    pub(super) async fn load(
        &mut self,
        sheet: &Sheet<'_>,
        ids: &[i64],
        hold: Hold,
    ) -> Result<(), Fault> {
        let missing: Vec<i64> =
            ids.iter().copied().filter(|id| !self.entries.contains_key(id)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let sql = match hold {
            Hold::Hope => READ,
            Hold::Lock => LOCK,
        };
        let statement = sheet.transaction.prepare_cached(sql).await?;
        for row in sheet.transaction.query(&statement, &[&missing]).await? {
            let record = Box::new(row::read(&row)?);
            let from = From::Unfinished(record.fence);
            let id = row.try_get(0)?;
            self.charges
                .extend(row.try_get::<_, Option<String>>(row::N_COLUMNS)?.map(|text| (id, text)));
            self.entries.insert(id, (from, record));
        }
        Ok(())
    }

    /// Adds an unfinished job from the cache. If the record is outdated, the write fails.
    pub(super) fn recall(&mut self, id: i64, record: Arc<Record>, charges: Option<String>) {
        self.charges.extend(charges.map(|charges| (id, charges)));
        let record = Box::new(Arc::unwrap_or_clone(record));
        self.entries.insert(id, (From::Unfinished(record.fence), record));
    }

    /// Reads finished jobs that the draft does not have.
    pub(super) async fn load_finished(
        &mut self,
        sheet: &Sheet<'_>,
        ids: &[i64],
    ) -> Result<(), Fault> {
        let missing: Vec<i64> =
            ids.iter().copied().filter(|id| !self.entries.contains_key(id)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let statement = sheet.transaction.prepare_cached(FINISHED).await?;
        for row in sheet.transaction.query(&statement, &[&missing]).await? {
            let record = Box::new(row::read(&row)?);
            let from = From::Finished(record.fence);
            self.entries.insert(row.try_get(0)?, (from, record));
        }
        Ok(())
    }

    /// Adds a new job.
    pub(super) fn insert(&mut self, id: i64, record: Record) {
        self.entries.insert(id, (From::New, Box::new(record)));
    }

    /// The job of this number, finished or not, if the draft has it.
    pub(super) fn get(&self, id: i64) -> Option<&Record> {
        self.entries.get(&id).map(|(_, record)| &**record)
    }

    pub(super) fn get_mut(&mut self, id: i64) -> Option<&mut Record> {
        self.entries.get_mut(&id).map(|(_, record)| &mut **record)
    }

    /// Existing jobs with changes.
    pub(super) fn changed(&self) -> impl Iterator<Item = (i64, &Record)> {
        self.entries.iter().filter_map(|(id, (from, record))| match from {
            From::Unfinished(fence) | From::Finished(fence) => {
                (*fence != record.fence).then_some((*id, &**record))
            }
            From::New => None,
        })
    }

    /// The change of each tenant's number of jobs: one entry for each job.
    fn balance(&self) -> Vec<(TenantId, i64)> {
        let change = |(from, record): &(From, Box<Record>)| {
            let was = matches!(from, From::Unfinished(_));
            let is = !record.state.is_terminal();
            let by = i64::from(is) - i64::from(was);
            (by != 0).then(|| (record.spec.tenant.clone(), by))
        };
        self.entries.values().filter_map(change).collect()
    }

    /// Writes all changes. Fails if a row changed after it was read.
    pub(super) async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        let piles = self.sort(sheet.now)?;
        Box::pin(piles.write(sheet)).await?;
        let ended = self
            .charges
            .iter()
            .filter(|(id, _)| self.get(**id).is_some_and(|record| record.current.is_none()));
        let ended: Vec<&String> = ended.map(|(_, charges)| charges).collect();
        limits::release(sheet, &ended).await?;
        let ended = self.entries.iter().filter(|(_, (from, record))| {
            record.state.is_terminal() && !matches!(from, From::Finished(_))
        });
        notice::note(sheet, ended.map(|(id, (_, record))| (*id, &**record))).await?;
        sheet.outcome().balance.extend(self.balance());
        Ok(())
    }

    /// The changes by statement, ordered by number, or by key where a key is taken, so that no two
    /// transactions deadlock.
    fn sort(&self, now: Timestamp) -> Result<Piles<'_>, Fault> {
        let mut piles = Piles::default();
        let mut done: HashSet<i64> = HashSet::new();
        let mut pasts: Vec<&(i64, Past)> = self.pasts.iter().collect();
        pasts.sort_by_key(|(id, _)| *id);
        for (id, past) in pasts {
            match self.entries.get(id) {
                Some((From::Unfinished(fence), record))
                    if piles.successes.take((*id, *fence), record, past) =>
                {
                    done.insert(*id);
                }
                _ => piles.pasts.push(*id, past),
            }
        }
        let mut new: Vec<(i64, &Record)> = Vec::new();
        for (id, (from, record)) in self.entries.iter().filter(|(id, _)| !done.contains(id)) {
            let is_final = record.state.is_terminal();
            match from {
                From::New if is_final => piles.over.push((*id, record)),
                From::New => new.push((*id, record)),
                From::Unfinished(fence) | From::Finished(fence) if *fence == record.fence => {}
                From::Unfinished(fence) if self.forgotten.contains(id) => {
                    piles.gone.push((*id, *fence));
                }
                From::Unfinished(fence) if is_final => piles.ends.push((*id, *fence), record),
                From::Unfinished(fence) => piles.changes.push((*id, *fence), record, now),
                From::Finished(fence) => piles.back.push((*id, *fence), record, now),
            }
        }
        new.sort_by_key(|(_, record)| dedupe_key(&record.spec));
        for (id, record) in new {
            piles.new.push(id, record, now)?;
        }
        Ok(piles)
    }
}

/// The dedupe key of a job, with its scope. At most one unfinished job has it.
fn dedupe_key(spec: &Spec) -> Option<(&str, &Name, &TenantId)> {
    spec.dedupe_key.as_ref().map(|key| (key.as_str(), &spec.kind, &spec.tenant))
}

/// Records, grouped by statement.
#[derive(Default)]
struct Piles<'d> {
    new: NewJobs,
    /// Final at their submission.
    over: Vec<(i64, &'d Record)>,
    changes: Changes,
    successes: Successes,
    ends: Ends,
    /// With their fences.
    gone: Vec<(i64, u64)>,
    /// From the finished ones back to the queue.
    back: Changes,
    pasts: Pasts,
}

impl Piles<'_> {
    /// Prepares statements first: a statement that needs it would run later than one that does not,
    /// and all transactions must lock rows in the same order.
    async fn prepare(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        let piles = [
            (self.changes.id.len(), UPDATE),
            (self.successes.id.len(), SUCCEED),
            (self.ends.id.len(), FINISH),
            (self.gone.len(), GO),
            (self.back.id.len(), BACK),
            (self.pasts.job.len(), INSERT_PASTS),
        ];
        for (_, sql) in piles.into_iter().filter(|(n_rows, _)| *n_rows > 0) {
            sheet.transaction.prepare_cached(sql).await?;
        }
        Ok(())
    }

    async fn write(&self, sheet: &Sheet<'_>) -> Result<(), Fault> {
        self.prepare(sheet).await?;
        tokio::try_join!(
            self.new.write(sheet),
            self.changes.write(sheet),
            self.successes.write(sheet),
            self.ends.write(sheet),
            go(sheet, &self.gone),
            self.back.write_back(sheet),
            self.pasts.write(sheet),
        )?;
        for (id, record) in &self.over {
            insert_over(sheet, *id, record).await?;
        }
        Ok(())
    }
}
