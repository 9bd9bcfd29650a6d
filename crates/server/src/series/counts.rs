//! Counts of the minute that is under way.

use model::{Ending, Record, Timestamp};
use store::Run;

use super::document::Document;
use super::waits::Waits;
use super::{MINUTE, begin};

/// Counts since the minute began, or since the scheduler started in it.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    began: Timestamp,
    started: u64,
    ended: u64,
    failed: u64,
    waits: Waits,
}

impl Counts {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { began: begin(now), started: 0, ended: 0, failed: 0, waits: Waits::default() }
    }

    /// An attempt began.
    pub(crate) fn started(&mut self, record: &Record) {
        let Some(current) = &record.current else { return };
        let ready = record.ready.unwrap_or(record.created);
        self.started += 1;
        self.waits.add(current.claimed.since(ready).0.max(0).unsigned_abs());
    }

    /// An attempt ended.
    pub(crate) fn ended(&mut self, ending: Ending) {
        self.ended += 1;
        self.failed += u64::from(is_failure(ending));
    }

    /// The store remembers a run from before the scheduler started. It counts if it ended in this
    /// minute.
    pub(crate) fn remember(&mut self, run: &Run) {
        if run.at >= self.began {
            self.ended(run.ending);
        }
    }

    /// When the minute is over.
    pub(crate) fn ends(&self) -> Timestamp {
        self.began + MINUTE
    }

    /// Begins the minute of `now`. Answers when the minute before began, with its counts. `None`
    /// means that more time passed: no sample belongs to the minutes between.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<(Timestamp, Document)> {
        let Self { began, started, ended, failed, waits } = std::mem::replace(self, Self::new(now));
        let document = Document { started, ended, failed, waits, ..Document::default() };
        (self.began == began + MINUTE).then_some((began, document))
    }
}

/// Whether an attempt failed. A refused, preempted or cancelled attempt did not.
const fn is_failure(ending: Ending) -> bool {
    match ending {
        Ending::Transient | Ending::Permanent | Ending::Lost | Ending::Timeout | Ending::Stale => {
            true
        }
        Ending::Succeeded | Ending::Refused | Ending::Preempted | Ending::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_told_once_and_only_the_one_before() {
        let mut counts = Counts::new(Timestamp(61_000));
        counts.ended(Ending::Succeeded);
        counts.ended(Ending::Lost);
        assert_eq!(counts.ends(), Timestamp(120_000));
        let (began, document) = counts.next(Timestamp(120_500)).expect("the minute is over");
        assert_eq!((began, document.ended, document.failed), (Timestamp(60_000), 2, 1));
        assert_eq!(counts.next(Timestamp(150_000)), None, "it is under way");
        counts.ended(Ending::Succeeded);
        assert_eq!(counts.next(Timestamp(240_000)), None, "a minute passed without a sample");
        let (began, document) = counts.next(Timestamp(300_000)).expect("the minute is over");
        assert_eq!((began, document), (Timestamp(240_000), Document::default()));
    }
}
