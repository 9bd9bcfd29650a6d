//! What was seen since the view was opened, a look at a time.

use std::collections::VecDeque;

use super::View;

/// Looks that are remembered.
const LOOKS_MAX: usize = 240;

/// Queue and throughput, look by look.
#[derive(Default)]
pub(super) struct Trail {
    pub(super) queued: VecDeque<u64>,
    /// Jobs that succeeded between two looks.
    pub(super) succeeded: VecDeque<u64>,
    /// Of those, a second.
    pub(super) rate: Option<f64>,
    last: Option<(i64, u64)>,
}

impl Trail {
    /// One more look.
    pub(super) fn add(&mut self, view: &View) {
        let (now_ms, n) = (view.load.now_ms, view.n_succeeded);
        // A scheduler that was started again counts from nothing.
        if let Some((before_ms, before)) = self.last.filter(|(_, before)| n >= *before) {
            self.succeeded.push_back(n - before);
            #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "it is shown")]
            let (n, seconds) = ((n - before) as f64, (now_ms - before_ms) as f64 / 1_000.0);
            self.rate = (seconds > 0.0).then_some(n / seconds);
        }
        self.queued.push_back(view.load.queued);
        self.last = Some((now_ms, n));
        for looks in [&mut self.queued, &mut self.succeeded] {
            while looks.len() > LOOKS_MAX {
                looks.pop_front();
            }
        }
    }
}
