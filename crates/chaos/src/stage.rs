//! Postgres, schedulers, workers, and the links between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use checker::{Calm, Fault, Harm, Limits, Offer};
use cluster::{Cluster, Database, Sync};
use faults::{Chance, Process, free_ports, now_ms, until};
use proto::v1;
use proto::v1::admin_client::AdminClient;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;

use crate::client::{channel, set};
use crate::crew::{TIGHT, WIDE, offer};
use crate::load::{BUDGET, CAPPED, FLEETING, NARROW, OWED, OWED_MIN, RARE, YIELDING};
use crate::weather::{Target, Way};
use crate::{Error, Plan, journal};

/// The lease of workers.
pub(crate) const LEASE_MS: u64 = 3_000;
/// Losses after which a job is parked.
const LOSSES_MAX: u32 = 20;
/// The interval of the reaper.
const EXPIRE_EVERY_MS: i64 = 200;
/// The time beyond a lease and that interval within which an orphaned attempt is released.
const SLACK_MS: i64 = 2_000;
/// The longest wait of a job beside a free slot after the last recovery.
const WAIT_MS: i64 = 5_000;
/// Extra time for each of these limits. There are twice as many processes as CPUs, and other
/// programs may run beside them.
const BUSY_MS: i64 = 3_000;
/// The limit of preemptions of a job.
const EVICTIONS_MAX: u32 = 2;
/// The wait of a job before it preempts, and the run time before a job is preempted.
const EVICT_AFTER_MS: i64 = 200;
const EVICTED_AFTER_MS: i64 = 600;
/// Timeout for the first answer of a scheduler, on a busy machine.
const START: Duration = Duration::from_mins(1);
/// The largest error of a scheduler's clock, in both directions.
const SKEW_MS_MAX: u64 = 3_600_000;
/// The variable with the error of a scheduler's clock.
const SKEW: &str = "MAITRE_FAULT_CLOCK_SKEW_MS";

/// All processes and links.
pub(crate) struct Stage {
    plan: Plan,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) database: Database,
    /// The link from workers and clients to any scheduler.
    pub(crate) front: Way,
    /// The link from each scheduler to Postgres.
    pub(crate) ways: Vec<Way>,
    ports: Vec<u16>,
    pub(crate) schedulers: Vec<Process>,
    pub(crate) workers: Vec<Process>,
    skews_ms: Vec<i64>,
    /// The faults of workers and schedulers.
    pub(crate) faults: Vec<Fault>,
    name: String,
}

impl Stage {
    /// Makes a new Postgres and an empty directory. No other process runs yet.
    pub(crate) async fn build(plan: &Plan, chance: &mut Chance) -> Result<Self, Error> {
        let _ = fs::remove_dir_all(&plan.dir);
        fs::create_dir_all(&plan.dir).map_err(Error::system("make a directory"))?;
        let settings = format!(
            "heartbeat = \"{}ms\"\nlease = \"{LEASE_MS}ms\"\n\
             expire_every = \"{EXPIRE_EVERY_MS}ms\"\nstop_grace = \"100ms\"\n\
             shutdown_grace = \"500ms\"\nlosses_max = {LOSSES_MAX}\n\
             reconnect = \"50ms\"\nreconnect_max = \"300ms\"\n",
            LEASE_MS / 10
        );
        let path = plan.dir.join("maitre.toml");
        fs::write(path, settings).map_err(Error::system("write settings"))?;
        let cluster = tokio::task::spawn_blocking(|| Cluster::start(Sync::Off)).await??;
        let database = cluster.database()?;
        let name = database.url().rsplit('/').next().unwrap_or_default().to_owned();
        let socket = cluster.socket()?;
        let ports = free_ports(plan.schedulers, chance)?;
        let mut ways = Vec::new();
        for _ in &ports {
            ways.push(Way::to(vec![Target::Socket(socket.clone())], chance.branch()).await?);
        }
        let doors = ports.iter().copied().map(Target::Port).collect();
        let front = Way::to(doors, chance.branch()).await?;
        let process = |kind: &str, n: usize| {
            let name = format!("{kind}{n}");
            Process::new(name.clone(), plan.dir.join(format!("{name}.log")))
        };
        Ok(Self {
            schedulers: (1..=plan.schedulers).map(|n| process("s", n)).collect(),
            workers: (1..=plan.workers).map(|n| process("w", n)).collect(),
            skews_ms: vec![0; ports.len()],
            plan: plan.clone(),
            cluster: Arc::new(cluster),
            database,
            front,
            ways,
            ports,
            faults: Vec::new(),
            name,
        })
    }

