//! The thread that waits for the disk: while one commit becomes durable, the next is made.
//!
//! **Invariant:** nobody hears of a commit before it is durable: not who asked for it, and not who
//! read what it wrote. The log is one file, so whoever waits for the newest commit waits for all.

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

/// Commits and reads that may wait for the disk; whoever brings more waits for a place.
const WAITING_MAX: usize = 64;

/// Waits until what was written to the log is on the disk.
type Flush = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Tells people what they asked for, or that the disk failed.
type Tell = Box<dyn FnOnce(&Broken) + Send>;

struct Waiting {
    /// What it is: a commit that wrote something, one that did not, or a look at what others wrote.
    what: What,
    tell: Tell,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Change,
    NoChange,
    Read,
}

/// The way to that thread. A store in memory has none, and nothing to wait for.
#[derive(Clone)]
pub(super) struct Disk {
    pub(super) broken: Broken,
    thread: Option<(SyncSender<Waiting>, Flush)>,
    /// Commits that may be visible and are not known to be durable.
    n_open: Arc<AtomicUsize>,
}

impl Disk {
    /// For a store in memory.
    pub(super) fn none(broken: Broken) -> Self {
        Self { broken, thread: None, n_open: Arc::default() }
    }

    /// For a store in this file, which was opened already: it has its log.
    pub(super) fn of(path: &Path, broken: Broken) -> Result<(Self, JoinHandle<()>), Error> {
        let log = log(path).map_err(|error| {
            Error::Unusable(format!("the log of `{}` cannot be opened: {error}", path.display()))
        })?;
        Self::by(move || log.sync_data(), broken)
    }

    /// For a store whose commits are durable when `sync` says so.
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

    /// A commit begins: who reads from now on may see it. [`Self::commit`] must follow.
    pub(super) fn begin(&self) {
        self.n_open.fetch_add(1, Ordering::SeqCst);
    }

    /// The commit is made, or failed: tells so as soon as it is durable. Whoever made it waits for
    /// the disk, unless there is something to do meanwhile or somebody waits already.
    pub(super) fn commit(&self, what: What, tell: Tell, is_busy: bool) {
        let one = Waiting { what, tell };
        match &self.thread {
            Some((_, sync)) if !is_busy && self.n_open.load(Ordering::SeqCst) == 1 => {
                settle(vec![one], &**sync, &self.broken, &self.n_open);
            }
            _ => self.wait(one),
        }
    }

    /// Something was read: tells it as soon as all that it can have seen is durable.
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

/// Until nobody can write or read any more.
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

/// Waits for the disk, if there is anything to wait for, and tells them. What a read saw may be of
/// a commit for which another thread waits.
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
    // What failed once is not tried again: the kernel may have dropped what it could not write.
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

/// The log beside the file, and the certainty that it is found there after a loss of power.
fn log(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    let log = OpenOptions::new().write(true).open(PathBuf::from(name))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(log)
}
