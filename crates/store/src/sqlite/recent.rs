//! Records that were written lately, so that the next stage need not read them.
//!
//! **Invariant:** one that is not as its row says changes nothing: every write names the fence
//! that the row must have, and every change raises it. All are forgotten when a transaction is
//! undone, for the same fence may then come again with something else behind it.

use std::collections::HashMap;

use model::Record;

/// Records of one age; as many again may be older.
const RECORDS_MAX: usize = 2_048;
/// Larger payloads are not kept: they are read when they are needed.
const PAYLOAD_BYTES_MAX: usize = 1_024;

/// Unfinished jobs, by number.
#[derive(Default)]
pub(super) struct Recent {
    young: HashMap<i64, Record>,
    old: HashMap<i64, Record>,
}

impl Recent {
    pub(super) fn keep(&mut self, id: i64, record: &Record) {
        if record.spec.payload.len() > PAYLOAD_BYTES_MAX {
            return;
        }
        if self.young.len() >= RECORDS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, record.clone());
    }

    /// The record, which is not kept any longer.
    pub(super) fn take(&mut self, id: i64) -> Option<Record> {
        // Both: what is young is newer than what is old.
        let old = self.old.remove(&id);
        self.young.remove(&id).or(old)
    }

    pub(super) fn get_mut(&mut self, id: i64) -> Option<&mut Record> {
        self.young.get_mut(&id).or_else(|| self.old.get_mut(&id))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
