//! Schedulers and their workers, as processes of this very binary.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use proto::v1;
use serde_json::json;

use super::Options;
use super::data::Fresh;
use crate::bench::machine::{now, resident_of};
use crate::client::{Admin, Jobs, Target};
use crate::print::Failure;
use crate::setting::put;

/// The type of jobs that do nothing.
pub(crate) const NOOP: &str = "noop";
/// How often the scheduler is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// A process that says nothing for so long will not.
const PATIENCE: Duration = Duration::from_mins(1);

/// A process that ends with its owner.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn of(child: Child) -> Self {
        Self(child)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One scheduler or several, and their workers, on data of their own.
pub(crate) struct Site {
    /// Before the schedulers, so that none of them misses it in the end.
    workers: Vec<Process>,
    schedulers: Vec<Scheduler>,
    /// Whose turn it is to be asked next.
    turn: AtomicUsize,
    /// How long each timed job took from its submission to its start, in nanoseconds.
    starts: (Sender<u64>, Receiver<u64>),
}

struct Scheduler {
    process: Process,
    address: String,
    jobs: Jobs,
    admin: Admin,
}

/// What all schedulers say, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Workers that are connected.
    workers: u64,
    /// Jobs that are done, durably.
    pub(crate) done: u64,
    /// Claims that gave a job, and that another was quicker to make.
    pub(crate) won: u64,
    pub(crate) lost: u64,
}

impl Site {
    /// Starts schedulers that keep their data where it is empty.
    pub(crate) async fn start(fresh: &Fresh, options: &Options) -> Result<Self, Failure> {
        let mut schedulers = Vec::new();
        for _ in 0..options.schedulers {
            let (process, address) = scheduler("serve", fresh)?;
            let target = Target::at(address.clone());
            let (jobs, mut admin) = (target.jobs().await?, target.admin().await?);
            let document = json!({ "forget": options.forget }).to_string();
            put(&mut admin, v1::SettingKind::Type, NOOP, &document).await?;
            schedulers.push(Scheduler { process, address, jobs, admin });
        }
        Ok(Self { workers: Vec::new(), schedulers, turn: AtomicUsize::new(0), starts: channel() })
    }

    /// Starts workers, and waits until they are there.
    pub(crate) async fn hire(&mut self, n_workers: u32, slots: u32) -> Result<(), Failure> {
        for (n, scheduler) in (1..=n_workers).zip(self.schedulers.iter().cycle()) {
            let (name, slots) = (format!("bench-{n}"), slots.to_string());
            let words = ["bench", "worker", "--name", &name, "--slots", &slots];
            let mut command = this(&[&words[..], &["--server", &scheduler.address]].concat())?;
            let mut child = command.stdout(Stdio::piped()).spawn().context("start a worker")?;
            let said = child.stdout.take().context("a worker has an output")?;
            let starts = self.starts.0.clone();
            thread::spawn(move || {
                for line in BufReader::new(said).lines().map_while(Result::ok) {
                    let _ = line.parse().map(|nanos| starts.send(nanos));
                }
            });
            self.workers.push(Process(child));
        }
        let n_workers = u64::from(n_workers);
        self.until(|seen| seen.workers >= n_workers).await.map(drop)
    }

    /// A client for jobs, of one scheduler after the other.
    pub(crate) fn jobs(&self) -> Jobs {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.schedulers[turn % self.schedulers.len()].jobs.clone()
    }

    /// Memory that the schedulers hold.
    pub(crate) fn resident(&self) -> usize {
        let of = |one: &Scheduler| resident_of(&one.process.id().to_string());
        self.schedulers.iter().map(of).sum()
    }

    /// Starts of timed jobs since this was last asked.
    pub(crate) fn starts(&self) -> Vec<u64> {
        self.starts.1.try_iter().collect()
    }

    /// Waits for the next start of a timed job.
    pub(crate) fn next_start(&self) -> Result<u64, Failure> {
        let start = self.starts.1.recv_timeout(PATIENCE);
        Ok(start.context("a job was submitted and did not start")?)
    }

    /// Asks every scheduler.
    pub(crate) async fn look(&self) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        for scheduler in &self.schedulers {
            let status = scheduler.admin.clone().status(v1::StatusRequest {}).await;
            let status = status.map_err(|no| anyhow!("the scheduler does not answer: {no}"))?;
            let status = status.into_inner();
            let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
            seen.workers += status.workers;
            seen.done += counter("succeeded");
            seen.won += counter("claims_won");
            seen.lost += counter("claims_lost");
        }
        Ok(seen)
    }

    /// Asks until something is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&Seen) -> bool) -> Result<Seen, Failure> {
        let mut since = (now(), 0);
        loop {
            let seen = self.look().await?;
            if is_so(&seen) {
                return Ok(seen);
            }
            if seen.done != since.1 {
                since = (now(), seen.done);
            }
            if since.0.elapsed() > PATIENCE {
                return Err(anyhow!("nothing happens any more: {seen:?}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Starts a scheduler by `command`, and waits for the address where it listens.
pub(crate) fn scheduler(command: &str, fresh: &Fresh) -> Result<(Process, String), Failure> {
    let mut command = this(&[command, "--listen", "127.0.0.1:0"])?;
    command.args(fresh.words()).current_dir(&fresh.directory);
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.context("start a scheduler")?;
    let mut said = BufReader::new(child.stderr.take().context("a scheduler has an output")?);
    let process = Process(child);
    let mut line = String::new();
    said.read_line(&mut line).context("hear the scheduler")?;
    let address = line.strip_prefix("maitre listens on ").unwrap_or_default();
    let address = address.split([',', '\n']).next().unwrap_or_default().to_owned();
    if address.is_empty() {
        return Err(anyhow!("the scheduler did not start: {line}").into());
    }
    // Whatever else it says must not fill the pipe.
    thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    Ok((process, address))
}

/// This program, as if nobody had set anything in the environment.
pub(crate) fn this(words: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(env::current_exe().context("find this binary")?);
    command.args(words).stdin(Stdio::null());
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MAITRE"))
    {
        command.env_remove(name);
    }
    Ok(command)
}
