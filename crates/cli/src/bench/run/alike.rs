//! What `bench/peers` asks of others too, in the order and by the definitions that hold for all of
//! them: one queue, in one store, and nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use super::data::Data;
use super::site::Site;
use super::{Options, Spread, latency, load};
use crate::print::Failure;

/// Jobs that are timed one by one, and the pause after each: as in `bench/peers`.
const N_TIMED: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// What was seen.
pub(crate) struct Alike {
    n_jobs: u64,
    /// Jobs in a second, from the first end to the last, of a queue that was there before workers.
    drains: f64,
    /// As many, from the first submission to the last end.
    together: f64,
    start: Spread,
}

/// Fills a queue, hires workers, watches it to its end, times starts, and then submits as many
/// while they are done.
pub(crate) async fn measure(n_jobs: u64, data: &Data, options: &Options) -> Result<Alike, Failure> {
    let fresh = data.fresh("alike").await?;
    let mut site = Site::start(&fresh, options).await?;
    load::submit(&site, n_jobs).await?;
    fresh.count().await?;
    site.hire(options.n_workers(), options.n_slots()).await?;
    let drain = load::drain(&site, n_jobs, n_jobs).await?;
    let start = latency::of_some(&site, N_TIMED, PAUSE).await?;
    let together = load::together(&site, n_jobs).await?;
    Ok(Alike { n_jobs, drains: drain.whole.per_second(), together, start })
}

impl Alike {
    pub(crate) fn json(&self) -> Value {
        json!({
            "jobs": self.n_jobs,
            "drained_per_s": self.drains.round(),
            "together_per_s": self.together.round(),
            "start_p50_us": self.start.micros(50).round(),
        })
    }

    pub(crate) fn text(&self) -> String {
        let Self { n_jobs, drains, together, .. } = self;
        let (rates, start) =
            (format!("{drains:.0} drained/s, {together:.0} together/s"), &self.start);
        format!("{n_jobs} jobs: {rates}, start p50 {:.0} µs\n", start.micros(50))
    }
}
