//! The thread that waits for the disk: while one commit becomes durable, the next is made.
//!
//! **Invariant:** no caller gets an answer about a commit before it is durable, neither a writer
//! nor a reader of its rows. The log is one file, so a sync for the newest commit covers all
//! earlier ones.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::fault::Broken;
use super::spawn;
use crate::Error;

/// Commits and reads that may wait for the disk. Further ones wait for room.
const WAITING_MAX: usize = 64;

/// Syncs the log.
type Flush = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Answers callers, or reports that the disk failed.
type Tell = Box<dyn FnOnce(&Broken) + Send>;

struct Waiting {
    /// The kind: a commit with changes, one without, or a read of other commits.
    what: What,
    tell: Tell,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Change,
    NoChange,
    Read,
}

/// The channel to that thread. A store in memory has none, and nothing to sync.
#[derive(Clone)]
pub(super) struct Disk {
    pub(super) broken: Broken,
    thread: Option<(SyncSender<Waiting>, Flush)>,
    /// Commits that readers may see and that may not be durable.
    n_open: Arc<AtomicUsize>,
}

impl Disk {
    /// For a store in memory.
    pub(super) fn none(broken: Broken) -> Self {
        Self { broken, thread: None, n_open: Arc::default() }
    }

    /// For a store in this open file, which has its log.
    pub(super) fn of(path: &Path, broken: Broken) -> Result<(Self, JoinHandle<()>), Error> {
        let log = log(path).map_err(|error| {
            Error::Unusable(format!("the log of `{}` cannot be opened: {error}", path.display()))
        })?;
        Self::by(move || log.sync_data(), broken)
    }

    /// For a store whose commits are durable after `sync`.
    pub(super) fn by(
        sync: impl Fn() -> io::Result<()> + Send + Sync + 'static,
        broken: Broken,
    ) -> Result<(Self, JoinHandle<()>), Error> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let sync: Flush = Arc::new(sync);
        let own = Arc::clone(&sync);
        let disk = Self { broken, thread: Some((sender, sync)), n_open: Arc::default() };
        let (broken, n_open) = (disk.broken.clone(), Arc::clone(&disk.n_open));
        let thread = spawn("store-sync", move || run(&*own, &broken, &receiver, &n_open))?;
        Ok((disk, thread))
    }

    /// A commit begins: later reads may see it. [`Self::commit`] must follow.
    pub(super) fn begin(&self) {
        self.n_open.fetch_add(1, Ordering::SeqCst);
    }

    /// The commit is made, or failed. Calls `tell` as soon as it is durable. The writer waits for
    /// the disk itself, unless it has more to do or a caller waits already.
    pub(super) fn commit(&self, what: What, tell: Tell, is_busy: bool) {
        let one = Waiting { what, tell };
        match &self.thread {
            Some((_, sync)) if !is_busy && self.n_open.load(Ordering::SeqCst) == 1 => {
                settle(vec![one], &**sync, &self.broken, &self.n_open);
            }
            _ => self.wait(one),
        }
    }

    /// Answers a read as soon as all commits that it may have seen are durable.
    pub(super) fn read(&self, tell: Tell) {
        if self.n_open.load(Ordering::SeqCst) == 0 {
            tell(&self.broken);
        } else {
            self.wait(Waiting { what: What::Read, tell });
        }
    }

    fn wait(&self, waiting: Waiting) {
        let left = match &self.thread {
            None => waiting,
            Some((thread, _)) => match thread.send(waiting) {
                Ok(()) => return,
                Err(SendError(waiting)) => {
                    self.broken.give_up("the thread that waits for the disk is gone");
                    waiting
                }
            },
        };
        tell(vec![left], &self.broken, &self.n_open);
    }
}

/// Runs until no writer or reader is left.
fn run(
    sync: &dyn Fn() -> io::Result<()>,
    broken: &Broken,
    waiting: &Receiver<Waiting>,
    n_open: &AtomicUsize,
) {
    while let Ok(first) = waiting.recv() {
        let mut all = vec![first];
        all.extend(waiting.try_iter().take(WAITING_MAX));
        settle(all, sync, broken, n_open);
    }
}

/// Waits for the disk if a commit needs it, and answers all. A read may have seen a commit for
/// which a different thread waits.
fn settle(
    all: Vec<Waiting>,
    sync: &dyn Fn() -> io::Result<()>,
    broken: &Broken,
    n_open: &AtomicUsize,
) {
    let is_news = |one: &Waiting| match one.what {
        What::Change => true,
        What::NoChange => false,
        What::Read => n_open.load(Ordering::SeqCst) > 0,
    };
    // A failed sync is not retried: the kernel may have dropped the pages that it could not write.
    if all.iter().any(is_news)
        && !broken.is_set()
        && let Err(error) = sync()
    {
        broken.give_up(&format!("the disk did not take the log: {error}"));
    }
    tell(all, broken, n_open);
}

fn tell(all: Vec<Waiting>, broken: &Broken, n_open: &AtomicUsize) {
    let n_commits = all.iter().filter(|one| one.what != What::Read).count();
    n_open.fetch_sub(n_commits, Ordering::SeqCst);
    for Waiting { tell, .. } in all {
        tell(broken);
    }
}

/// Opens the log, and syncs its directory entry, so that it survives a loss of power.
fn log(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let log = OpenOptions::new().write(true).open(PathBuf::from(name))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(log)
}
