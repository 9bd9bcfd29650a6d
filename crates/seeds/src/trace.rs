//! The trace of a run, for a repetition of a seed.

use std::sync::{Mutex, PoisonError};

/// The lines of the trace, if it is kept.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Mutex<Vec<String>>>);

impl Trace {
    /// A trace that is kept.
    pub(crate) fn kept() -> Self {
        Self(Some(Mutex::default()))
    }

    /// Adds a line, which is formatted only if the trace is kept.
    pub(crate) fn tell(&self, words: impl FnOnce() -> String) {
        if let Some(lines) = &self.0 {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(words());
        }
    }

    /// All lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.as_ref();
        lines
            .map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }
}
