//! The scheduler is killed at random times under load, and started again.

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::{Report, asked, drain_and_judge};
use crate::load::Load;
use crate::stage::Stage;
use crate::{Chance, Error};

/// Long enough for workers to reconnect, so that no attempt need be lost.
const LEASE_MS: u64 = 4_000;
/// Kills in a round, after which all jobs end and the history is judged.
const ROUND: u64 = 13;
/// The shortest and the longest life of a scheduler, from its start or from its first answer.
const LIFE_MS: (u64, u64) = (10, 900);

pub(super) async fn play(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stage = Stage::build((program, dir), LEASE_MS, chance)?;
    stage.start_and_wait().await?;
    stage.set_limits().await?;
    for name in ["w1", "w2"] {
        stage.start_worker(name, None)?;
    }
    let mut n_left = asked("MAITRE_FAULT_KILLS", 50);
    while n_left > 0 {
        // Each round ends with one more kill after the end of all jobs.
        let n_kills = n_left.min(ROUND);
        n_left -= n_kills;
        stage.start_and_wait().await?;
        let load = Load::start(&stage, 120, chance)?;
        for _ in 1..n_kills {
            if chance.is_one_in(2) {
                stage.start_and_wait().await?;
            }
            sleep(Duration::from_millis(chance.between(LIFE_MS.0, LIFE_MS.1))).await;
            stage.kill()?;
            stage.start()?;
        }
        load.stop().await?;
        drain_and_judge(&mut stage, report).await?;
    }
    Ok(())
}