    /// Starts all processes, sets the limits of tenants, and installs the journal.
    pub(crate) async fn open(&mut self, chance: &mut Chance) -> Result<(), Error> {
        for scheduler in 0..self.schedulers.len() {
            self.reset_clock(scheduler, chance);
            self.start_scheduler(scheduler)?;
        }
        self.until_answers().await?;
        journal::install(self.database.url()).await?;
        for sql in &self.plan.sabotage {
            self.database.say(sql)?;
        }
        self.set_limits().await?;
        // All schedulers know the limits now, before any job is submitted.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for worker in 0..self.workers.len() {
            self.start_worker(worker)?;
        }
        Ok(())
    }

    async fn set_limits(&self) -> Result<(), Error> {
        let port = self.front.port;
        let quota = |pool: &str, min: u32, max: u32| {
            let quota = json!({ "pool": pool, "min": min, "max": max });
            json!({ "quotas": [quota] }).to_string()
        };
        let jobs_max = |max: u32| json!({ "jobs_max": max }).to_string();
        let (tenant, kind) = (v1::SettingKind::Tenant, v1::SettingKind::Type);
        let budget = json!({ "budget": BUDGET.1 }).to_string();
        let preemption = json!({
            "enabled": true,
            "delay_ms": EVICT_AFTER_MS,
            "min_run_ms": EVICTED_AFTER_MS,
            "evictions_max": EVICTIONS_MAX,
        });
        let policy = json!({ "preset": "balanced", "preemption": preemption }).to_string();
        set(port, (v1::SettingKind::Policy, "", &policy)).await?;
        set(port, (tenant, CAPPED.0, &quota(WIDE, 0, CAPPED.1))).await?;
        set(port, (tenant, YIELDING.0, &quota(TIGHT, 0, YIELDING.1))).await?;
        set(port, (tenant, OWED.0, &quota(TIGHT, OWED_MIN, OWED.1))).await?;
        set(port, (tenant, NARROW.0, &jobs_max(NARROW.1))).await?;
        set(port, (tenant, BUDGET.0, &budget)).await?;
        set(port, (kind, RARE.0, &jobs_max(RARE.1))).await?;
        set(port, (kind, FLEETING, "{\"forget\":true}")).await
    }

    /// Raises the budget of the tenant with one, so that all its jobs end.
    pub(crate) async fn lift_budget(&self) -> Result<(), Error> {
        let lifted = (v1::SettingKind::Tenant, BUDGET.0, "{\"budget\":1000000000}");
        set(self.front.port, lifted).await
    }

    /// Waits until every scheduler answers. A scheduler that failed to start is started again.
    async fn until_answers(&mut self) -> Result<(), Error> {
        for scheduler in 0..self.ports.len() {
            let port = self.ports[scheduler];
            until("every scheduler answers", START, async || {
                if !self.schedulers[scheduler].is_running() {
                    self.start_scheduler(scheduler).ok()?;
                }
                let mut admin = AdminClient::new(channel(port));
                admin.status(v1::StatusRequest {}).await.ok()
            })
            .await?;
        }
        Ok(())
    }

    /// Draws a new clock error of a scheduler, from its next start on.
    pub(crate) fn reset_clock(&mut self, scheduler: usize, chance: &mut Chance) {
        let off_ms = i64::try_from(chance.between(0, SKEW_MS_MAX)).unwrap_or(0);
        self.skews_ms[scheduler] = match chance.between(0, 2) {
            0 => 0,
            1 => off_ms,
            _ => -off_ms,
        };
    }

    pub(crate) fn start_scheduler(&mut self, scheduler: usize) -> Result<(), Error> {
        let store = self.ways[scheduler].port;
        let store = format!("postgres://maitre@127.0.0.1:{store}/{}", self.name);
        let mut command = Command::new(&self.plan.program);
        command.current_dir(&self.plan.dir).args(["serve", "--config", "maitre.toml"]);
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.ports[scheduler]));
        command.arg("--store").arg(store).env(SKEW, self.skews_ms[scheduler].to_string());
        Ok(self.schedulers[scheduler].start(command)?)
    }

    pub(crate) fn start_worker(&mut self, worker: usize) -> Result<(), Error> {
        let process = &mut self.workers[worker];
        let mut command = Command::new(&self.plan.hand);
        command.args(["worker", "--name", &process.name, "--place", &worker.to_string()]);
        command.arg("--server").arg(format!("127.0.0.1:{}", self.front.port));
        command.arg("--log").arg(self.plan.dir.join(format!("{}.runs", process.name)));
        Ok(process.start(command)?)
    }

    /// Suspends, continues or kills a worker, and records the fault.
    pub(crate) fn hurt_worker(&mut self, worker: usize, harm: Harm) {
        let process = &mut self.workers[worker];
        // Before the fault: until then the worker certainly ran.
        let at_ms = now_ms();
        hurt(process, harm);
        let who = process.name.clone();
        self.faults.push(Fault { at_ms, harm, who });
    }

    /// The same for a scheduler.
    pub(crate) fn hurt_scheduler(&mut self, scheduler: usize, harm: Harm) {
        let process = &mut self.schedulers[scheduler];
        hurt(process, harm);
        let who = process.name.clone();
        self.faults.push(Fault { at_ms: now_ms(), harm, who });
    }

    /// The problems that the store's own check finds.
    pub(crate) fn problems(&self) -> Result<Vec<String>, Error> {
        let mut command = Command::new(&self.plan.program);
        command.args(["store", "check", "--json", "--store", self.database.url()]);
        let output = command.current_dir(&self.plan.dir).output();
        let output = output.map_err(Error::system("check the store"))?;
        let checked: Option<Checked> = serde_json::from_slice(&output.stdout).ok();
        let said = || vec![String::from_utf8_lossy(&output.stderr).trim().to_owned()];
        Ok(checked.map_or_else(said, |checked| checked.problems))
    }

    /// Dumps the data for later analysis.
    pub(crate) fn keep(&self) -> Result<(), Error> {
        let dump = |schema: &str| {
            self.database.dump(schema, &self.plan.dir.join(format!("{schema}.dump")))
        };
        dump("maitre")?;
        Ok(dump("journal")?)
    }

    /// The offer of each worker.
    pub(crate) fn offers(&self) -> BTreeMap<String, Offer> {
        let names = self.workers.iter().map(|worker| worker.name.clone());
        names.enumerate().map(|(place, name)| (name, offer(place))).collect()
    }

    /// The log of a client.
    pub(crate) fn client_log(&self, number: u32) -> PathBuf {
        self.plan.dir.join(format!("client-{number}.jsonl"))
    }

    /// The logs of all clients, the last extra client included.
    pub(crate) fn client_logs(&self) -> Vec<PathBuf> {
        (0..=self.plan.clients).map(|number| self.client_log(number)).collect()
    }

    /// The records of workers.
    pub(crate) fn run_logs(&self) -> Vec<PathBuf> {
        let log = |one: &Process| self.plan.dir.join(format!("{}.runs", one.name));
        self.workers.iter().map(log).collect()
    }

    /// Panics, which no process may have.
    pub(crate) fn panics(&self) -> Vec<String> {
        self.schedulers.iter().chain(&self.workers).flat_map(Process::panics).collect()
    }
}

