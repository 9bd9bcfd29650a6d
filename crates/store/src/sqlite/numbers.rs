//! The numbers of new jobs: handed out in memory, and written with every commit.
//!
//! **Invariant:** a number that was handed out ahead of its job is never used again, even if the
//! job is never written. A durable commit reserves numbers, and only those are handed out ahead.
//! After a crash, unused reserved numbers are skipped.

use std::sync::atomic::{AtomicI64, Ordering};

/// Numbers that every commit reserves ahead.
const KEPT: i64 = 1_000;

pub(super) struct Numbers {
    /// The lowest unused number.
    next: AtomicI64,
    /// Numbers below this one are not used again after a crash.
    kept: AtomicI64,
}

impl Numbers {
    pub(super) const fn from(next: i64) -> Self {
        Self { next: AtomicI64::new(next), kept: AtomicI64::new(next) }
    }

    /// The first of `n_jobs` numbers, for jobs that the same commit writes.
    pub(super) fn take(&self, n_jobs: usize) -> i64 {
        self.next.fetch_add(i64::try_from(n_jobs).unwrap_or(i64::MAX), Ordering::Relaxed)
    }

    /// The same, for jobs that a client may see before they are written.
    pub(super) fn take_ahead(&self, n_jobs: usize) -> Option<i64> {
        let n_jobs = i64::try_from(n_jobs).ok()?;
        let kept = self.kept.load(Ordering::Acquire);
        let take = |next: i64| next.checked_add(n_jobs).filter(|next| *next <= kept);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()
    }

    /// The lowest unused number.
    pub(super) fn next(&self) -> i64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The next number that a commit writes. Once it is durable, [`Self::keep`] must follow.
    pub(super) fn next_after_crash(&self) -> i64 {
        self.next().saturating_add(KEPT)
    }

    /// Records that this number is durable.
    pub(super) fn keep(&self, next_after_crash: i64) {
        self.kept.fetch_max(next_after_crash, Ordering::Release);
    }
}
