//! A worker continues after its lease, reconnects, and reports attempts that it has lost.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use proto::v1;

use super::{DRAIN, Report, drain_and_judge};
use crate::clock::until;
use crate::job::{Manner, spec};
use crate::stage::Stage;
use crate::zombie::{HAS, Zombie};
use crate::{Chance, Error};

/// Long enough for answers in time on a busy machine.
const LEASE_MS: u64 = 4_000;
/// Timeout of each expected event.
const SOON: Duration = Duration::from_mins(1);

pub(super) async fn play(
    (program, dir): (&Path, &Path),
    chance: &mut Chance,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stage = Stage::build((program, dir), LEASE_MS, chance)?;
    stage.start_and_wait().await?;
    late(&mut stage, report).await?;
    repeated(&mut stage, report).await?;
    foreign(&mut stage, report).await?;
    stage.drain(DRAIN).await?;
    report.n_stale = stage.rpc().counter("stale_words").await;
    drain_and_judge(&mut stage, report).await
}

/// Its lease is over and a different worker completed its job. It then reports its own completion.
async fn late(stage: &mut Stage, report: &mut Report) -> Result<(), Error> {
    let (mut zombie, _) = Zombie::arrive(stage.port, "z1", Vec::new()).await?;
    let job = submit(stage, Manner::Plain).await?;
    let attempt = zombie.take().await?;
    assert_same(job, attempt.job)?;
    stage.start_worker("w1", Some(&format!("{}={}", HAS.0, HAS.1)))?;
    let rpc = stage.rpc();
    until("another worker does the job", SOON, async || {
        let job = rpc.get(job).await.ok()?.job?;
        (job.state() == v1::State::Succeeded).then_some(())
    })
    .await?;
    // No scheduler reads its old stream. On a new one, its report is rejected as stale.
    zombie.complete(attempt, v1::Ending::Permanent).await?;
    let (mut zombie, welcome) = Zombie::arrive(stage.port, "z1", vec![attempt]).await?;
    refused(welcome.stale.contains(&attempt), "a stale attempt is welcome")?;
    for ending in [v1::Ending::Permanent, v1::Ending::Succeeded] {
        zombie.complete(attempt, ending).await?;
        refused(zombie.is_stale(attempt).await?, "a late result is taken")?;
    }
    report.notes.push(format!("job {job}: two late results are refused"));
    Ok(())
}

/// A completion in time counts once, with any later report.
async fn repeated(stage: &mut Stage, report: &mut Report) -> Result<(), Error> {
    stage.kill_worker("w1");
    let (mut zombie, _) = Zombie::arrive(stage.port, "z2", Vec::new()).await?;
    let job = submit(stage, Manner::Plain).await?;
    let attempt = zombie.take().await?;
    assert_same(job, attempt.job)?;
    let runs = File::options().create(true).append(true).open(stage.runs());
    let mut runs = runs.map_err(Error::system("open the records of runs"))?;
    for what in ["start", "end"] {
        let line = format!("{what} {job} {} z2 0.00", attempt.attempt);
        writeln!(runs, "{line}").map_err(Error::system("write down a run"))?;
    }
    zombie.complete(attempt, v1::Ending::Succeeded).await?;
    refused(!zombie.is_stale(attempt).await?, "a result that came in time is refused")?;
    for ending in [v1::Ending::Succeeded, v1::Ending::Permanent] {
        zombie.complete(attempt, ending).await?;
        zombie.is_stale(attempt).await?;
    }
    report.notes.push(format!("job {job}: one result of three counts"));
    Ok(())
}

/// It reports an attempt of a different worker, and an attempt that does not exist yet.
async fn foreign(stage: &mut Stage, report: &mut Report) -> Result<(), Error> {
    stage.start_worker("w1", Some(&format!("{}={}", HAS.0, HAS.1)))?;
    let rpc = stage.rpc();
    let job = submit(stage, Manner::Slow(15)).await?;
    let running = until("another worker runs the job", SOON, async || {
        let job = rpc.get(job).await.ok()?.job?;
        (job.state() == v1::State::Running && job.worker == "w1").then_some(job)
    });
    let attempt = running.await?.counts.unwrap_or_default().attempts;
    let (mut zombie, _) = Zombie::arrive(stage.port, "z3", Vec::new()).await?;
    for attempt in [attempt, attempt + 1] {
        let attempt = v1::AttemptRef { job, attempt };
        zombie.complete(attempt, v1::Ending::Permanent).await?;
        refused(zombie.is_stale(attempt).await?, "a foreign result is taken")?;
    }
    report.notes.push(format!("job {job}: two foreign results are refused"));
    Ok(())
}

/// A job that only zombie workers can run.
async fn submit(stage: &Stage, manner: Manner) -> Result<u64, Error> {
    let mut job = spec("a", manner, &stage.runs());
    let values = v1::Values { values: vec![HAS.1.to_owned()] };
    job.needs = HashMap::from([(HAS.0.to_owned(), values)]);
    let request = v1::SubmitRequest { jobs: vec![job], ..v1::SubmitRequest::default() };
    let answer = stage.rpc().jobs().submit(request).await;
    let refused = |status| Error::Refused { doing: "take a job", source: Box::new(status) };
    let jobs = answer.map_err(refused)?.into_inner().jobs;
    Ok(jobs.first().map_or(0, |job| job.id))
}

fn assert_same(job: u64, offered: u64) -> Result<(), Error> {
    refused(job == offered, &format!("job {offered} is offered in place of job {job}"))
}

fn refused(is_so: bool, otherwise: &str) -> Result<(), Error> {
    if is_so { Ok(()) } else { Err(Error::Violated(otherwise.to_owned())) }
}
