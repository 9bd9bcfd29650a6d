//! A cache of records that were read or written lately, so that the next stage need not read them.
//!
//! **Invariant:** an outdated record changes nothing. Every write names the fence that the row must
//! have, and every change raises it. A rollback clears the cache, because a later change may use
//! the same fence for different content.

use std::sync::Arc;

use foldhash::HashMap;
use model::Record;

/// Records of one generation. The older generation may have the same number.
const RECORDS_MAX: usize = 4_096;
/// Records with larger payloads are not kept.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1_024;

/// Unfinished jobs by number, each with further columns of its row.
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

    /// Removes and returns the record.
    pub(crate) fn take(&mut self, id: i64) -> Option<(Arc<Record>, T)> {
        // Both: a record of the young generation is newer.
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
