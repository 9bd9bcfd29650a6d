//! What happened, in words, for whoever plays a seed again.

use std::sync::{Mutex, PoisonError};

/// Lines, if anybody wants to read them.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Mutex<Vec<String>>>);

impl Trace {
    /// A trace that is kept.
    pub(crate) fn kept() -> Self {
        Self(Some(Mutex::default()))
    }

    /// Says something; it is put into words only if anybody reads it.
    pub(crate) fn tell(&self, words: impl FnOnce() -> String) {
        if let Some(lines) = &self.0 {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(words());
        }
    }

    /// Everything that was said.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.as_ref();
        lines
            .map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }
}
