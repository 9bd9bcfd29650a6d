//! Random faults of processes, of Postgres and of the links between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use checker::Harm;
use faults::{Chance, now_ms};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::stage::{LEASE_MS, Stage};
use crate::weather::Stuck;
use crate::{Error, journal};

/// The interval of checks for due recoveries.
const TICK: Duration = Duration::from_millis(50);
/// The delay before a process that ended is started again.
const AGAIN: Duration = Duration::from_millis(300);

/// Workers that the last fault kills.
const LAST_WORKERS: i64 = 2;
/// The time for which one of them stays down: longer than its lease.
const AWAY: Duration = Duration::from_millis(LEASE_MS + 1_000);

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    KillScheduler,
    SuspendScheduler,
    RestartScheduler,
    KillWorker,
    SuspendWorker,
    RestartWorker,
    CrashPostgres,
    EndBackends,
    CutStore,
    StickStore,
    SlowStore,
    CutDoors,
    StickDoors,
    SlowDoors,
}

/// Each kind with its name in the report, and its weight.
const ACTS: &[(Act, &str, u64)] = &[
    (Act::KillScheduler, "scheduler: SIGKILL", 5),
    (Act::SuspendScheduler, "scheduler: SIGSTOP, then SIGCONT", 3),
    (Act::RestartScheduler, "scheduler: SIGTERM, and another clock (up to 1 h off)", 3),
    (Act::KillWorker, "worker: SIGKILL", 5),
    (Act::SuspendWorker, "worker: SIGSTOP, then SIGCONT", 4),
    (Act::RestartWorker, "worker: SIGTERM", 2),
    (Act::CrashPostgres, "Postgres: immediate stop", 2),
    (Act::EndBackends, "Postgres: pg_terminate_backend", 3),
    (Act::CutStore, "scheduler to Postgres: connections cut", 3),
    (Act::StickStore, "scheduler to Postgres: nothing gets through", 2),
    (Act::SlowStore, "scheduler to Postgres: slow", 2),
    (Act::CutDoors, "workers and clients to a scheduler: connections cut", 3),
    (Act::StickDoors, "workers and clients to a scheduler: nothing gets through", 2),
    (Act::SlowDoors, "workers and clients to a scheduler: slow", 2),
];

/// The recovery from a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cure {
    StartScheduler(usize),
    GoOnScheduler(usize),
    StartWorker(usize),
    GoOnWorker(usize),
    ResumePostgres,
    CalmStore(usize),
    CalmDoors(usize),
}

/// Injects faults, and recovers from them.
pub(crate) struct Nemesis {
    chance: Chance,
    cures: Vec<(Instant, Cure)>,
    tally: BTreeMap<&'static str, usize>,
    /// The time of the last fault or recovery.
    last_ms: i64,
    /// Workers that were not connected all the time since then.
    away: BTreeSet<String>,
}

impl Nemesis {
    pub(crate) fn new(chance: Chance) -> Self {
        Self {
            chance,
            cures: Vec::new(),
            tally: BTreeMap::new(),
            last_ms: now_ms(),
            away: BTreeSet::new(),
        }
    }

