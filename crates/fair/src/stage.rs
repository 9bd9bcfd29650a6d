//! The real processes of one scenario, in a directory of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cluster::{Cluster, Database};
use faults::{Chance, Process, free_ports, now_ms, until};
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::Error;
use crate::notes::{Notes, SCRIPT, SCRIPT_NAME};
use crate::scenario::{By, Load, Scenario, Start, Store};

/// How long a scheduler may take to answer after its start, and a worker to be listed.
const START: Duration = Duration::from_mins(1);
/// Settings that let a killed worker or scheduler be noticed within seconds.
const SETTINGS: [&str; 6] = [
    "heartbeat=500ms",
    "lease=4s",
    "expire_every=200ms",
    "stop_grace=500ms",
    "reconnect=50ms",
    "reconnect_max=300ms",
];

/// Schedulers, workers and a command line.
pub(crate) struct Stage {
    program: PathBuf,
    pub(crate) dir: PathBuf,
    database: Option<Database>,
    ports: Vec<u16>,
    schedulers: Vec<Process>,
    workers: Vec<Process>,
    scenario: Scenario,
    pub(crate) notes: Notes,
    /// The moment at which a worker was killed, by name.
    pub(crate) lost: BTreeMap<String, i64>,
    /// Jobs that were submitted, by tenant. Cancelled jobs do not count.
    submitted: BTreeMap<String, usize>,
    n_submits: usize,
}

