//! The real processes in a directory of their own, and their faults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use checker::{Fault, Harm, History, Limits};
use proto::v1;
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{boot_ms, now_ms, passed_ms, until};
use crate::rpc::Rpc;
use crate::{Chance, Error, free_ports, kept, read_marks, read_said};

/// Timeout for the first answer of a scheduler, on a busy machine.
const START: Duration = Duration::from_mins(1);
/// Slots of each worker.
const SLOTS: u32 = 3;
/// Losses after which a job is parked.
const LOSSES_MAX: u32 = 6;
/// The tenant with a quota, and the tenant with a low limit of live attempts.
pub(crate) const CAPPED: (&str, u32) = ("capped", 3);
pub(crate) const NARROW: (&str, u32) = ("narrow", 2);

/// A scheduler and its workers.
pub(crate) struct Stage {
    program: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    pub(crate) place: Place,
    boot_ms: i64,
    scheduler: Option<Child>,
    workers: BTreeMap<String, Child>,
    pub(crate) faults: Vec<Fault>,
    limits: Limits,
}

/// The data directory, and the launch of a scheduler that can access it.
pub(crate) struct Place {
    /// The command line before the program.
    pub(crate) launch: Vec<OsString>,
    /// The data directory, as the scheduler sees it.
    pub(crate) data: PathBuf,
    /// The same, as this process sees it.
    pub(crate) seen: PathBuf,
}

