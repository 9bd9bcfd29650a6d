//! Notices about final jobs.

use model::{Retry, Timestamp, retry};

use super::World;
use crate::Notice;

impl World {
    /// Stores a notice if this job is final and has a webhook.
    pub(super) fn note(&mut self, number: i64) {
        let Some(record) = self.jobs.get(&number) else { return };
        if let Some(notice) = Notice::of(self.next_notice, record) {
            self.notices.insert(notice.id, (notice.finished, notice));
            self.next_notice += 1;
        }
    }

    pub(super) fn notices(&mut self, wait: Retry, max: usize, now: Timestamp) -> Vec<Notice> {
        let due = self.notices.iter().filter(|(_, (due, _))| *due <= now);
        let mut due: Vec<(Timestamp, u64)> = due.map(|(id, (due, _))| (*due, *id)).collect();
        due.sort_unstable();
        due.truncate(max);
        let tell = |(_, id): (Timestamp, u64)| {
            let (due, notice) = self.notices.get_mut(&id)?;
            notice.tries += 1;
            *due = now + retry::backoff(notice.tries, &wait, id);
            Some(notice.clone())
        };
        due.into_iter().filter_map(tell).collect()
    }
}
