//! Times at which attempts are checked.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use crate::attempt::Key;

/// At most one time for each attempt. Most attempts have none.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    in_order: BTreeSet<(Instant, Key)>,
    of: BTreeMap<Key, Instant>,
}

impl Alarms {
    /// Sets a time, unless the attempt has an earlier one. `true` if it is the first of all.
    pub(crate) fn set(&mut self, key: Key, at: Instant) -> bool {
        if self.of.get(&key).is_some_and(|known| *known <= at) {
            return false;
        }
        self.remove(key);
        self.of.insert(key, at);
        self.in_order.insert((at, key));
        self.in_order.first() == Some(&(at, key))
    }

    pub(crate) fn remove(&mut self, key: Key) {
        if let Some(at) = self.of.remove(&key) {
            self.in_order.remove(&(at, key));
        }
    }

    /// Removes and returns an attempt whose time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Key> {
        let (at, key) = self.in_order.first().copied()?;
        if at > now {
            return None;
        }
        self.remove(key);
        Some(key)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.in_order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn key(job: u64) -> Key {
        Key { job, attempt: 1 }
    }

    #[test]
    fn earliest_alarm_of_each_attempt_counts() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut alarms = Alarms::default();
        assert!(alarms.set(key(1), at(20)));
        assert!(!alarms.set(key(2), at(30)));
        assert!(!alarms.set(key(2), at(40)));
        assert!(alarms.set(key(2), at(10)));
        assert_eq!(alarms.next(), Some(at(10)));
        assert_eq!(alarms.due(at(9)), None);
        assert_eq!(alarms.due(at(15)), Some(key(2)));
        assert_eq!(alarms.due(at(15)), None);
        alarms.remove(key(1));
        assert_eq!((alarms.due(at(99)), alarms.next()), (None, None));
    }
}
