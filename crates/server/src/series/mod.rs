//! Minute series: each scheduler stores what it counted in each minute, and charts read it.
//!
//! ```text
//! claims, completions ──► counts ──► sample ──► store ──► read ──► merge ──► GET /v1/series
//! ```
//!
//! **Invariant:** unknown is absent. A minute without a document is unknown, not zero.

mod waits;
mod document;
mod counts;
mod sample;
mod merge;

use model::{Millis, Timestamp};

pub(crate) use counts::Counts;
pub(crate) use document::Document;
pub(crate) use merge::{By, Means, Named, Steps, Wholes};

/// One minute.
pub(crate) const MINUTE: Millis = Millis::from_secs(60);
/// The store keeps minutes for a week.
pub(crate) const KEPT: Millis = Millis::from_secs(7 * 24 * 3600);
/// Tenants, types and pools that a minute names. The rest is counted together.
pub(crate) const NAMES_MAX: usize = 50;

/// When the minute of a moment begins.
pub(crate) const fn begin(moment: Timestamp) -> Timestamp {
    Timestamp(moment.0.div_euclid(MINUTE.0) * MINUTE.0)
}
