//! How soon a job starts after it is submitted.

use std::time::Duration;

use anyhow::anyhow;
use proto::v1;
use tokio::time::{MissedTickBehavior, interval};

use super::load::noops;
use super::site::{NOOP, Site};
use super::{PAUSE, Spread, float};
use crate::bench::machine::{now, wall_nanos};
use crate::print::Failure;

/// Jobs of a load come in so many requests a second.
const REQUESTS_PER_SECOND: u32 = 200;

/// One job at a time, and nothing else to do.
pub(crate) async fn idle(site: &Site, seconds: f64) -> Result<Spread, Failure> {
    site.starts();
    let start = now();
    let mut nanos = Vec::new();
    while start.elapsed().as_secs_f64() < seconds {
        submit_timed(site).await?;
        nanos.push(site.next_start()?);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Spread::of(nanos))
}

/// As many as others are asked for, with the pause that they have, too.
pub(crate) async fn of_some(site: &Site, n_jobs: u32, pause: Duration) -> Result<Spread, Failure> {
    site.starts();
    let mut nanos = Vec::new();
    for _ in 0..n_jobs {
        submit_timed(site).await?;
        nanos.push(site.next_start()?);
        tokio::time::sleep(pause).await;
    }
    Ok(Spread::of(nanos))
}

/// One job at a time, while `per_second` others come and go.
pub(crate) async fn under(site: &Site, per_second: f64, seconds: f64) -> Result<Spread, Failure> {
    let before = site.look().await?.done;
    site.starts();
    let mut jobs = site.jobs();
    let load = async {
        let mut ticks = interval(Duration::from_secs(1) / REQUESTS_PER_SECOND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let start = now();
        let mut n_sent = 0;
        while start.elapsed().as_secs_f64() < seconds {
            ticks.tick().await;
            let due = rounded(start.elapsed().as_secs_f64() * per_second);
            let batch = due.saturating_sub(n_sent).min(1_000);
            if batch > 0 {
                jobs.submit(noops(batch)).await?;
            }
            n_sent += batch;
        }
        Ok::<u64, tonic::Status>(n_sent)
    };
    let timed = async {
        let start = now();
        let mut n_timed = 0;
        while start.elapsed().as_secs_f64() < seconds {
            submit_timed(site).await?;
            n_timed += 1;
            tokio::time::sleep(PAUSE).await;
        }
        Ok::<u64, Failure>(n_timed)
    };
    let (n_sent, n_timed) = tokio::join!(load, timed);
    let n_sent = n_sent.map_err(|status| anyhow!("could not submit: {status}"))?;
    let n_all = before + n_sent + n_timed?;
    site.until(|seen| seen.done >= n_all).await?;
    Ok(Spread::of(site.starts()))
}

/// In a task, as an application would: whoever submits from outside of the runtime has to wake it
/// up first, which is not ours to count.
async fn submit_timed(site: &Site) -> Result<(), Failure> {
    let mut jobs = site.jobs();
    let submit = tokio::spawn(async move {
        let payload = wall_nanos().to_le_bytes().to_vec();
        let job = v1::Spec { r#type: NOOP.to_owned(), payload, ..v1::Spec::default() };
        let request = v1::SubmitRequest { jobs: vec![job], ..v1::SubmitRequest::default() };
        jobs.submit(request).await
    });
    let answer = submit.await.map_err(|error| anyhow!(error))?;
    answer.map_err(|status| anyhow!("could not submit: {status}"))?;
    Ok(())
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of a benchmark"
)]
fn rounded(count: f64) -> u64 {
    debug_assert!(count < float(u64::MAX), "no benchmark has so many jobs");
    count as u64
}
