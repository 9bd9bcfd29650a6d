//! The context of a stage: a connection, in a transaction if it takes more than one statement, and
//! the state that is kept beside the database.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Transaction};
use foldhash::HashMap;
use model::{TenantId, Timestamp};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, mpsc};

use super::clock::Offset;
use super::fault::{Doubt, Fault};
use super::forget::History;
use super::grants::Grants;
use super::marks::Marks;
use super::old::Walk;
use super::queues::Queues;
use super::room::Room;
use super::spent::Settled;
use super::tasks::Tasks;
use super::tell::Told;
use crate::clock::Steady;
use crate::recent::Recent;
use crate::{Error, Options, number};

/// Tries of a stage that conflicts with concurrent transactions.
const TRIES_MAX: u32 = 20;
/// Longer than the statement timeout of the database: after this time no answer will come.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// Interval of reading the database's clock and of counting jobs. Slow counts are less frequent.
const REFRESH_EVERY: Duration = Duration::from_secs(10);
/// Limit of concurrent slow queries of users, and the timeout to wait for one of these slots.
const QUESTIONS_MAX: usize = 6;
const QUESTION_WAITS: Duration = Duration::from_secs(5);
/// Pairs of usage rows. There are so many that two schedulers rarely share one, because they would
/// wait for each other's commits.
const PARTS: u32 = 4_096;

pub(super) struct Desk {
    pool: Pool,
    pub(super) options: Options,
    clock: Steady,
    offset: Offset,
    pub(super) room: Room,
    pub(super) queues: Queues,
    /// Records that were read or claimed lately, each with its attempt's usage of limits.
    recent: std::sync::Mutex<Recent<Option<String>>>,
    pub(super) grants: Grants,
    /// The start of queue scans.
    pub(super) marks: Marks,
    /// The start of the search for old jobs.
    pub(super) walk: Walk,
    /// The last history that was trimmed. The next step continues after it.
    trimmed: std::sync::Mutex<History>,
    teller: mpsc::Sender<Told>,
    lost: std::sync::Mutex<Told>,
    /// The charges of past minutes.
    pub(super) settled: Settled,
    /// The usage row of the next call.
    part: AtomicU32,
    /// Reports of workers about their attempts are written in the order of their arrival.
    words: RwLock<()>,
    /// Limits slow queries of users, so that the renewal of leases has free connections.
    questions: Arc<Semaphore>,
    pub(super) tasks: Tasks,
}

/// A stage of several statements. A conflict starts it again.
pub(super) trait Stage: Sync {
    /// The result of the stage.
    type Answer: Send;

    /// Runs the stage up to the commit.
    fn run<'a>(
        &'a self,
        sheet: &'a Sheet<'a>,
    ) -> impl Future<Output = Result<Self::Answer, Fault>> + Send + 'a;
}

/// One try of a stage.
pub(super) struct Sheet<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) desk: &'a Desk,
    pub(super) now: Timestamp,
    /// The effects outside the database, which happen after the commit.
    pub(super) outcome: std::sync::Mutex<Outcome>,
}

/// The effects of a commit outside the database.
#[derive(Default)]
pub(super) struct Outcome {
    /// Tenants with one job more or fewer, one entry for each job.
    pub(super) balance: Vec<(TenantId, i64)>,
    /// Queues that the transaction confirmed.
    pub(super) queues: Vec<i64>,
    /// The notification of the peers.
    pub(super) told: Told,
}

impl Sheet<'_> {
    pub(super) fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces jobs at these places of their queues. A job without a place does not wait for a
    /// worker.
    pub(super) fn tell_work(&self, standing: impl IntoIterator<Item = (i64, Option<i64>)>) {
        let standing = standing.into_iter().filter_map(|(queue, place)| Some((queue, place?)));
        self.outcome().told.work.extend(standing);
    }
}

