//! A lock that ignores poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. Each guarded section leaves the data consistent at each step, so a panic does no harm.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
