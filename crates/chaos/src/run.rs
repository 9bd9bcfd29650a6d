//! One run: start, load and faults, then recovery and judgement.

use std::path::PathBuf;
use std::time::Duration;

use checker::{Scope, Violation, check};
use faults::Chance;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::client::Client;
use crate::harm::Nemesis;
use crate::journal::{self, Auditor};
use crate::report::Report;
use crate::stage::{Stage, calm};
use crate::{Error, kept};

/// After the last recovery, some job ends within this time, also on a busy machine.
const REST: Duration = Duration::from_mins(1);
/// The interval of checks for that.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The time between the last random fault and the end, in which all recoveries happen.
const LAST: Duration = Duration::from_secs(6);
/// The limit of named jobs that do not end.
const STUCK_MAX: i64 = 5;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `maitre` to test.
    pub program: PathBuf,
    /// The program for workers, with `worker` as its first argument.
    pub hand: PathBuf,
    /// The directory of all logs.
    pub dir: PathBuf,
    /// The seed of all random choices.
    pub seed: u64,
    /// The duration of submissions and faults.
    pub length: Duration,
    /// The number of faults.
    pub faults: usize,
    /// The number of jobs.
    pub jobs: usize,
    /// The number of schedulers.
    pub schedulers: usize,
    /// The number of workers.
    pub workers: usize,
    /// The number of clients.
    pub clients: u32,
    /// SQL that runs first and causes violations, for tests of the checker.
    pub sabotage: Vec<String>,
}

/// Runs a plan, and judges it.
pub fn run(plan: &Plan) -> Result<Report, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Error::system("start a runtime"))?.block_on(play(plan))
}

async fn play(plan: &Plan) -> Result<Report, Error> {
    let (start, mut chance) = (Instant::now(), Chance::new(plan.seed));
    let mut report = Report { seed: plan.seed, ..Report::default() };
    let mut stage = Stage::build(plan, &mut chance).await?;
    stage.open(&mut chance).await?;
    let auditor = Auditor::start(stage.database.url().to_owned());
    let mut clients = clients(plan, &stage, &mut chance)?;
    let mut nemesis = Nemesis::new(chance.branch());
    nemesis.rage(&mut stage, (plan.faults, plan.length.saturating_sub(LAST))).await?;
    if plan.faults > 0 {
        last_blow(plan, (&mut stage, &mut nemesis), &mut chance).await?;
    }
    report.faults.clone_from(nemesis.tally());
    while !(clients.is_empty() && nemesis.is_done()) {
        nemesis.nurse(&mut stage).await?;
        if let Ok(Some(ended)) = timeout(LOOK_EVERY, clients.join_next()).await {
            ended??;
        }
    }
    let seen = auditor.stop();
    report.n_looks = seen.n_looks;
    let well = Instant::now();
    report.violations.extend(rest(&mut stage, &mut nemesis).await?);
    report.rest = well.elapsed();
    let client = journal::connect(stage.database.url()).await?;
    let mut history = kept::history(&client, &stage).await?;
    history.seen = seen.findings;
    history.calm = Some(calm(nemesis.healed()));
    report.add(&history);
    report.violations.extend(check(&history, Scope::Everything));
    if !report.violations.is_empty() {
        stage.keep()?;
    }
    report.took = start.elapsed();
    Ok(report)
}

/// After all recoveries, while clients still work, fills a pool and kills the workers that run it.
/// No fault follows, so that the recovery can be measured.
async fn last_blow(
    plan: &Plan,
    (stage, nemesis): (&mut Stage, &mut Nemesis),
    chance: &mut Chance,
) -> Result<(), Error> {
    while !nemesis.is_done() {
        nemesis.nurse(stage).await?;
        sleep(LOOK_EVERY).await;
    }
    let log = stage.client_log(plan.clients);
    let client = Client::new(plan.clients, stage.front.port, &log, chance.branch())?;
    client.squeeze_once().await?;
    nemesis.last_blow(stage).await
}

/// Starts the clients, each with an equal part of the jobs.
fn clients(
    plan: &Plan,
    stage: &Stage,
    chance: &mut Chance,
) -> Result<JoinSet<Result<(), Error>>, Error> {
    let mut clients = JoinSet::new();
    let n_clients = usize::try_from(plan.clients).unwrap_or(1);
    let share = plan.jobs / n_clients.max(1);
    for number in 0..plan.clients {
        let log = stage.client_log(number);
        let client = Client::new(number, stage.front.port, &log, chance.branch())?;
        clients.spawn(client.work(share, plan.length));
    }
    Ok(clients)
}

const N_LEFT: &str = "SELECT count(*) FROM maitre.jobs";
const LEFT: &str = "SELECT id, state, coalesce(worker, '-'), attempts FROM maitre.jobs \
    ORDER BY id LIMIT $1";

/// Waits until every job is final. Processes that end meanwhile are started again. Jobs that do not
/// end are violations.
async fn rest(stage: &mut Stage, nemesis: &mut Nemesis) -> Result<Vec<Violation>, Error> {
    let client = journal::connect(stage.database.url()).await?;
    let (mut since, mut n_before) = (Instant::now(), i64::MAX);
    let mut is_lifted = false;
    while since.elapsed() < REST {
        nemesis.nurse(stage).await?;
        is_lifted = is_lifted || stage.lift_budget().await.is_ok();
        let n_left: i64 = client.query_one(N_LEFT, &[]).await?.try_get(0)?;
        if n_left == 0 {
            return Ok(Vec::new());
        }
        if n_left < n_before {
            (since, n_before) = (Instant::now(), n_left);
        }
        sleep(LOOK_EVERY).await;
    }
    let mut stuck = Vec::new();
    for row in client.query(LEFT, &[&STUCK_MAX]).await? {
        let (id, state, worker, attempts): (i64, String, String, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let what = format!("job {id} is {state} on {worker} after {attempts} attempts");
        stuck.push(Violation { rule: "stuck", what });
    }
    Ok(stuck)
}