/// The limits of the recovery after the last fault.
pub(crate) fn calm((healed_ms, away): (i64, BTreeSet<String>)) -> Calm {
    let lease_ms = i64::try_from(LEASE_MS).unwrap_or(i64::MAX);
    let late_ms = EXPIRE_EVERY_MS + SLACK_MS + BUSY_MS;
    Calm {
        healed_ms,
        read_ms: now_ms(),
        away,
        orphan_ms: lease_ms + late_ms,
        // A worker has two leases of time to report the start of a claimed attempt.
        offer_ms: 2 * lease_ms + late_ms,
        wait_ms: WAIT_MS + BUSY_MS,
    }
}

/// The limits that must not be exceeded.
pub(crate) fn limits() -> Limits {
    let of = |(name, max): (&str, u32)| BTreeMap::from([(name.to_owned(), max)]);
    Limits {
        tenant_slots: [CAPPED, YIELDING, OWED].into_iter().flat_map(of).collect(),
        budgets: [BUDGET.0.to_owned()].into(),
        owed: [OWED.0.to_owned()].into(),
        evictions_max: EVICTIONS_MAX,
        evicted_after_ms: EVICTED_AFTER_MS,
        tenant_jobs: of(NARROW),
        type_jobs: of(RARE),
        losses_max: LOSSES_MAX,
        ..Limits::default()
    }
}

/// The output of `maitre store check`.
#[derive(Deserialize)]
struct Checked {
    problems: Vec<String>,
}

fn hurt(process: &mut Process, harm: Harm) {
    match harm {
        Harm::Kill => process.kill(),
        Harm::Stop => process.signal(Signal::STOP),
        Harm::Continue => process.signal(Signal::CONT),
    }
}
