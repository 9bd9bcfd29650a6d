//! Usage is kept by the minute.

use model::Timestamp;

/// The minute of a moment, counted from the same beginning.
pub(crate) const fn of(moment: Timestamp) -> i64 {
    moment.0.div_euclid(60_000)
}
