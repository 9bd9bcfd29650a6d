//! A store in one `SQLite` file: one thread writes, one waits for the disk, two read.
//!
//! Each stage has a file with its SQL and the conversion of its rows. The change of a record is in
//! `transition.rs`, for every store alike.

mod open;
mod backup;
mod migrate;
mod fault;
mod disk;
mod writer;
mod numbers;
mod room;
mod reader;
mod row;
mod submit;
mod known;
mod claim;
mod start;
mod log;
mod complete;
mod settle;
mod cancel;
mod amend;
mod revive;
mod lease;
mod lead;
mod note;
mod series;
mod list;
mod read;
mod settings;
mod history;
mod notice;
mod forget;
mod store;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use model::Timestamp;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Steady;
use crate::{Commits, Error, Options, Reply};
use disk::Disk;
use fault::Broken;
use numbers::Numbers;
use reader::Read;
use room::Room;
use writer::{CALLS_MAX, Call, Desk, Writer};

pub use backup::{Backup, backup, check};
pub(crate) use open::to_read;

/// A store in one `SQLite` file. A drop finishes all pending calls first.
pub struct Sqlite {
    clock: Arc<Steady>,
    numbers: Arc<Numbers>,
    room: Room,
    broken: Broken,
    commits: Arc<Mutex<Commits>>,
    /// `None` during the drop, and in a store that is opened to read.
    calls: Option<mpsc::Sender<Box<dyn Call>>>,
    /// Empty for a store in memory, which has one connection for all.
    reads: Vec<mpsc::Sender<Read>>,
    readers: Vec<JoinHandle<()>>,
    /// The thread that writes, and the thread that waits for the disk.
    writers: Vec<JoinHandle<()>>,
}

/// The reader thread: a long list should not delay the query of one job.
#[derive(Clone, Copy)]
enum Lane {
    One,
    Many,
}

impl Sqlite {
    /// Opens a file, or makes one. Refuses a file that is damaged, newer or of another program, and
    /// does not change it.
    pub fn open(path: &Path, options: Options) -> Result<Self, Error> {
        let connection = open::file(path, options.now())?;
        let connections = [open::reader(path)?, open::reader(path)?];
        let (disk, waits) = Disk::of(path, Broken::default())?;
        let mut store = Self::begin(connection, options, disk.clone())?;
        store.writers.push(waits);
        for connection in connections {
            store.add_reader(connection, disk.clone())?;
        }
        Ok(store)
    }

    /// Opens an existing file, also while a scheduler uses it. Writes are refused.
    #[expect(clippy::needless_pass_by_value, reason = "as all that open one")]
    pub fn open_to_read(path: &Path, options: Options) -> Result<Self, Error> {
        let connection = to_read(path)?;
        let clock = Arc::new(Steady::new(options.clock(), Timestamp(0)));
        let (numbers, broken) = (Arc::new(Numbers::from(1)), Broken::default());
        let (commits, calls, disk) = (Arc::default(), None, Disk::none(broken.clone()));
        let room = Room::new(&options);
        let (reads, readers, writers) = (Vec::new(), Vec::new(), Vec::new());
        let mut store =
            Self { clock, numbers, room, broken, commits, calls, reads, readers, writers };
        store.add_reader(connection, disk)?;
        Ok(store)
    }

    fn add_reader(&mut self, connection: Connection, disk: Disk) -> Result<(), Error> {
        let (sender, receiver) = mpsc::channel(CALLS_MAX);
        let work = move || reader::run(&connection, &disk, receiver);
        self.readers.push(spawn("store-read", work)?);
        self.reads.push(sender);
        Ok(())
    }

    /// A store in memory, which ends with the process.
    pub fn in_memory(options: Options) -> Result<Self, Error> {
        let connection = open::memory(options.now())?;
        Self::begin(connection, options, Disk::none(Broken::default()))
    }

    /// Finishes all pending calls, and copies the log to the file.
    pub fn close(self) {
        drop(self);
    }