impl Desk {
    pub(super) async fn open(
        pool: Pool,
        options: Options,
        teller: mpsc::Sender<Told>,
    ) -> Result<Self, Error> {
        let offset = Offset::new(options.skew_ms);
        let clock = options.clock.clone().unwrap_or_else(|| offset.clock());
        let desk = Self {
            pool,
            clock: Steady::new(clock, Timestamp(0)),
            options,
            offset,
            room: Room::default(),
            queues: Queues::default(),
            recent: std::sync::Mutex::default(),
            grants: Grants::default(),
            marks: Marks::default(),
            walk: Walk::default(),
            trimmed: std::sync::Mutex::default(),
            teller,
            lost: std::sync::Mutex::default(),
            settled: Settled::default(),
            part: AtomicU32::new(any() % PARTS * 2),
            words: RwLock::new(()),
            questions: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            tasks: Tasks::default(),
        };
        desk.refresh().await.map_err(|fault| fault.tell("open the store", Doubt::None))?;
        Ok(desk)
    }

    /// The row of usage, of two, that the call before did not use. A transaction that adds to a row
    /// waits for the commit of the one before.
    pub(super) fn part(&self) -> i32 {
        let part = self.part.fetch_xor(1, Ordering::Relaxed);
        i32::try_from(part).unwrap_or(0)
    }

    /// The database's time, unless a test sets the time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time that a test sets. `None` lets the database use its clock.
    pub(super) fn told_time(&self) -> Option<i64> {
        self.options.clock.as_ref().map(|_| self.now().0)
    }