    /// Injects a number of faults, evenly over a time.
    pub(crate) async fn rage(
        &mut self,
        stage: &mut Stage,
        (n_faults, within): (usize, Duration),
    ) -> Result<(), Error> {
        let start = Instant::now();
        let pause = within / u32::try_from(n_faults.max(1)).unwrap_or(u32::MAX);
        let mut n_done = 0;
        while n_done < n_faults {
            self.nurse(stage).await?;
            if start.elapsed() >= pause * u32::try_from(n_done).unwrap_or(u32::MAX) {
                n_done += usize::from(self.act(stage).await?);
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Kills a scheduler, and the workers with the most attempts. All start again at once except
    /// one worker, whose attempts only the reaper can release.
    pub(crate) async fn last_blow(&mut self, stage: &mut Stage) -> Result<(), Error> {
        let client = journal::connect(stage.database.url()).await?;
        let sql = "SELECT worker FROM maitre.jobs WHERE worker IS NOT NULL \
            GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT $1";
        let rows = client.query(sql, &[&LAST_WORKERS]).await?;
        let busy: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        for at in 0..stage.workers.len() {
            if busy.contains(&stage.workers[at].name) {
                stage.hurt_worker(at, Harm::Kill);
                let is_first = self.away.is_empty();
                let after = if is_first { AWAY } else { Duration::ZERO };
                self.cure(after, Cure::StartWorker(at));
                self.away.insert(stage.workers[at].name.clone());
                *self.tally.entry("worker: SIGKILL").or_default() += 1;
            }
        }
        let scheduler = self.one_of(stage.schedulers.len());
        stage.hurt_scheduler(scheduler, Harm::Kill);
        self.cure(Duration::ZERO, Cure::StartScheduler(scheduler));
        *self.tally.entry("scheduler: SIGKILL").or_default() += 1;
        self.nurse(stage).await?;
        self.last_ms = now_ms();
        Ok(())
    }

    /// The number of faults of each kind.
    pub(crate) fn tally(&self) -> &BTreeMap<&'static str, usize> {
        &self.tally
    }

    /// Runs due recoveries, and restarts processes that ended, as a supervisor does.
    pub(crate) async fn nurse(&mut self, stage: &mut Stage) -> Result<(), Error> {
        self.heal(stage, Instant::now()).await?;
        self.tend(stage);
        Ok(())
    }

    /// Whether all recoveries are done.
    pub(crate) fn is_done(&self) -> bool {
        self.cures.is_empty()
    }

    /// The time of the last recovery, if all are done, and the workers that were not connected all
    /// the time since then.
    pub(crate) fn healed(&self) -> (i64, BTreeSet<String>) {
        (self.last_ms, self.away.clone())
    }

    fn tend(&mut self, stage: &mut Stage) {
        for at in 0..stage.schedulers.len() {
            if !stage.schedulers[at].is_running() {
                self.cure_once(AGAIN, Cure::StartScheduler(at));
            }
        }
        for at in 0..stage.workers.len() {
            if !stage.workers[at].is_running() {
                self.cure_once(AGAIN, Cure::StartWorker(at));
            }
        }
    }

    fn cure(&mut self, after: Duration, cure: Cure) {
        self.cures.push((Instant::now() + after, cure));
    }

    fn cure_once(&mut self, after: Duration, cure: Cure) {
        if !self.is_cured(cure) {
            self.cure(after, cure);
        }
    }

    fn is_cured(&self, cure: Cure) -> bool {
        self.cures.iter().any(|(_, other)| *other == cure)
    }

    /// Runs due recoveries.
    async fn heal(&mut self, stage: &mut Stage, now: Instant) -> Result<(), Error> {
        let (due, later) =
            std::mem::take(&mut self.cures).into_iter().partition(|(at, _)| *at <= now);
        self.cures = later;
        let due: Vec<(Instant, Cure)> = due;
        for (_, cure) in due {
            match cure {
                Cure::StartScheduler(at) => {
                    if stage.schedulers[at].is_running() {
                        stage.hurt_scheduler(at, Harm::Kill);
                    }
                    stage.start_scheduler(at)?;
                }
                Cure::StartWorker(at) => {
                    if stage.workers[at].is_running() {
                        stage.hurt_worker(at, Harm::Kill);
                    }
                    stage.start_worker(at)?;
                }
                Cure::GoOnScheduler(at) => stage.hurt_scheduler(at, Harm::Continue),
                Cure::GoOnWorker(at) => stage.hurt_worker(at, Harm::Continue),
                Cure::ResumePostgres => {
                    let cluster = Arc::clone(&stage.cluster);
                    tokio::task::spawn_blocking(move || cluster.resume()).await??;
                }
                Cure::CalmStore(at) => stage.ways[at].calm(0),
                Cure::CalmDoors(at) => stage.front.calm(at),
            }
            if self.away.is_empty() {
                self.last_ms = now_ms();
            }
        }
        Ok(())
    }

    /// Draws a fault and injects it, unless its target has a fault already.
    async fn act(&mut self, stage: &mut Stage) -> Result<bool, Error> {
        let mut draw = self.chance.between(1, ACTS.iter().map(|(_, _, weight)| weight).sum());
        let drawn = ACTS.iter().find(|(_, _, weight)| {
            let is_it = draw <= *weight;
            draw = draw.saturating_sub(*weight);
            is_it
        });
        let Some((act, name, _)) = drawn.copied() else { return Ok(false) };
        let is_done = self.do_it(act, stage).await?;
        if is_done {
            self.last_ms = now_ms();
            *self.tally.entry(name).or_default() += 1;
        }
        Ok(is_done)
    }

    async fn do_it(&mut self, act: Act, stage: &mut Stage) -> Result<bool, Error> {
        let scheduler = self.one_of(stage.schedulers.len());
        let worker = self.one_of(stage.workers.len());
        let away = self.between(0, 2_000);
        match act {
            Act::KillScheduler | Act::SuspendScheduler | Act::RestartScheduler => {
                return Ok(self.hurt_scheduler(act, stage, scheduler));
            }
            Act::KillWorker | Act::SuspendWorker | Act::RestartWorker => {
                return Ok(self.hurt_worker(act, stage, worker));
            }
            Act::CrashPostgres => {
                if self.is_cured(Cure::ResumePostgres) {
                    return Ok(false);
                }
                let cluster = Arc::clone(&stage.cluster);
                tokio::task::spawn_blocking(move || cluster.crash()).await??;
                self.cure(away, Cure::ResumePostgres);
            }
            Act::EndBackends => return Ok(self.end_backends(stage).await.is_ok()),
            Act::CutStore => stage.ways[scheduler].cut(0),
            Act::CutDoors => stage.front.cut(scheduler),
            Act::StickStore => {
                let stuck = self.stuck();
                stage.ways[scheduler].stick(0, stuck);
                let after = self.between(200, 2 * LEASE_MS);
                self.cure(after, Cure::CalmStore(scheduler));
            }
            Act::StickDoors => {
                let stuck = self.stuck();
                stage.front.stick(scheduler, stuck);
                let after = self.between(200, 2 * LEASE_MS);
                self.cure(after, Cure::CalmDoors(scheduler));
            }
            Act::SlowStore => {
                let slow = self.between(10, 200);
                stage.ways[scheduler].slow(0, slow);
                let after = self.between(500, 4_000);
                self.cure(after, Cure::CalmStore(scheduler));
            }
            Act::SlowDoors => {
                let slow = self.between(10, 500);
                stage.front.slow(scheduler, slow);
                let after = self.between(500, 4_000);
                self.cure(after, Cure::CalmDoors(scheduler));
            }
        }
        Ok(true)
    }

    fn hurt_scheduler(&mut self, act: Act, stage: &mut Stage, at: usize) -> bool {
        let process = &mut stage.schedulers[at];
        if !process.is_running() || process.is_suspended {
            return false;
        }
        if act == Act::SuspendScheduler {
            stage.hurt_scheduler(at, Harm::Stop);
            let after = self.between(200, 2 * LEASE_MS);
            self.cure(after, Cure::GoOnScheduler(at));
        } else if act == Act::RestartScheduler {
            process.signal(Signal::TERM);
            stage.reset_clock(at, &mut self.chance);
            let after = self.between(1_000, 3_000);
            self.cure(after, Cure::StartScheduler(at));
        } else {
            stage.hurt_scheduler(at, Harm::Kill);
            stage.reset_clock(at, &mut self.chance);
            let after = self.between(0, 2_000);
            self.cure(after, Cure::StartScheduler(at));
        }
        true
    }

    fn hurt_worker(&mut self, act: Act, stage: &mut Stage, at: usize) -> bool {
        let process = &mut stage.workers[at];
        if !process.is_running() || process.is_suspended {
            return false;
        }
        if act == Act::SuspendWorker {
            stage.hurt_worker(at, Harm::Stop);
            let after = self.between(200, 2 * LEASE_MS);
            self.cure(after, Cure::GoOnWorker(at));
        } else if act == Act::RestartWorker {
            process.signal(Signal::TERM);
            let after = self.between(2_000, 4_000);
            self.cure(after, Cure::StartWorker(at));
        } else {
            stage.hurt_worker(at, Harm::Kill);
            let after = self.between(0, 2 * LEASE_MS);
            self.cure(after, Cure::StartWorker(at));
        }
        true
    }

    /// Ends some of the schedulers' sessions in the database, or all.
    async fn end_backends(&mut self, stage: &Stage) -> Result<(), Error> {
        let n = i64::try_from(*self.chance.pick(&[1_u64, 3, 100]).unwrap_or(&1)).unwrap_or(1);
        let client = journal::connect(stage.database.url()).await?;
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE application_name = 'maitre' ORDER BY random() LIMIT $1";
        client.query(sql, &[&n]).await?;
        Ok(())
    }

    fn stuck(&mut self) -> Stuck {
        let ways = [Stuck::There, Stuck::Back, Stuck::All];
        self.chance.pick(&ways).copied().unwrap_or(Stuck::All)
    }

    fn one_of(&mut self, n: usize) -> usize {
        let n = u64::try_from(n.max(1)).unwrap_or(1);
        usize::try_from(self.chance.draw() % n).unwrap_or(0)
    }

    fn between(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_millis(self.chance.between(least_ms, most_ms))
    }
}