    /// Limits the size of the file from now on. `None` means the limit of `SQLite`. Writes beyond
    /// it fail with [`Error::Full`] until there is room.
    pub fn limit(&self, pages_max: Option<u32>) -> Reply<'_, ()> {
        self.write(("limit the file", 1), move |desk| {
            let pages_max = pages_max.unwrap_or(u32::MAX - 1);
            let pragma = format!("PRAGMA max_page_count = {pages_max}");
            desk.connection.query_row(&pragma, [], |_| Ok(()))
        })
    }

    fn begin(connection: Connection, options: Options, disk: Disk) -> Result<Self, Error> {
        let cannot = |error: rusqlite::Error| {
            Error::Unusable(format!("could not read what is in the store: {error}"))
        };
        let (latest, next_job) = connection
            .query_row("SELECT latest, next_job FROM meta", [], |row| {
                Ok((Timestamp(row.get(0)?), row.get(1)?))
            })
            .map_err(cannot)?;
        let clock = Arc::new(Steady::new(options.clock(), latest));
        let numbers = Arc::new(Numbers::from(next_job));
        let (calls, receiver) = mpsc::channel(CALLS_MAX);
        let broken = disk.broken.clone();
        let room = Room::new(&options);
        let beside = (Arc::clone(&clock), Arc::clone(&numbers), room.clone());
        let desk = Desk::new(connection, options, beside);
        let commits = Arc::default();
        let writer = Writer::new(desk, disk, receiver, Arc::clone(&commits));
        let writer = writer.map_err(cannot)?;
        let writers = vec![spawn("store-write", move || writer.run())?];
        let (calls, reads, readers) = (Some(calls), Vec::new(), Vec::new());
        Ok(Self { clock, numbers, room, broken, commits, calls, reads, readers, writers })
    }

    fn write<T, W>(&self, (doing, weight): (&'static str, usize), work: W) -> Reply<'_, T>
    where
        T: Send + 'static,
        W: FnOnce(&mut Desk) -> rusqlite::Result<T> + Send + 'static,
    {
        let (call, receiver) = writer::call((doing, weight), work);
        let calls = self.calls.as_ref();
        Box::pin(async move {
            match calls {
                Some(calls) if calls.send(call).await.is_ok() => self.answer(doing, receiver).await,
                _ => Err(self.gone(doing)),
            }
        })
    }

    fn read<T, W>(&self, lane: Lane, doing: &'static str, work: W) -> Reply<'_, T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let lane = match lane {
            Lane::One => self.reads.first(),
            Lane::Many => self.reads.last(),
        };
        let Some(reads) = lane else {
            return self.write((doing, 1), move |desk| work(&desk.connection));
        };
        let (read, receiver) = reader::read(doing, work);
        Box::pin(async move {
            match reads.send(read).await {
                Ok(()) => self.answer(doing, receiver).await,
                Err(_) => Err(self.gone(doing)),
            }
        })
    }

    async fn answer<T>(
        &self,
        doing: &'static str,
        receiver: oneshot::Receiver<Result<T, Error>>,
    ) -> Result<T, Error> {
        receiver.await.unwrap_or_else(|_| Err(self.gone(doing)))
    }

    /// The error if a thread is gone, whose last action is unknown.
    fn gone(&self, doing: &'static str) -> Error {
        let gone = || Error::Broken { doing, cause: "the store's thread is gone".to_owned() };
        self.broken.error(doing).unwrap_or_else(gone)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // Readers first: the last connection that closes removes the log.
        self.reads.clear();
        let join = |threads: Vec<JoinHandle<()>>| {
            // A thread that panicked has answered its callers already.
            for thread in threads {
                drop(thread.join());
            }
        };
        join(std::mem::take(&mut self.readers));
        self.calls = None;
        join(std::mem::take(&mut self.writers));
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| Error::Unusable(format!("no thread for the store: {error}")))
}

#[cfg(test)]
mod tests;
