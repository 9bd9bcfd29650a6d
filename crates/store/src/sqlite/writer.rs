//! The only writer thread. It commits all pending calls as a group, and answers once they are
//! durable.
//!
//! **Invariant:** an error of one call affects no other call of the same commit, unless the
//! database rolled back the whole transaction. Then all of them get the error.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{TenantId, Timestamp};
use rusqlite::hooks::Wal;
use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::disk::{Disk, What};
use super::fault::Broken;
use super::forget::History;
use super::numbers::Numbers;
use super::room::Room;
use crate::clock::{self, Steady};
use crate::recent::Recent;
use crate::{Commits, Error, Options};

/// Calls that may wait. Further callers wait for room.
pub(super) const CALLS_MAX: usize = 4_096;
/// Calls in one commit.
const BATCH_CALLS_MAX: usize = 1_024;
/// Approximate rows after which a commit takes no further call: while this commit becomes durable,
/// the next one is written.
const BATCH_WEIGHT_MAX: usize = 500;
/// Pages of the log (16 MB) that cause a checkpoint.
const LOG_PAGES_MAX: i32 = 4_096;

/// The context of a stage: the connection, in a transaction, and the state that is kept beside it.
pub(super) struct Desk {
    pub(super) connection: Connection,
    pub(super) options: Options,
    pub(super) clock: Arc<Steady>,
    /// The number of the next new job.
    pub(super) numbers: Arc<Numbers>,
    /// The numbers and limits of jobs. Counted again after a rollback.
    pub(super) room: Room,
    /// Recently written records. Cleared after a rollback.
    pub(super) recent: Recent<()>,
    /// The position of the search for histories with too many runs.
    pub(super) trimmed: Option<History>,
}

