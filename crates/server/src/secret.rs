//! Text that nobody may see by accident.

use std::fmt;

/// A secret. Where things are shown, its place is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for whoever has a use for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