    pub(super) fn trimmed(&self) -> std::sync::MutexGuard<'_, History> {
        self.trimmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn recent(&self) -> std::sync::MutexGuard<'_, Recent<Option<String>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn connection(&self) -> Result<Object, Fault> {
        Ok(self.pool.get().await?)
    }

    /// The number of callers that wait for a connection.
    #[cfg(test)]
    pub(super) fn n_waiting(&self) -> usize {
        self.pool.status().waiting
    }

    #[cfg(test)]
    pub(super) fn n_connections(&self) -> usize {
        self.pool.status().size
    }

    /// Runs reports of workers one after the other.
    pub(super) async fn in_turn<T>(&self, work: impl Future<Output = T>) -> T {
        let _turn = self.words.write().await;
        work.await
    }

    /// As `in_turn`, but successive calls may run in parallel, because they are about different
    /// attempts.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let _turn = self.words.read().await;
        work.await
    }

    /// Permission for a slow query of a user.
    pub(super) async fn question(
        &self,
        doing: &'static str,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let leave = Arc::clone(&self.questions).acquire_owned();
        if let Ok(Ok(leave)) = tokio::time::timeout(QUESTION_WAITS, leave).await {
            return Ok(leave);
        }
        let cause = "too much is being asked at once".to_owned();
        Err(Error::Unavailable { doing, cause })
    }

    /// Runs statements that change nothing.
    pub(super) async fn reading<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Error> {
        self.tasks.check(doing)?;
        answered(work).await.map_err(|fault| self.failed(fault, doing, Doubt::None))
    }

    /// Runs one atomic statement, and retries it after a conflict.
    pub(super) async fn writing<T, W: Future<Output = Result<T, Fault>>>(
        &self,
        doing: &'static str,
        work: impl Fn() -> W,
    ) -> Result<T, Error> {
        self.tasks.check(doing)?;
        let mut answer = answered(work()).await;
        for _ in 0..3 {
            let Err(Fault::Conflict) = answer else { break };
            answer = answered(work()).await;
        }
        answer.map_err(|fault| self.failed(fault, doing, Doubt::IfLost))
    }

    /// Runs a stage until it is committed or fails.
    pub(super) async fn run<S: Stage>(
        &self,
        doing: &'static str,
        stage: &S,
    ) -> Result<S::Answer, Error> {
        self.tasks.check(doing)?;
        for _ in 1..TRIES_MAX {
            match self.once(stage).await {
                Ok(answer) => return Ok(answer),
                Err((Fault::Conflict, _)) => tokio::task::yield_now().await,
                Err((fault, doubt)) => return Err(self.failed(fault, doing, doubt)),
            }
        }
        self.once(stage).await.map_err(|(fault, doubt)| self.failed(fault, doing, doubt))
    }

    async fn once<S: Stage>(&self, stage: &S) -> Result<S::Answer, (Fault, Doubt)> {
        let sure = |fault: Fault| (fault, Doubt::None);
        let mut connection = self.connection().await.map_err(sure)?;
        let begun = answered(async { Ok(connection.transaction().await?) }).await;
        let transaction = begun.map_err(sure)?;
        let (now, outcome) = (self.now(), std::sync::Mutex::default());
        let sheet = Sheet { transaction: &transaction, desk: self, now, outcome };
        let answer = answered(Box::pin(stage.run(&sheet))).await.map_err(sure)?;
        let outcome = sheet.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        let committed = answered(async { Ok(transaction.commit().await?) }).await;
        committed.map_err(|fault| (fault, Doubt::IfLost))?;
        self.take_note(outcome, now);
        Ok(answer)
    }

    /// The error for the caller. If the database did not answer, all pooled connections are
    /// dropped, because each of them may be dead too.
    pub(super) fn failed(&self, fault: Fault, doing: &'static str, doubt: Doubt) -> Error {
        if matches!(fault, Fault::Silence) {
            self.pool.retain(|_, _| false);
        }
        fault.tell(doing, doubt)
    }

    /// Applies the effects of a commit.
    fn take_note(&self, outcome: Outcome, now: Timestamp) {
        self.room.change(outcome.balance.iter().map(|(tenant, by)| (tenant, *by)));
        self.queues.are_sure(outcome.queues, now);
        self.tell(outcome.told);
    }

    /// Notifies the peers.
    pub(super) fn tell(&self, told: Told) {
        if !told.is_empty() {
            self.marks.lower(&told);
            // If too many notifications wait, the periodic scans of the peers find the rest.
            if let Err(TrySendError::Full(told) | TrySendError::Closed(told)) =
                self.teller.try_send(told)
            {
                self.lost().add(told.lost());
            }
        }
    }

    /// The notifications that the full channel rejected.
    pub(super) fn take_lost(&self) -> Told {
        std::mem::take(&mut self.lost())
    }

    fn lost(&self) -> std::sync::MutexGuard<'_, Told> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the database's clock and counts jobs. Returns the duration.
    async fn refresh(&self) -> Result<Duration, Fault> {
        let mut connection = self.connection().await?;
        self.offset.measure(&connection).await?;
        let begun = self.now();
        let transaction = connection.transaction().await?;
        transaction.batch_execute(READ_ALL).await?;
        let rows = transaction.query(COUNT, &[]).await?;
        transaction.commit().await?;
        let mut counts: HashMap<TenantId, u64> = HashMap::default();
        for row in rows {
            let n_jobs: i64 = row.try_get(1)?;
            counts.insert(TenantId::new(row.try_get(0)?), number::size(n_jobs));
        }
        self.room.set(counts);
        Ok(Duration::from_millis(self.now().since(begun).0.max(0).unsigned_abs()))
    }

    /// Refreshes the state beside the database until the store is dropped.
    pub(super) async fn keep_fresh(self: Arc<Self>) {
        let desk = Arc::downgrade(&self);
        drop(self);
        let mut pause = REFRESH_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let Some(desk) = desk.upgrade() else { return };
            // Counting may take 2 % of the time.
            let took = desk.reading("count jobs", desk.refresh()).await.unwrap_or_default();
            pause = REFRESH_EVERY.max(took * 50);
        }
    }
}

/// The answer of the database, or an error after `ANSWER_MAX`.
async fn answered<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let answer = tokio::time::timeout(ANSWER_MAX, work).await;
    answer.unwrap_or(Err(Fault::Silence))
}

/// A number that differs between processes, also on machines that start alike.
fn any() -> u32 {
    let [.., a, b] = RandomState::new().hash_one(()).to_le_bytes();
    u32::from(a) << 8 | u32::from(b)
}

/// Counting reads the whole table. The settings for short reads would make the planner sort it.
pub(super) const READ_ALL: &str = "SET LOCAL enable_seqscan = on";
const COUNT: &str = "SELECT tenant, count(*) FROM jobs GROUP BY tenant";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unresponsive_database_times_out() {
        let silent = answered(std::future::pending::<Result<(), Fault>>()).await;
        assert!(matches!(silent, Err(Fault::Silence)));
        assert!(answered(async { Ok(1) }).await.is_ok());
    }
}
