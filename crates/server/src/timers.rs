//! What is to be done when.

use std::collections::BTreeSet;

use model::{JobId, Timestamp};

/// Something whose time comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A job that still waits is no longer worth starting.
    TooLate(JobId),
    /// An attempt may not have been taken up.
    Unaccepted(JobId),
    /// An attempt may have run for too long.
    RunTimeout(JobId),
    /// An attempt may have been silent for too long.
    Silence(JobId),
    /// Leases are looked at.
    Expire,
    /// Starts are written down that waited in case their ends come.
    Starts,
    /// Averages and usage are counted anew.
    Averages,
    /// A minute is over.
    Minute,
    /// Jobs whose inputs nobody knows come a round closer to being placed all the same.
    Rescore,
    /// What finished long ago is forgotten.
    Forget,
    /// Rules that look at the time may have changed their minds.
    Sweep,
    /// Schedulers that share the store hear of each other.
    Meet,
    /// All queues of a shared store are looked at.
    Look,
    /// A job that waits for a moment comes to stand in a queue of a shared store.
    Due,
    /// What this scheduler leads is prolonged.
    Leads,
    /// Attempts that nobody heard of are looked for.
    Stale,
    /// A recurring job may be due.
    Schedules,
    /// A lane may have something to do.
    Lane(String),
}

/// Timers by their moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Timestamp, Timer)>);

impl Timers {
    pub(crate) fn set(&mut self, at: Timestamp, timer: Timer) {
        self.0.insert((at, timer));
    }

    pub(crate) fn unset(&mut self, at: Timestamp, timer: Timer) {
        self.0.remove(&(at, timer));
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next timer whose moment has come.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_the_order_of_their_moments_and_not_early() {
        let mut timers = Timers::default();
        timers.set(Timestamp(20), Timer::Expire);
        timers.set(Timestamp(10), Timer::Sweep);
        assert_eq!(timers.due(Timestamp(9)), None);
        assert_eq!(timers.due(Timestamp(15)), Some(Timer::Sweep));
        assert_eq!(timers.due(Timestamp(15)), None);
        assert_eq!(timers.due(Timestamp(20)), Some(Timer::Expire));
    }
}
