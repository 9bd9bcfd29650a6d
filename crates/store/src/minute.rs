//! Usage and counts of schedulers are stored by the minute.

use model::Timestamp;

/// The minute of a time, counted from the same epoch.
pub(crate) const fn of(moment: Timestamp) -> i64 {
    moment.0.div_euclid(60_000)
}

/// When a minute begins.
pub(crate) const fn begin(minute: i64) -> Timestamp {
    Timestamp(minute.saturating_mul(60_000))
}
