//! Scenarios with a full and a failing disk.

use std::path::Path;
use std::time::Duration;

use checker::{Fault, Harm, Outcome};
use tokio::time::sleep;

use super::{Report, drain_and_judge};
use crate::clock::until;
use crate::disk::{SmallDisk, limited};
use crate::load::Load;
use crate::stage::Stage;
use crate::{Chance, Error};

const LEASE_MS: u64 = 3_000;
const ROUNDS: u64 = 3;
/// Room for some hundreds of jobs, and for a log that has a checkpoint at 16 MB.
const SIZE_KB: u64 = 65_536;
/// Timeout for a scheduler to notice that it cannot write.
const NOTICE: Duration = Duration::from_mins(1);

pub(super) async fn play(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stage = Stage::build((program, dir), LEASE_MS, chance)?;
    let Some(disk) = SmallDisk::mount(&dir.join("disk"), SIZE_KB)? else {
        report.notes.push("nobody may mount here: files are limited instead".to_owned());
        return fail_in(stage, chance, report).await;
    };
    stage.place = disk.place();
    stage.start_and_wait().await?;
    stage.set_limits().await?;
    for name in ["w1", "w2"] {
        stage.start_worker(name, None)?;
    }
    for round in 0..ROUNDS {
        stage.start_and_wait().await?;
        let load = Load::start(&stage, 60, chance)?;
        sleep(Duration::from_millis(chance.between(300, 1_500))).await;
        disk.fill()?;
        sleep(Duration::from_millis(chance.between(500, 2_000))).await;
        // A scheduler may fail to start without space, and then reports the cause.
        if round == 1 {
            stage.kill()?;
            stage.start()?;
            sleep(Duration::from_millis(500)).await;
        }
        disk.make_room()?;
        if let Err(error) = stage.is_running() {
            report.notes.push(format!("on a full disk, {error}"));
        }
        stage.start_and_wait().await?;
        load.stop().await?;
        drain_and_judge(&mut stage, report).await?;
    }
    let said = stage.history()?.said;
    let is_full = |note: &str| note.contains("the disk is full");
    let n_full = said.iter().filter(|one| one.outcome == Outcome::Fail && is_full(&one.note));
    match n_full.count() {
        0 => Err(Error::Violated("nobody was told that the disk is full".to_owned())),
        n => {
            report.notes.push(format!("{n} requests were told that the disk is full"));
            Ok(())
        }
    }
}

/// Writes fail with an error other than a full disk.
pub(super) async fn fail(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    fail_in(Stage::build((program, dir), LEASE_MS, chance)?, chance, report).await
}

async fn fail_in(mut stage: Stage, chance: &mut Chance, report: &mut Report) -> Result<(), Error> {
    stage.start_and_wait().await?;
    stage.set_limits().await?;
    for name in ["w1", "w2"] {
        stage.start_worker(name, None)?;
    }
    for _ in 0..ROUNDS {
        stage.kill()?;
        stage.place.launch = limited(&stage.place.seen, chance.between(100_000, 600_000));
        stage.start()?;
        let load = Load::start(&stage, 60, chance)?;
        // The content of the disk is unknown, so the scheduler must end with an error.
        let ended =
            until("a scheduler ends that cannot write", NOTICE, async || stage.is_running().err());
        let ended = ended.await?.to_string();
        if !ended.contains("disk") && !ended.contains("store") {
            return Err(Error::Violated(format!("it does not say why: {ended}")));
        }
        stage.note(Fault::SCHEDULER, Harm::Kill);
        report.notes.push(ended);
        stage.place.launch.clear();
        stage.start_and_wait().await?;
        load.stop().await?;
        drain_and_judge(&mut stage, report).await?;
        stage.start_and_wait().await?;
    }
    Ok(())
}
