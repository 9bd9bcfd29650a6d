//! A lock that does not care whether somebody panicked while holding it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is behind the lock. Every section that we guard leaves it whole at each step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
