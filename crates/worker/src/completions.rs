//! Completions, until the server acknowledges them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::v1;
use proto::v1::worker_message::Message;
use tokio::time::Instant;

use crate::attempt::Key;

/// The limits of unacknowledged completions, for each slot and in bytes. Beyond them, the worker
/// refuses offers. The server may reuse a slot before its acknowledgement arrives, so one
/// completion for each slot is not enough.
const COMPLETIONS_A_SLOT: usize = 2;
const COMPLETIONS_MIN: usize = 1_000;
const BYTES_MAX: usize = 64 << 20;

/// Unacknowledged completions. The operations of each attempt do not iterate over the others.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    kept: BTreeMap<Key, Kept>,
    /// Completions to send.
    unsent: BTreeSet<Key>,
    /// Bytes of all completions.
    n_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    complete: v1::Complete,
    /// The number of output chunks that must go out before it.
    after_logs: u64,
    sent_at: Option<Instant>,
}

impl Completions {
    pub(crate) fn insert(&mut self, key: Key, complete: v1::Complete, after_logs: u64) {
        self.forget(key);
        self.n_bytes += bytes_of(&complete);
        self.unsent.insert(key);
        self.kept.insert(key, Kept { complete, after_logs, sent_at: None });
    }

    /// `false`: there is none.
    pub(crate) fn forget(&mut self, key: Key) -> bool {
        let Some(kept) = self.kept.remove(&key) else { return false };
        self.n_bytes -= bytes_of(&kept.complete);
        self.unsent.remove(&key);
        true
    }

    /// Sends it again. `false`: there is none.
    pub(crate) fn repeat(&mut self, key: Key) -> bool {
        self.kept.contains_key(&key) && {
            self.unsent.insert(key);
            true
        }
    }

    pub(crate) fn repeat_all(&mut self) {
        self.unsent.extend(self.kept.keys());
    }

    /// Sends those again that were sent before this time.
    pub(crate) fn repeat_older_than(&mut self, age: Duration, now: Instant) {
        let is_old = |kept: &Kept| kept.sent_at.is_some_and(|at| now.duration_since(at) >= age);
        let old = self.kept.iter().filter(|(_, kept)| is_old(kept)).map(|(key, _)| *key);
        self.unsent.extend(old);
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.kept.keys().copied().collect()
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.kept.contains_key(&key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn has_room(&self, n_slots: usize) -> bool {
        let most = COMPLETIONS_MIN.max(n_slots.saturating_mul(COMPLETIONS_A_SLOT));
        self.kept.len() < most && self.n_bytes < BYTES_MAX
    }

    /// Adds the completions whose output is sent to a batch, until it has `bytes_max`. Returns the
    /// bytes of the batch.
    pub(crate) fn take(
        &mut self,
        messages: &mut Vec<Message>,
        (mut n_bytes, bytes_max): (usize, usize),
        (logs_out, now): (u64, Instant),
    ) -> usize {
        let kept = &mut self.kept;
        self.unsent.retain(|key| {
            let Some(kept) = kept.get_mut(key) else { return false };
            if n_bytes >= bytes_max || kept.after_logs > logs_out {
                return true;
            }
            n_bytes += bytes_of(&kept.complete);
            kept.sent_at = Some(now);
            messages.push(Message::Complete(kept.complete.clone()));
            false
        });
        n_bytes
    }
}

fn bytes_of(complete: &v1::Complete) -> usize {
    complete.error.len() + complete.result.as_ref().map_or(0, Vec::len)
}
