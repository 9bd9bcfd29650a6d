//! The attempts of a worker, and the slots that they use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Name;
use prost::Message as _;
use proto::v1;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::alarms::Alarms;
use crate::attempt::{Key, Ticket};
use crate::lock::lock;
use crate::stop::StopReason;

/// The attempts of a worker.
#[derive(Debug)]
pub(crate) struct Roster {
    slots: u32,
    here: Mutex<Here>,
    /// An attempt ended.
    pub(crate) ended: Notify,
    /// An attempt has to be checked before all others.
    pub(crate) is_sooner: Notify,
}

#[derive(Debug, Default)]
struct Here {
    tickets: BTreeMap<Key, Arc<Ticket>>,
    alarms: Alarms,
    slots_used: u32,
    n_by_type: BTreeMap<Name, u32>,
    is_leaving: bool,
}

impl Roster {
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots, here: Mutex::default(), ended: Notify::new(), is_sooner: Notify::new() }
    }

    /// Room for one attempt, or the reason why there is none. `type_max` 0 means the number of
    /// slots.
    pub(crate) fn admit(
        self: &Arc<Self>,
        kind: &Name,
        slots: u32,
        type_max: u32,
    ) -> Result<Room, &'static str> {
        let mut here = lock(&self.here);
        if here.is_leaving {
            return Err("draining");
        }
        let n_of_type = here.n_by_type.get(kind).copied().unwrap_or(0);
        let is_full = here.slots_used.saturating_add(slots) > self.slots;
        if is_full || (type_max > 0 && n_of_type >= type_max) {
            return Err("at capacity");
        }
        here.slots_used += slots;
        *here.n_by_type.entry(kind.clone()).or_default() += 1;
        Ok(Room { roster: Arc::clone(self), kind: kind.clone(), slots })
    }

    pub(crate) fn insert(&self, ticket: Arc<Ticket>) {
        lock(&self.here).tickets.insert(ticket.key, ticket);
    }

    pub(crate) fn remove(&self, key: Key) {
        let mut here = lock(&self.here);
        here.tickets.remove(&key);
        here.alarms.remove(key);
        drop(here);
        self.ended.notify_waiters();
    }

    pub(crate) fn find(&self, key: Key) -> Option<Arc<Ticket>> {
        lock(&self.here).tickets.get(&key).map(Arc::clone)
    }

    /// The attempts that the worker may report.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let here = lock(&self.here);
        let is_silent = |ticket: &Ticket| ticket.stops.reason().is_some_and(StopReason::is_silent);
        here.tickets.values().filter(|ticket| !is_silent(ticket)).map(|one| one.key).collect()
    }

    /// The progress of attempts that reported any, up to this size.
    pub(crate) fn progress(&self, bytes_max: usize) -> Vec<v1::ProgressReport> {
        let here = lock(&self.here);
        let report = |ticket: &Arc<Ticket>| {
            let progress = lock(&ticket.progress).clone();
            progress.map(|progress| v1::ProgressReport {
                attempt: Some(ticket.key.into()),
                progress: Some(progress),
            })
        };
        let mut n_bytes = 0;
        let is_within = |report: &v1::ProgressReport| {
            n_bytes += report.encoded_len();
            n_bytes <= bytes_max
        };
        here.tickets.values().filter_map(report).take_while(is_within).collect()
    }

    pub(crate) fn slots_used(&self) -> u32 {
        lock(&self.here).slots_used
    }

    /// Checks an attempt at this time, if it is still here.
    pub(crate) fn look_at(&self, key: Key, at: Instant) {
        let mut here = lock(&self.here);
        let is_sooner = here.tickets.contains_key(&key) && here.alarms.set(key, at);
        drop(here);
        if is_sooner {
            self.is_sooner.notify_one();
        }
    }

    /// An attempt that must be checked now.
    pub(crate) fn due(&self, now: Instant) -> Option<Arc<Ticket>> {
        let mut here = lock(&self.here);
        let key = here.alarms.due(now)?;
        here.tickets.get(&key).map(Arc::clone)
    }

    /// When the next attempt must be checked.
    pub(crate) fn next_alarm(&self) -> Option<Instant> {
        lock(&self.here).alarms.next()
    }

    /// Asks an attempt to stop, and sets the time of its kill.
    pub(crate) fn stop(&self, ticket: &Ticket, reason: StopReason, text: String, grace: Duration) {
        let kill_at = ticket.stops.ask(reason, text, grace);
        self.look_at(ticket.key, kill_at);
    }

    pub(crate) fn stop_all(&self, reason: StopReason, text: &str, grace: Duration) -> usize {
        let tickets: Vec<Arc<Ticket>> = lock(&self.here).tickets.values().cloned().collect();
        for ticket in &tickets {
            self.stop(ticket, reason, text.to_owned(), grace);
        }
        tickets.len()
    }

    /// Admits no attempts from now on.
    pub(crate) fn leave(&self) {
        lock(&self.here).is_leaving = true;
    }

    pub(crate) fn is_leaving(&self) -> bool {
        lock(&self.here).is_leaving
    }

    /// Waits until no attempt is left.
    pub(crate) async fn emptied(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the check, so that no end in between is missed.
            ended.as_mut().enable();
            if lock(&self.here).tickets.is_empty() {
                return;
            }
            ended.await;
        }
    }
}

/// The room of one attempt, until it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    roster: Arc<Roster>,
    kind: Name,
    slots: u32,
}

impl Room {
    /// Checks the attempt of this room at this time.
    pub(crate) fn look_at(&self, key: Key, at: Instant) {
        self.roster.look_at(key, at);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut here = lock(&self.roster.here);
        here.slots_used -= self.slots;
        if let Some(n_of_type) = here.n_by_type.get_mut(&self.kind) {
            *n_of_type -= 1;
            if *n_of_type == 0 {
                here.n_by_type.remove(&self.kind);
            }
        }
    }
}

/// Attempts as the protocol names them.
pub(crate) fn refs(keys: impl IntoIterator<Item = Key>) -> Vec<v1::AttemptRef> {
    keys.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roster_admits_attempts_up_to_its_slots() {
        let roster = Arc::new(Roster::new(3));
        let kind = Name::new("a");
        let two = roster.admit(&kind, 2, 0).unwrap();
        assert_eq!(roster.admit(&kind, 2, 0).unwrap_err(), "at capacity");
        let _one = roster.admit(&kind, 1, 0).unwrap();
        assert_eq!(roster.slots_used(), 3);
        drop(two);
        assert_eq!(roster.slots_used(), 1);
        assert!(roster.admit(&kind, 2, 0).is_ok());
    }

    #[test]
    fn roster_admits_attempts_up_to_the_limit_of_their_type() {
        let roster = Arc::new(Roster::new(9));
        let (a, b) = (Name::new("a"), Name::new("b"));
        let room = roster.admit(&a, 1, 1).unwrap();
        assert_eq!(roster.admit(&a, 1, 1).unwrap_err(), "at capacity");
        assert!(roster.admit(&b, 1, 1).is_ok());
        drop(room);
        assert!(roster.admit(&a, 1, 1).is_ok());
    }

    #[test]
    fn leaving_worker_admits_no_attempt() {
        let roster = Arc::new(Roster::new(9));
        roster.leave();
        assert_eq!(roster.admit(&Name::new("a"), 1, 0).unwrap_err(), "draining");
    }
}
