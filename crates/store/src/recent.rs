//! Records that were read or written lately, so that the next stage need not read them.
//!
//! **Invariant:** one that is not as its row says changes nothing: every write names the fence
//! that the row must have, and every change raises it. All are forgotten when a transaction that
//! they were changed in is undone, for the same fence may then come again with something else
//! behind it.

use std::sync::Arc;

use foldhash::HashMap;
use model::Record;

/// Records of one age; as many again may be older.
const RECORDS_MAX: usize = 4_096;
/// Larger payloads are not kept: they are read when they are needed.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1_024;

/// Unfinished jobs by number, each with what else its row says.
pub(crate) struct Recent<T> {
    young: HashMap<i64, (Arc<Record>, T)>,
    old: HashMap<i64, (Arc<Record>, T)>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<T> Recent<T> {
    pub(crate) fn keep(&mut self, id: i64, record: Arc<Record>, more: T) {
        if record.spec.payload.len() > PAYLOAD_BYTES_MAX {
            return;
        }
        if self.young.len() >= RECORDS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, (record, more));
    }

    /// The record, which is not kept any longer.
    pub(crate) fn take(&mut self, id: i64) -> Option<(Arc<Record>, T)> {
        // Both: what is young is newer than what is old.
        let old = self.old.remove(&id);
        self.young.remove(&id).or(old)
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Record> {
        self.young.get(&id).or_else(|| self.old.get(&id)).map(|(record, _)| &**record)
    }

    pub(crate) fn get_mut(&mut self, id: i64) -> Option<&mut Record> {
        let kept = self.young.get_mut(&id).or_else(|| self.old.get_mut(&id));
        kept.map(|(record, _)| Arc::make_mut(record))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
