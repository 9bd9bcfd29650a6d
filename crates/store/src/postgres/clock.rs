//! An estimate of the database's clock without a query: the last time that it showed, plus the time
//! since then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use model::Timestamp;
use tokio_postgres::Client;

use super::fault::Fault;
use crate::clock::{Clock, wall_clock};

/// The difference between the database's clock and this machine's.
#[derive(Clone)]
pub(super) struct Offset {
    own: Clock,
    ahead_ms: Arc<AtomicI64>,
    /// A good measurement exists.
    is_known: Arc<AtomicBool>,
}

/// Queries of one measurement, at most.
const TRIES_MAX: u32 = 3;
/// A measurement of at most this duration is good enough.
const QUICK_MS: i64 = 10;
/// A slower measurement says less than an earlier one.
const SLOW_MS: i64 = 100;

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl Offset {
    /// A test sets `skew_ms`, which is added to this machine's clock.
    pub(super) fn new(skew_ms: i64) -> Self {
        let shown = wall_clock();
        let own: Clock = Arc::new(move || Timestamp(shown().0.saturating_add(skew_ms)));
        Self { own, ahead_ms: Arc::default(), is_known: Arc::default() }
    }

    /// The database's clock.
    pub(super) fn clock(&self) -> Clock {
        let offset = self.clone();
        Arc::new(move || {
            let Timestamp(own_ms) = (offset.own)();
            Timestamp(own_ms.saturating_add(offset.ahead_ms.load(Ordering::Relaxed)))
        })
    }

    /// Asks the database for its time. The estimate assumes that the answer is from the middle of
    /// the round trip, so a slow answer says little. The quickest of a few answers counts. A slow
    /// one is ignored if a good one is known.
    pub(super) async fn measure(&self, client: &Client) -> Result<(), Fault> {
        let mut best: Option<(i64, i64)> = None;
        for _ in 0..TRIES_MAX {
            let Timestamp(before_ms) = (self.own)();
            let row = client.query_one(NOW, &[]).await?;
            let Timestamp(after_ms) = (self.own)();
            let shown_ms: i64 = row.try_get(0)?;
            let ahead_ms = shown_ms - i64::midpoint(before_ms, after_ms);
            let measured = (after_ms - before_ms, ahead_ms);
            best = Some(best.map_or(measured, |best| best.min(measured)));
            if measured.0 <= QUICK_MS {
                break;
            }
        }
        let is_known = self.is_known.load(Ordering::Relaxed);
        if let Some((took_ms, ahead_ms)) = best.filter(|(took, _)| !is_known || *took <= SLOW_MS) {
            self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
            self.is_known.store(took_ms <= SLOW_MS, Ordering::Relaxed);
        }
        Ok(())
    }
}
