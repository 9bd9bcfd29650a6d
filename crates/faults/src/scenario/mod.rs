//! The scenarios, and their judgement.

mod schedulers;
mod workers;
mod stale;
mod full;
mod torn;

use std::env;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use checker::{Attempt, Harm, History, Outcome, Scope, Violation, check};
use tokio::time::Instant;

use crate::stage::Stage;
use crate::{Chance, Error};

/// Timeout for the end of all jobs after the last fault, on a busy machine.
const DRAIN: Duration = Duration::from_mins(2);
/// Violations that are listed.
const LISTED_MAX: usize = 20;

/// Kills the scheduler repeatedly under load: `MAITRE_FAULT_KILLS` times, or 50.
pub fn killed_schedulers(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("killed schedulers", async |chance, report| {
        schedulers::play((program, dir), chance, report).await
    })
}

/// Kills workers, and suspends them until their leases run out.
pub fn unwell_workers(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("unwell workers", async |chance, report| {
        workers::play((program, dir), chance, report).await
    })
}

/// A worker does not notice the end of its lease, and sends all kinds of stale reports.
pub fn stale_results(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("stale results", async |chance, report| stale::play((program, dir), chance, report).await)
}

/// Fills the scheduler's disk.
pub fn full_disk(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("full disk", async |chance, report| full::play((program, dir), chance, report).await)
}

/// Makes writes of the scheduler fail with an error other than a full disk.
pub fn write_errors(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("write errors", async |chance, report| full::fail((program, dir), chance, report).await)
}

/// Truncates the store's log.
pub fn torn_logs(program: &Path, dir: &Path) -> Result<Report, Error> {
    play("torn logs", async |chance, report| torn::play((program, dir), chance, report).await)
}

/// The result of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The name of the scenario.
    pub name: &'static str,
    /// The value of `MAITRE_FAULT_SEED` for a repetition.
    pub seed: u64,
    /// Its duration.
    pub took: Duration,
    /// Jobs in the store, of all rounds.
    pub n_jobs: usize,
    /// Of these, succeeded.
    pub n_succeeded: usize,
    /// Submissions and cancels that were acknowledged.
    pub n_acknowledged: usize,
    /// Requests with an unknown outcome at first.
    pub n_unknown: usize,
    /// Requests that were rejected without an effect.
    pub n_refused: usize,
    /// Attempts that ended.
    pub n_attempts: usize,
    /// Of these, lost with a worker or a lease.
    pub n_lost: usize,
    /// Of these, on workers without faults. Their leases ran out because the scheduler was down for
    /// too long, or the machine was too busy.
    pub n_lost_unhurt: usize,
    /// Schedulers that were killed, or had to end.
    pub n_schedulers: usize,
    /// Workers that were killed.
    pub n_workers: usize,
    /// Workers that were suspended.
    pub n_suspended: usize,
    /// Stale reports and results of workers that were rejected.
    pub n_stale: u64,
    /// Further notes.
    pub notes: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: seed {}, {:.1} s: {} jobs ({} succeeded), {} acknowledged, {} unknown at first, \
             {} refused; {} attempts, {} lost ({} on workers that were not hurt); {} schedulers \
             and {} workers killed, {} workers suspended, {} stale words refused",
            self.name,
            self.seed,
            self.took.as_secs_f64(),
            self.n_jobs,
            self.n_succeeded,
            self.n_acknowledged,
            self.n_unknown,
            self.n_refused,
            self.n_attempts,
            self.n_lost,
            self.n_lost_unhurt,
            self.n_schedulers,
            self.n_workers,
            self.n_suspended,
            self.n_stale,
        )?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

impl Report {
    /// Adds the numbers of a history of this scenario.
    fn add(&mut self, history: &History) {
        let n_said = |outcome| history.said.iter().filter(|said| said.outcome == outcome).count();
        let lost = history.attempts.iter().filter(|attempt| attempt.ending == "lost");
        let is_hurt = |attempt: &Attempt| {
            let during = attempt.claimed_ms..=attempt.ended_ms.unwrap_or(i64::MAX);
            let mut hurt = history.faults.iter().filter(|fault| fault.who == attempt.worker);
            hurt.any(|fault| during.contains(&fault.at_ms))
        };
        self.n_jobs = history.jobs.len();
        self.n_succeeded = history.jobs.iter().filter(|job| job.state == "succeeded").count();
        self.n_acknowledged = n_said(Outcome::Ok);
        self.n_unknown = n_said(Outcome::Unknown);
        self.n_refused = n_said(Outcome::Fail);
        self.n_attempts = history.attempts.len();
        self.n_lost = lost.clone().count();
        self.n_lost_unhurt = lost.filter(|attempt| !is_hurt(attempt)).count();
    }

    /// Fails with all violations of a history.
    fn judge(&mut self, history: &History, scope: Scope) -> Result<(), Error> {
        self.add(history);
        let violations = check(history, scope);
        if violations.is_empty() {
            return Ok(());
        }
        Err(Error::Violated(listed(&violations)))
    }

    /// Counts the faults of a stage.
    fn count(&mut self, stage: &Stage) {
        let n = |harm, is_worker: bool| {
            let faults = stage.faults.iter();
            let own = faults.filter(|one| one.harm == harm && one.is_worker() == is_worker);
            own.count()
        };
        self.n_schedulers = n(Harm::Kill, false);
        self.n_workers = n(Harm::Kill, true);
        self.n_suspended = n(Harm::Stop, true);
    }
}

/// The violations, one line each.
fn listed(violations: &[Violation]) -> String {
    let first = violations.iter().take(LISTED_MAX).map(ToString::to_string);
    let lines: Vec<String> = first.collect();
    format!("{} violations:\n  {}", violations.len(), lines.join("\n  "))
}

/// Runs a scenario with a seed, and always prints the seed.
fn play(
    name: &'static str,
    scenario: impl AsyncFnOnce(&mut Chance, &mut Report) -> Result<(), Error>,
) -> Result<Report, Error> {
    let seed = Chance::seed();
    let mut report = Report { name, seed, ..Report::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("start a runtime"))?;
    let outcome = runtime.block_on(async {
        let start = Instant::now();
        let outcome = scenario(&mut Chance::new(seed), &mut report).await;
        report.took = start.elapsed();
        outcome
    });
    match outcome {
        Ok(()) => Ok(report),
        Err(error) => Err(Error::Violated(format!("{report}\n{}", told(&error)))),
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", told(cause)));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Waits for the end of all jobs, kills the scheduler once more, and judges the history.
async fn drain_and_judge(stage: &mut Stage, report: &mut Report) -> Result<(), Error> {
    stage.drain(DRAIN).await?;
    stage.kill()?;
    report.count(stage);
    report.judge(&stage.history()?, Scope::Everything)
}

/// A count that the environment can set.
fn asked(variable: &str, default: u64) -> u64 {
    env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