impl Stage {
    /// Starts the schedulers and workers of a scenario in an empty directory.
    pub(crate) async fn build(
        (program, dir): (&Path, &Path),
        scenario: &Scenario,
        cluster: Option<&Cluster>,
        chance: &mut Chance,
    ) -> Result<Self, Error> {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("tmp")).map_err(Error::system("make a directory"))?;
        fs::write(dir.join(SCRIPT_NAME), SCRIPT).map_err(Error::system("write the job"))?;
        fs::write(dir.join("maitre.toml"), "").map_err(Error::system("write settings"))?;
        let n_schedulers = match scenario.store {
            Store::Sqlite => 1,
            Store::Postgres(n) => n,
        };
        let database = match scenario.store {
            Store::Sqlite => None,
            Store::Postgres(_) => cluster.map(Cluster::database).transpose()?,
        };
        let process = |kind: &str, n: usize| {
            let name = format!("{kind}{n}");
            Process::new(name.clone(), dir.join(format!("{name}.log")))
        };
        let mut stage = Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            database,
            ports: free_ports(n_schedulers, chance)?,
            schedulers: (1..=n_schedulers).map(|n| process("s", n)).collect(),
            workers: (1..=scenario.workers.len()).map(|n| process("w", n)).collect(),
            scenario: scenario.clone(),
            notes: Notes::new(dir)?,
            lost: BTreeMap::new(),
            submitted: BTreeMap::new(),
            n_submits: 0,
        };
        for scheduler in 0..n_schedulers {
            stage.start_scheduler(scheduler).await?;
        }
        for worker in 0..scenario.workers.len() {
            if scenario.workers[worker].start == Start::First {
                stage.start_worker(worker).await?;
            }
        }
        Ok(stage)
    }

    /// Starts a scheduler, and waits until it answers.
    pub(crate) async fn start_scheduler(&mut self, scheduler: usize) -> Result<(), Error> {
        let mut command = self.command();
        command.args(["serve", "--config", "maitre.toml", "--listen", &self.address(scheduler)]);
        match &self.database {
            Some(database) => command.args(["--store", database.url()]),
            None => command.args(["--data-dir", "data"]),
        };
        command.args(SETTINGS.iter().flat_map(|setting| ["--set", setting]));
        self.schedulers[scheduler].start(command)?;
        let answers =
            until("the scheduler answers", START, async || match self.status(scheduler).await {
                Ok(()) => Some(Ok(())),
                Err(_) if self.schedulers[scheduler].is_running() => None,
                Err(error) => Some(Err(error)),
            });
        answers.await?
    }

    async fn status(&self, scheduler: usize) -> Result<(), Error> {
        self.call(scheduler, &["tenants", "--json"], "").await.map(drop)
    }

    /// Starts a worker, and waits until its scheduler lists it.
    pub(crate) async fn start_worker(&mut self, worker: usize) -> Result<(), Error> {
        let scheduler = worker % self.ports.len();
        let offer = &self.scenario.workers[worker];
        let name = self.workers[worker].name.clone();
        let mut command = self.command();
        command.args(["work", "--exec", "--name", &name, "--slots", &offer.slots.to_string()]);
        command.args(["--server", &self.address(scheduler)]);
        command.args(offer.has.map(|has| format!("--has={has}")));
        // Of the environment of a worker, its jobs get `USER` and `TMPDIR`.
        command.env("USER", &name).env("TMPDIR", self.dir.join("tmp"));
        self.workers[worker].start(command)?;
        let listed = until("the worker is listed", START, async || {
            let workers = self.call(scheduler, &["workers", "--json"], "").await.ok()?;
            workers.contains(&format!("\"{name}\"")).then_some(())
        });
        Ok(listed.await?)
    }

    pub(crate) fn kill_scheduler(&mut self, scheduler: usize) {
        self.schedulers[scheduler].kill();
    }

    pub(crate) fn kill_worker(&mut self, worker: usize) {
        self.workers[worker].kill();
        self.lost.insert(self.workers[worker].name.clone(), now_ms());
    }

    /// Says what panicked, or ended without being killed.
    pub(crate) fn panics(&self) -> Vec<String> {
        self.schedulers.iter().chain(&self.workers).flat_map(Process::panics).collect()
    }

    /// Submits jobs through the schedulers in turn.
    pub(crate) async fn submit(&mut self, load: &Load) -> Result<(), Error> {
        *self.submitted.entry(load.tenant.to_owned()).or_default() += load.n;
        let command = self.job_command(load);
        let n_calls = match load.by {
            By::Files(n_calls) => n_calls,
            By::Array => {
                let n = load.n.to_string();
                let mut words = vec!["submit", "--tenant", load.tenant, "--array", &n, "--"];
                words.extend(command.iter().map(String::as_str));
                return self.call_next(&words, "").await;
            }
        };
        let lines: Vec<String> = (0..load.n).map(|n| line(load, &command, n)).collect();
        for lines in lines.chunks(load.n.div_ceil(n_calls).max(1)) {
            self.call_next(&["submit", "--file", "-"], &lines.join("\n")).await?;
        }
        Ok(())
    }

    /// Cancels all jobs of a tenant.
    pub(crate) async fn cancel(&mut self, tenant: &str) -> Result<(), Error> {
        self.tell(&["cancel", "--tenant", tenant, "--all", "--yes"]).await?;
        self.notes.read()?;
        self.submitted.insert(tenant.to_owned(), self.notes.n_starts_of(tenant));
        Ok(())
    }

    /// Runs `maitre` with these words, and answers its output.
    pub(crate) async fn tell(&self, words: &[&str]) -> Result<String, Error> {
        self.call(0, words, "").await
    }

    /// Jobs that were submitted for a tenant and not cancelled.
    pub(crate) fn n_submitted(&self, tenant: &str) -> usize {
        self.submitted.get(tenant).copied().unwrap_or(0)
    }

    async fn call_next(&mut self, words: &[&str], input: &str) -> Result<(), Error> {
        self.n_submits += 1;
        self.call(self.n_submits % self.ports.len(), words, input).await.map(drop)
    }

    async fn call(&self, scheduler: usize, words: &[&str], input: &str) -> Result<String, Error> {
        let mut command = self.command();
        command.args(["--server", &self.address(scheduler)]).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let doing = || Error::system(format!("run `maitre {}`", words.join(" ")));
        let mut child = command.kill_on_drop(true).spawn().map_err(doing())?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that fails early reads none of it, and says why it failed.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(doing())?;
        if !output.status.success() {
            let cause = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Refused { words: words.join(" "), cause });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.dir).env_remove("MAITRE_TENANT");
        command
    }

    fn address(&self, scheduler: usize) -> String {
        format!("127.0.0.1:{}", self.ports[scheduler])
    }

    fn job_command(&self, load: &Load) -> Vec<String> {
        let script = self.dir.join(SCRIPT_NAME).display().to_string();
        let seconds = format!("{}.{:03}", load.ms / 1_000, load.ms % 1_000);
        let (slots, ms) = (load.slots.to_string(), load.ms.to_string());
        vec!["sh".to_owned(), script, slots, ms, seconds, load.exit_code.to_string()]
    }
}

impl Drop for Stage {
    /// Workers go first, while there is a scheduler that they can talk to.
    fn drop(&mut self) {
        self.workers.iter_mut().chain(&mut self.schedulers).for_each(Process::kill);
    }
}

/// The line of a file for the `n`th job of a load.
fn line(load: &Load, command: &[String], n: usize) -> String {
    let mut line: Map<String, Value> = load.fields.clone();
    line.insert("tenant".to_owned(), json!(load.tenant));
    line.insert("command".to_owned(), json!(command));
    if let Some((field, n_keys)) = load.keys {
        let key = format!("{}-{}", load.tenant, n % n_keys);
        line.insert(field.to_owned(), json!(key));
    }
    Value::from(line).to_string()
}
