//! Workers are killed and suspended, and sometimes the scheduler is killed too.

use std::path::Path;
use std::time::Duration;

use checker::Harm;
use tokio::time::sleep;

use super::{Report, asked, drain_and_judge};
use crate::load::Load;
use crate::stage::Stage;
use crate::{Chance, Error};

/// Short, so that it runs out while a worker is suspended.
const LEASE_MS: u64 = 1_500;
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

pub(super) async fn play(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stage = Stage::build((program, dir), LEASE_MS, chance)?;
    stage.start_and_wait().await?;
    stage.set_limits().await?;
    for name in WORKERS {
        stage.start_worker(name, None)?;
    }
    let load = Load::start_slow(&stage, 200, chance)?;
    for _ in 0..asked("MAITRE_FAULT_HARMS", 12) {
        sleep(Duration::from_millis(chance.between(50, 500))).await;
        let name = chance.pick(&WORKERS).copied().unwrap_or(WORKERS[0]);
        match chance.between(0, 5) {
            0 | 1 => stage.kill_worker(name),
            2 => {
                // Its lease runs out before it returns.
                stage.kill_worker(name);
                sleep(Duration::from_millis(LEASE_MS + 300)).await;
            }
            3 => {
                // While it is suspended, its processes continue, and so does the scheduler.
                stage.signal_worker(name, Harm::Stop)?;
                sleep(Duration::from_millis(chance.between(100, LEASE_MS))).await;
                count_stale(&stage, report).await;
                stage.kill()?;
                stage.start_and_wait().await?;
                sleep(Duration::from_millis(LEASE_MS)).await;
                stage.signal_worker(name, Harm::Continue)?;
            }
            _ => {
                stage.signal_worker(name, Harm::Stop)?;
                let more_ms = chance.between(100, LEASE_MS);
                sleep(Duration::from_millis(LEASE_MS + more_ms)).await;
                stage.signal_worker(name, Harm::Continue)?;
            }
        }
        stage.start_worker(name, None)?;
    }
    load.stop().await?;
    stage.drain(super::DRAIN).await?;
    count_stale(&stage, report).await;
    drain_and_judge(&mut stage, report).await
}

/// The counters of a scheduler end with it, so they are read before.
async fn count_stale(stage: &Stage, report: &mut Report) {
    let rpc = stage.rpc();
    report.n_stale += rpc.counter("stale_words").await + rpc.counter("stale_results").await;
}
