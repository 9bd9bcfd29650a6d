//! The end of the store's log is lost although it was synced. The rest must be an earlier state of
//! the store.

use std::fs;
use std::path::Path;
use std::time::Duration;

use checker::{History, Op, Outcome, Scope, Violation, check};
use tokio::time::sleep;

use super::{DRAIN, Report, listed};
use crate::disk::{log_length, tear};
use crate::load::Load;
use crate::stage::Stage;
use crate::{Chance, Error};

const LEASE_MS: u64 = 3_000;
const ROUNDS: u64 = 5;
const WORKERS: [&str; 2] = ["w1", "w2"];

pub(super) async fn play(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stage = Stage::build((program, dir), LEASE_MS, chance)?;
    stage.start_and_wait().await?;
    stage.set_limits().await?;
    // A store without its tables would be a new store.
    let keep = log_length(&stage.place.seen)?;
    for _ in 0..ROUNDS {
        stage.start_and_wait().await?;
        for name in WORKERS {
            stage.start_worker(name, None)?;
        }
        let load = Load::start(&stage, 40, chance)?;
        sleep(Duration::from_millis(chance.between(500, 2_000))).await;
        stage.kill()?;
        // Workers know jobs that the disk has lost. They are killed, so that old and new jobs do
        // not mix.
        stage.kill_workers();
        drop(load);
        report.notes.push(tear(&stage.place.seen, keep, chance)?);
        let history = stage.history()?;
        judge_torn(&history)?;
        forget(&stage)?;
        stage.start_and_wait().await?;
        for name in WORKERS {
            stage.start_worker(name, None)?;
        }
        stage.drain(DRAIN).await?;
        stage.kill()?;
        report.count(&stage);
        report.judge(&stage.history()?, Scope::StoreAlone)?;
    }
    Ok(())
}

/// The rest is consistent and ends at the tear, without earlier gaps.
fn judge_torn(history: &History) -> Result<(), Error> {
    let mut violations = check(history, Scope::StoreAlone);
    violations.retain(|violation| violation.rule != "not-final");
    // By time and not by number: small submissions reserve numbers before they are written.
    let newest = history.jobs.iter().max_by_key(|job| job.created_ms);
    let (last, until) = newest.map_or((0, 0), |job| (job.id, job.created_ms));
    let acknowledged = history
        .said
        .iter()
        .filter(|one| one.op == Op::Submit && one.outcome == Outcome::Ok && one.at_ms < until);
    for id in acknowledged.flat_map(|said| &said.ids) {
        if !history.jobs.iter().any(|job| job.id == *id) {
            let what = format!("job {id} is gone, and job {last}, which came later, is there");
            violations.push(Violation { rule: "no-prefix", what });
        }
    }
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::Violated(format!("after the tear, {}", listed(&violations))))
}

/// Deletes the logs of clients and processes, because the disk lost their jobs.
fn forget(stage: &Stage) -> Result<(), Error> {
    let clients = (0..).map(|client| stage.log_of(client)).take_while(|path| path.exists());
    let paths: Vec<_> = clients.chain([stage.runs()]).filter(|path| path.exists()).collect();
    paths.iter().try_for_each(fs::remove_file).map_err(Error::system("forget a log"))
}