impl Desk {
    pub(super) fn new(
        connection: Connection,
        options: Options,
        (clock, numbers, room): (Arc<Steady>, Arc<Numbers>, Room),
    ) -> Self {
        Self { connection, options, clock, numbers, room, recent: Recent::default(), trimmed: None }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads the state beside the connection from the rows.
    fn look_again(&mut self) -> Result<()> {
        self.recent.clear();
        let n_jobs = "SELECT tenant, count(*) FROM jobs GROUP BY tenant";
        let mut statement = self.connection.prepare_cached(n_jobs)?;
        let rows = statement.query_map([], |row| {
            Ok((TenantId::new(row.get_ref(0)?.as_str()?), row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        self.room.set(rows.collect::<Result<_>>()?);
        Ok(())
    }

    /// Writes the state beside the connection in the same commit. A commit without changes needs no
    /// sync. Returns the number of the next job, if it was written.
    fn put_down(&self, n_changes_before: u64) -> Result<Option<i64>> {
        if self.connection.total_changes() == n_changes_before {
            return Ok(None);
        }
        let next_job = self.numbers.next_after_crash();
        self.write_next(next_job)?;
        Ok(Some(next_job))
    }

    fn write_next(&self, next_job: i64) -> Result<()> {
        let sql = "UPDATE meta SET next_job = ?1, latest = ?2";
        self.connection.prepare_cached(sql)?.execute([next_job, self.clock.now().0])?;
        Ok(())
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// A change within a transaction, with the way to answer its caller.
pub(super) trait Call: Send {
    /// The operation as a verb phrase, for errors.
    fn doing(&self) -> &'static str;
    /// The approximate work, in rows.
    fn weight(&self) -> usize;
    /// Runs the call, and keeps the answer.
    fn run(&mut self, desk: &mut Desk) -> Result<()>;
    /// Sends the answer or the error.
    fn answer(self: Box<Self>, outcome: Result<(), Error>);
}

/// A call, and the receiver of its answer.
pub(super) fn call<T, W>(
    (doing, weight): (&'static str, usize),
    work: W,
) -> (Box<dyn Call>, oneshot::Receiver<Result<T, Error>>)
where
    T: Send + 'static,
    W: FnOnce(&mut Desk) -> Result<T> + Send + 'static,
{
    let (reply, receiver) = oneshot::channel();
    (Box::new(Asked { doing, weight, work: Some(work), answer: None, reply }), receiver)
}

struct Asked<T, W> {
    doing: &'static str,
    weight: usize,
    work: Option<W>,
    answer: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, W: FnOnce(&mut Desk) -> Result<T> + Send> Call for Asked<T, W> {
    fn doing(&self) -> &'static str {
        self.doing
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn run(&mut self, desk: &mut Desk) -> Result<()> {
        if let Some(work) = self.work.take() {
            self.answer = Some(work(desk)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), Error>) {
        let Self { doing, answer, reply, .. } = *self;
        let missing = || Error::Unavailable { doing, cause: "it was not done".to_owned() };
        // A caller that dropped its future needs no answer.
        let _ = reply.send(outcome.and_then(|()| answer.ok_or_else(missing)));
    }
}

/// The state of the thread.
pub(super) struct Writer {
    desk: Desk,
    disk: Disk,
    calls: mpsc::Receiver<Box<dyn Call>>,
    log_pages: Arc<AtomicI32>,
    commits: Arc<Mutex<Commits>>,
    /// Whether the state beside the connection matches the rows.
    is_in_step: bool,
}

impl Writer {
    pub(super) fn new(
        mut desk: Desk,
        disk: Disk,
        calls: mpsc::Receiver<Box<dyn Call>>,
        commits: Arc<Mutex<Commits>>,
    ) -> Result<Self> {
        let log_pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&log_pages);
        // Replaces SQLite's automatic checkpoints, which delay an answer and hide errors.
        desk.connection.wal_hook(Some(move |_: &mut Wal, n_pages| {
            seen.store(n_pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { desk, disk, calls, log_pages, commits, is_in_step: false })
    }

    /// Runs until no caller is left.
    pub(super) fn run(mut self) {
        while let Some(first) = self.calls.blocking_recv() {
            let mut weight = first.weight();
            let mut batch = VecDeque::from([first]);
            while batch.len() < BATCH_CALLS_MAX && weight < BATCH_WEIGHT_MAX {
                let Ok(next) = self.calls.try_recv() else { break };
                weight = weight.saturating_add(next.weight());
                batch.push_back(next);
            }
            while !batch.is_empty() {
                self.commit(&mut batch);
            }
            if self.log_pages.load(Ordering::Relaxed) >= LOG_PAGES_MAX {
                self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
            }
        }
        self.let_numbers_go();
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// At the end, unused reserved numbers become the next ones.
    fn let_numbers_go(&self) {
        if !self.is_broken()
            && let Err(error) = self.desk.write_next(self.desk.numbers.next())
        {
            self.disk.broken.note("write down the next number", &error);
        }
    }

    /// Runs calls from the front of the batch, commits, and answers them. If the database rolls
    /// back, the calls that have not begun stay in the batch.
    fn commit(&mut self, batch: &mut VecDeque<Box<dyn Call>>) {
        if self.is_broken() {
            for call in batch.drain(..) {
                let error = self.disk.broken.error(call.doing());
                call.answer(error.map_or(Ok(()), Err));
            }
            return;
        }
        let began = clock::stopwatch();
        let is_alone = batch.len() == 1;
        let mut done: Vec<Box<dyn Call>> = Vec::with_capacity(batch.len());
        let n_changes = self.desk.connection.total_changes();
        let mut failed = self.begin().err();
        if failed.is_some() {
            done.extend(batch.drain(..));
        }
        while failed.is_none() {
            let Some(mut call) = batch.pop_front() else { break };
            let outcome = if is_alone { call.run(&mut self.desk) } else { self.step(&mut *call) };
            let Err(error) = outcome else {
                done.push(call);
                continue;
            };
            let told = self.disk.broken.note(call.doing(), &error);
            call.answer(Err(told));
            let is_over = self.desk.connection.is_autocommit() || self.is_broken();
            if is_alone || is_over {
                failed = Some(error);
            }
        }
        self.disk.begin();
        let committed = match failed {
            Some(error) => Err(error),
            None => self.desk.put_down(n_changes).and_then(|next_job| {
                self.desk.run("COMMIT")?;
                Ok(next_job)
            }),
        };
        if committed.is_err() {
            self.roll_back();
        }
        let is_change = committed.is_ok() && self.desk.connection.total_changes() != n_changes;
        self.hand_over(done, &committed, is_change.then_some(began));
    }

    /// Answers the calls once the commit is durable. `began` is the time of the first change.
    fn hand_over(
        &self,
        done: Vec<Box<dyn Call>>,
        committed: &Result<Option<i64>>,
        began: Option<Instant>,
    ) {
        let outcome = |call: &dyn Call| {
            let told =
                committed.as_ref().map_err(|error| self.disk.broken.note(call.doing(), error));
            told.map(|_| ())
        };
        let done: Vec<_> = done.into_iter().map(|call| (outcome(&*call), call)).collect();
        let what = if began.is_some() { What::Change } else { What::NoChange };
        let commits = Arc::clone(&self.commits);
        let next_job = committed.as_ref().ok().copied().flatten();
        let numbers = Arc::clone(&self.desk.numbers);
        let tell = move |broken: &Broken| {
            if let Some(next_job) = next_job.filter(|_| !broken.is_set()) {
                numbers.keep(next_job);
            }
            if let Some(began) = began {
                count(&commits, done.len(), began.elapsed());
            }
            for (outcome, call) in done {
                let broken = broken.error(call.doing()).map_or(Ok(()), Err);
                call.answer(outcome.and(broken));
            }
        };
        self.disk.commit(what, Box::new(tell), !self.calls.is_empty());
    }

    /// Runs one call of several in a savepoint, so that a failure leaves nothing behind.
    fn step(&mut self, call: &mut dyn Call) -> Result<()> {
        self.desk.run("SAVEPOINT call")?;
        let outcome = call.run(&mut self.desk);
        if outcome.is_err() && !self.desk.connection.is_autocommit() {
            self.desk.run("ROLLBACK TO call")?;
            self.desk.run("RELEASE call")?;
            // Its numbers are skipped: the commit writes the next one.
            self.desk.look_again()?;
            return outcome;
        }
        outcome.and_then(|()| self.desk.run("RELEASE call"))
    }

    fn begin(&mut self) -> Result<()> {
        self.desk.run("BEGIN IMMEDIATE")?;
        if !self.is_in_step {
            self.desk.look_again()?;
            self.is_in_step = true;
        }
        Ok(())
    }

    /// Ends an open transaction, and clears the state that came from it.
    fn roll_back(&mut self) {
        if !self.desk.connection.is_autocommit()
            && let Err(error) = self.desk.run("ROLLBACK")
        {
            self.disk.broken.note("roll back", &error);
        }
        self.is_in_step = false;
    }

    fn is_broken(&self) -> bool {
        self.disk.broken.is_set()
    }

    /// A checkpoint that fails for lack of space is retried later: the log holds everything.
    fn checkpoint(&mut self, pragma: &str) {
        if self.is_broken() {
            return;
        }
        self.log_pages.store(0, Ordering::Relaxed);
        if let Err(error) = self.desk.connection.query_row(pragma, [], |_| Ok(())) {
            self.disk.broken.note("copy the log to the file", &error);
        }
    }
}

fn count(commits: &Mutex<Commits>, size: usize, took: Duration) {
    let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
    commits.sizes.add(u64::try_from(size).unwrap_or(u64::MAX));
    commits.micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
}