impl Stage {
    /// Makes an empty directory with settings, and draws a free port.
    pub(crate) fn build(
        (program, dir): (&Path, &Path),
        lease_ms: u64,
        chance: &mut Chance,
    ) -> Result<Self, Error> {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("tmp")).map_err(Error::system("make a directory"))?;
        let settings = format!(
            "heartbeat = \"{}ms\"\nlease = \"{lease_ms}ms\"\nexpire_every = \"100ms\"\n\
             stop_grace = \"300ms\"\nshutdown_grace = \"100ms\"\nlosses_max = {LOSSES_MAX}\n\
             reconnect = \"50ms\"\nreconnect_max = \"200ms\"\n",
            lease_ms / 10
        );
        fs::write(dir.join("maitre.toml"), settings).map_err(Error::system("write settings"))?;
        let data = dir.join("data");
        let slots = |(tenant, max): (&str, u32)| (tenant.to_owned(), max);
        Ok(Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            port: free_ports(1, chance)?[0],
            place: Place { launch: Vec::new(), seen: data.clone(), data },
            boot_ms: boot_ms()?,
            scheduler: None,
            workers: BTreeMap::new(),
            faults: Vec::new(),
            limits: Limits {
                tenant_slots: [slots(CAPPED)].into(),
                tenant_jobs: [slots(NARROW)].into(),
                losses_max: LOSSES_MAX,
                ..Limits::default()
            },
        })
    }

    pub(crate) fn rpc(&self) -> Rpc {
        Rpc::new(self.port)
    }

    /// Starts the scheduler, unless it runs. Fails if it ended unexpectedly.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        if self.is_running()? {
            return Ok(());
        }
        let mut words = self.place.launch.clone();
        words.push(self.program.clone().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["serve", "--listen"]);
        command.arg(SocketAddr::from(([127, 0, 0, 1], self.port)).to_string());
        command.arg("--data-dir").arg(&self.place.data);
        command.arg("--config").arg(self.dir.join("maitre.toml"));
        self.scheduler = Some(self.spawn(command, Fault::SCHEDULER)?);
        Ok(())
    }

    /// Starts the scheduler, and waits until it answers.
    pub(crate) async fn start_and_wait(&mut self) -> Result<(), Error> {
        self.start()?;
        let rpc = self.rpc();
        let answered = until("the scheduler answers", START, async || {
            let answer = rpc.status().await.ok().map(drop).map(Ok);
            answer.or_else(|| self.is_running().err().map(Err))
        });
        answered.await?
    }

    /// Whether the scheduler runs. An error if it ended unexpectedly.
    pub(crate) fn is_running(&mut self) -> Result<bool, Error> {
        let Some(child) = &mut self.scheduler else { return Ok(false) };
        let ended = child.try_wait().map_err(Error::system("look at the scheduler"))?;
        let Some(status) = ended else { return Ok(true) };
        self.scheduler = None;
        let how = format!("{status}; {}", last_words(&self.dir.join("scheduler.log")));
        Err(Error::Ended { who: Fault::SCHEDULER.to_owned(), how })
    }

    /// Kills the scheduler at any point.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        self.is_running()?;
        if let Some(child) = self.scheduler.take() {
            self.note(Fault::SCHEDULER, Harm::Kill);
            end(child);
        }
        Ok(())
    }

    /// Starts a worker with this name, unless it runs.
    pub(crate) fn start_worker(&mut self, name: &str, has: Option<&str>) -> Result<(), Error> {
        if self.workers.contains_key(name) {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        command.args(["work", "--exec", "--name", name, "--slots", &SLOTS.to_string()]);
        command.args(["--server", &format!("127.0.0.1:{}", self.port)]);
        command.args(has.map(|has| format!("--has={has}")));
        // The scripts of jobs read their worker from this variable.
        command.env("USER", name).env("TMPDIR", self.dir.join("tmp"));
        let child = self.spawn(command, name)?;
        self.workers.insert(name.to_owned(), child);
        self.limits.worker_slots.insert(name.to_owned(), SLOTS);
        Ok(())
    }

    pub(crate) fn kill_worker(&mut self, name: &str) {
        if let Some(child) = self.workers.remove(name) {
            self.note(name, Harm::Kill);
            end(child);
        }
    }

    pub(crate) fn kill_workers(&mut self) {
        let names: Vec<String> = self.workers.keys().cloned().collect();
        for name in &names {
            self.kill_worker(name);
        }
    }

    /// Suspends or continues a worker.
    pub(crate) fn signal_worker(&mut self, name: &str, harm: Harm) -> Result<(), Error> {
        let signal = match harm {
            Harm::Kill => Signal::KILL,
            Harm::Stop => Signal::STOP,
            Harm::Continue => Signal::CONT,
        };
        let child = self.workers.get(name);
        let pid = child.and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        let Some(pid) = pid else { return Ok(()) };
        self.note(name, harm);
        kill_process(pid, signal).map_err(|error| Error::system("signal a worker")(error.into()))
    }

    /// Fails if a worker ended unexpectedly.
    pub(crate) fn check_workers(&mut self) -> Result<(), Error> {
        for (name, child) in &mut self.workers {
            let ended = child.try_wait().map_err(Error::system("look at a worker"))?;
            if let Some(status) = ended {
                let how =
                    format!("{status}; {}", last_words(&self.dir.join(format!("{name}.log"))));
                return Err(Error::Ended { who: name.clone(), how });
            }
        }
        Ok(())
    }

    /// Waits until every job is final. The error names the others.
    pub(crate) async fn drain(&mut self, within: Duration) -> Result<(), Error> {
        let rpc = self.rpc();
        let drained = until("every job is final", within, async || {
            let unfinished = rpc.unfinished().await.ok()?;
            unfinished.is_empty().then_some(())
        });
        let Err(late) = drained.await else { return self.check_workers() };
        self.check_workers()?;
        self.is_running()?;
        let mut waiting = Vec::new();
        for job in rpc.unfinished().await.unwrap_or_default().into_iter().take(5) {
            waiting.push(rpc.why(job.id).await);
        }
        Err(Error::Violated(format!("{late}:\n{}", waiting.join("\n"))))
    }

    /// The history from the store's file, the clients and the processes. The scheduler must be
    /// stopped.
    pub(crate) fn history(&self) -> Result<History, Error> {
        let copy = self.dir.join("copy");
        kept::copy(&self.place.seen, &copy)?;
        let mut history = History {
            faults: self.faults.clone(),
            limits: self.limits.clone(),
            marks: read_marks(&self.runs(), |up| Some(self.boot_ms + passed_ms(up)?))?,
            ..History::default()
        };
        kept::read_store(&copy, &mut history)?;
        for client in 0.. {
            let path = self.log_of(client);
            if !path.exists() {
                break;
            }
            history.said.extend(read_said(&path)?);
        }
        Ok(history)
    }

    /// The file with the records of processes.
    pub(crate) fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// The log of a client.
    pub(crate) fn log_of(&self, client: u32) -> PathBuf {
        self.dir.join(format!("client-{client}.jsonl"))
    }

    /// Sets the limits of tenants.
    pub(crate) async fn set_limits(&self) -> Result<(), Error> {
        let quota = format!("{{\"quotas\":[{{\"pool\":\"default\",\"max\":{}}}]}}", CAPPED.1);
        let jobs_max = format!("{{\"jobs_max\":{}}}", NARROW.1);
        for (tenant, json) in [(CAPPED.0, quota), (NARROW.0, jobs_max)] {
            let kind = v1::SettingKind::Tenant.into();
            let setting = v1::Setting { kind, name: tenant.to_owned(), json };
            let set = self.rpc().admin().set(v1::SetRequest { setting: Some(setting) }).await;
            let refused = |status| Error::Refused { doing: "set", source: Box::new(status) };
            set.map_err(refused)?;
        }
        Ok(())
    }

    fn spawn(&self, mut command: Command, name: &str) -> Result<Child, Error> {
        let log = self.dir.join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(log);
        let log = log.map_err(Error::system("open a log"))?;
        command.current_dir(&self.dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(Error::system(format!("start {name}")))
    }

    pub(crate) fn note(&mut self, who: &str, harm: Harm) {
        self.faults.push(Fault { at_ms: now_ms(), harm, who: who.to_owned() });
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.scheduler.take().into_iter().for_each(end);
        std::mem::take(&mut self.workers).into_values().for_each(end);
    }
}

/// Kills it, and waits for its end, so that its locks are free.
fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}
