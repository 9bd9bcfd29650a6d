//! The stop of an attempt: its reason and its time.

use std::sync::Mutex;
use std::time::Duration;

use proto::v1;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::lock::lock;

/// The reason to stop an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A client cancelled the job.
    Cancelled,
    /// A different job needs the room.
    Preempted,
    /// It exceeded its run timeout or its silence timeout.
    Timeout,
    /// The worker leaves.
    Leaving,
    /// The worker has lost the attempt. It does not report the end.
    Stale,
    /// The server acknowledged no heartbeat for so long that it may have given the job to a
    /// different worker. The worker does not report the end.
    LeaseOver,
}

impl StopReason {
    /// Whether the worker must not report the end.
    pub(crate) const fn is_silent(self) -> bool {
        matches!(self, Self::Stale | Self::LeaseOver)
    }
}

impl From<v1::StopReason> for StopReason {
    fn from(reason: v1::StopReason) -> Self {
        match reason {
            v1::StopReason::Unspecified | v1::StopReason::Cancelled => Self::Cancelled,
            v1::StopReason::Preempted => Self::Preempted,
            v1::StopReason::Timeout => Self::Timeout,
            v1::StopReason::Stale => Self::Stale,
        }
    }
}

/// The two steps of a stop: the attempt is asked to stop, and killed after the grace period.
#[derive(Debug)]
pub(crate) struct Stops {
    pub(crate) asked: CancellationToken,
    pub(crate) killed: CancellationToken,
    stop: Mutex<Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    reason: Option<(StopReason, String)>,
    kill_at: Option<Instant>,
}

impl Stops {
    pub(crate) fn new() -> Self {
        Self {
            asked: CancellationToken::new(),
            killed: CancellationToken::new(),
            stop: Mutex::default(),
        }
    }

    /// Asks the attempt to stop, and sets the time of its kill. The first reason counts, unless a
    /// later one forbids a report. The earliest time counts. Returns that time.
    pub(crate) fn ask(&self, reason: StopReason, text: String, grace: Duration) -> Instant {
        let at = Instant::now() + grace;
        let mut stop = lock(&self.stop);
        if stop.reason.is_none() || reason.is_silent() {
            stop.reason = Some((reason, text));
        }
        let kill_at = stop.kill_at.map_or(at, |known| known.min(at));
        stop.kill_at = Some(kill_at);
        drop(stop);
        self.asked.cancel();
        if grace.is_zero() {
            self.killed.cancel();
        }
        kill_at
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        lock(&self.stop).reason.as_ref().map(|(reason, _)| *reason)
    }

    pub(crate) fn text(&self) -> String {
        lock(&self.stop).reason.as_ref().map(|(_, text)| text.clone()).unwrap_or_default()
    }

    /// The time of its kill. `None` if it should not stop.
    pub(crate) fn kill_at(&self) -> Option<Instant> {
        lock(&self.stop).kill_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_reason_counts_unless_a_later_one_is_silent() {
        let stops = Stops::new();
        stops.ask(StopReason::Preempted, "room".to_owned(), SECOND);
        stops.ask(StopReason::Cancelled, "asked".to_owned(), SECOND);
        assert_eq!(stops.reason(), Some(StopReason::Preempted));
        stops.ask(StopReason::LeaseOver, "lease".to_owned(), SECOND);
        assert_eq!(stops.reason(), Some(StopReason::LeaseOver));
        stops.ask(StopReason::Cancelled, "asked".to_owned(), SECOND);
        assert_eq!((stops.reason(), stops.text().as_str()), (Some(StopReason::LeaseOver), "lease"));
    }

    #[test]
    fn a_later_stop_may_shorten_the_grace_and_never_lengthens_it() {
        let stops = Stops::new();
        stops.ask(StopReason::Cancelled, String::new(), SECOND);
        let first = stops.kill_at();
        stops.ask(StopReason::Cancelled, String::new(), 9 * SECOND);
        assert_eq!(stops.kill_at(), first);
        assert!(!stops.killed.is_cancelled());
        stops.ask(StopReason::Stale, String::new(), Duration::ZERO);
        assert!(stops.kill_at() < first && stops.killed.is_cancelled());
    }
}
