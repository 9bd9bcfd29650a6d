//! The database's clock, as well as it can be known without asking: what it showed last, and what
//! has passed since.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use model::Timestamp;
use tokio_postgres::Client;

use super::fault::Fault;
use crate::clock::{Clock, wall_clock};

/// By how much the database's clock is ahead of this machine's.
#[derive(Clone)]
pub(super) struct Offset {
    own: Clock,
    ahead_ms: Arc<AtomicI64>,
}

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl Offset {
    /// This machine's clock is off by `skew_ms`, beside what it is off anyway.
    pub(super) fn new(skew_ms: i64) -> Self {
        let shown = wall_clock();
        let own: Clock = Arc::new(move || Timestamp(shown().0.saturating_add(skew_ms)));
        Self { own, ahead_ms: Arc::new(AtomicI64::new(0)) }
    }

    /// The database's clock.
    pub(super) fn clock(&self) -> Clock {
        let offset = self.clone();
        Arc::new(move || {
            let Timestamp(own_ms) = (offset.own)();
            Timestamp(own_ms.saturating_add(offset.ahead_ms.load(Ordering::Relaxed)))
        })
    }

    /// Asks the database. It showed this at some moment while it was asked: halfway, as far as
    /// anybody knows.
    pub(super) async fn measure(&self, client: &Client) -> Result<(), Fault> {
        let Timestamp(before_ms) = (self.own)();
        let row = client.query_one(NOW, &[]).await?;
        let Timestamp(after_ms) = (self.own)();
        let shown_ms: i64 = row.try_get(0)?;
        self.ahead_ms.store(shown_ms - i64::midpoint(before_ms, after_ms), Ordering::Relaxed);
        Ok(())
    }
}
