//! The numbers of new jobs: handed out in memory, and written down with every commit.
//!
//! **Invariant:** a number that was handed out ahead of its job never comes again, whatever becomes
//! of the job: a commit that is durable keeps some that are not taken yet, and only those are
//! handed out so. After a crash, what was kept and not used is left out.

use std::sync::atomic::{AtomicI64, Ordering};

/// Numbers beyond the taken ones that every commit keeps.
const KEPT: i64 = 1_000;

pub(super) struct Numbers {
    /// The lowest that is not taken.
    next: AtomicI64,
    /// Those below it do not come again after a crash.
    kept: AtomicI64,
}

impl Numbers {
    pub(super) const fn from(next: i64) -> Self {
        Self { next: AtomicI64::new(next), kept: AtomicI64::new(next) }
    }

    /// The first of so many that nobody else gets, for jobs that are written down with them.
    pub(super) fn take(&self, n_jobs: usize) -> i64 {
        self.next.fetch_add(i64::try_from(n_jobs).unwrap_or(i64::MAX), Ordering::Relaxed)
    }

    /// The same, for jobs that somebody may hear of before they are written down.
    pub(super) fn take_ahead(&self, n_jobs: usize) -> Option<i64> {
        let n_jobs = i64::try_from(n_jobs).ok()?;
        let kept = self.kept.load(Ordering::Acquire);
        let take = |next: i64| next.checked_add(n_jobs).filter(|next| *next <= kept);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()
    }

    /// The lowest that is not taken.
    pub(super) fn next(&self) -> i64 {
        self.next.load(Ordering::Relaxed)
    }

    /// What a commit writes down as the next: once it is durable, [`Self::keep`] must follow.
    pub(super) fn next_after_crash(&self) -> i64 {
        self.next().saturating_add(KEPT)
    }

    /// So it is on the disk.
    pub(super) fn keep(&self, next_after_crash: i64) {
        self.kept.fetch_max(next_after_crash, Ordering::Release);
    }
}
