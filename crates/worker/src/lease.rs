//! The time for which the worker may assume that its attempts are current.
//!
//! **Invariant:** the time counts from when the acknowledged heartbeat was *sent*, by the worker's
//! clock. The server cannot have counted from an earlier time, even with delays of the network.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::lock::lock;

/// The part of a lease after which the worker stops its attempts, so that clocks may differ.
const SHARE: (u32, u32) = (9, 10);
/// Heartbeats without an answer that are remembered. Older ones would not prolong the lease.
const SENT_MAX: usize = 1_024;

/// The lease of one worker, over all its sessions.
#[derive(Debug)]
pub(crate) struct Lease {
    terms: Mutex<Terms>,
    /// `None` before the first welcome.
    over_at: watch::Sender<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Terms {
    length: Duration,
    sent: VecDeque<(u64, Instant)>,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self { terms: Mutex::default(), over_at: watch::Sender::new(None) }
    }

    /// The server answered a hello that was sent at this time.
    pub(crate) fn welcome(&self, sent_at: Instant, length: Duration) {
        {
            let mut terms = lock(&self.terms);
            terms.length = length;
            terms.sent.clear();
        }
        self.prolong(sent_at, length);
    }

    /// A heartbeat is about to be sent.
    pub(crate) fn sent(&self, sequence: u64, at: Instant) {
        let mut terms = lock(&self.terms);
        if terms.sent.len() == SENT_MAX {
            terms.sent.pop_front();
        }
        terms.sent.push_back((sequence, at));
    }

    /// The server acknowledged a heartbeat. `false` if it is not of this session.
    pub(crate) fn acknowledged(&self, sequence: u64) -> bool {
        let (sent_at, length) = {
            let mut terms = lock(&self.terms);
            let found = terms.sent.iter().position(|(sent, _)| *sent == sequence);
            let Some((_, at)) = found.and_then(|index| terms.sent.drain(..=index).next_back())
            else {
                return false;
            };
            (at, terms.length)
        };
        self.prolong(sent_at, length);
        true
    }

    /// Whether the lease has run out.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.over_at.borrow().is_some_and(|at| at <= now)
    }

    /// When the lease runs out.
    pub(crate) fn over_at(&self) -> watch::Receiver<Option<Instant>> {
        self.over_at.subscribe()
    }

    fn prolong(&self, sent_at: Instant, length: Duration) {
        let at = sent_at + length * SHARE.0 / SHARE.1;
        self.over_at.send_if_modified(|known| {
            let is_later = known.is_none_or(|known| known < at);
            if is_later {
                *known = Some(at);
            }
            is_later
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(10);

    fn over_in(lease: &Lease, start: Instant) -> Option<Duration> {
        lease.over_at().borrow().map(|at| at - start)
    }

    #[test]
    fn a_lease_counts_from_when_the_acknowledged_heartbeat_was_sent() {
        let (lease, start) = (Lease::new(), Instant::now());
        assert!(!lease.is_over(start + 99 * LENGTH));
        lease.welcome(start, LENGTH);
        assert_eq!(over_in(&lease, start), Some(Duration::from_secs(9)));
        lease.sent(1, start + Duration::from_secs(2));
        lease.sent(2, start + Duration::from_secs(4));
        assert!(lease.acknowledged(1));
        assert_eq!(over_in(&lease, start), Some(Duration::from_secs(11)));
        assert!(lease.acknowledged(2));
        assert!(!lease.is_over(start + Duration::from_millis(12_999)));
        assert!(lease.is_over(start + Duration::from_secs(13)));
    }

    #[test]
    fn unexpected_acknowledgement_changes_nothing() {
        let (lease, start) = (Lease::new(), Instant::now());
        lease.welcome(start, LENGTH);
        lease.sent(1, start + LENGTH);
        lease.sent(2, start + LENGTH);
        assert!(lease.acknowledged(2));
        assert!(!lease.acknowledged(1) && !lease.acknowledged(3));
        lease.sent(3, start + 5 * LENGTH);
        lease.welcome(start + LENGTH, LENGTH);
        assert!(!lease.acknowledged(3));
        assert_eq!(over_in(&lease, start), Some(Duration::from_secs(19)));
    }
}
