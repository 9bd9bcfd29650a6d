//! A scheduler and its workers, as processes of this very binary.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use proto::v1;

use crate::bench::machine::{now, resident_of};
use crate::client::{Admin, Jobs, Target};
use crate::print::Failure;

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

/// A scheduler and its workers, on data of their own.
pub(crate) struct Site {
    /// Before the scheduler, so that none of them misses it in the end.
    workers: Vec<Process>,
    scheduler: Process,
    target: Target,
    pub(crate) jobs: Jobs,
    admin: Admin,
    /// How long each timed job took from its submission to its start, in nanoseconds.
    starts: (Sender<u64>, Receiver<u64>),
}

impl Site {
    /// Starts a scheduler that keeps its data in `place`.
    pub(crate) async fn start(place: &Path) -> Result<Self, Failure> {
        let (scheduler, address) = scheduler("serve", place)?;
        let target = Target::at(address);
        let (jobs, admin) = (target.jobs().await?, target.admin().await?);
        Ok(Self { workers: Vec::new(), scheduler, target, jobs, admin, starts: channel() })
    }

    /// Starts workers, and waits until they are there.
    pub(crate) async fn hire(&mut self, n_workers: u32, slots: u32) -> Result<(), Failure> {
        for n in 1..=n_workers {
            let (name, slots) = (format!("bench-{n}"), slots.to_string());
            let words = ["bench", "worker", "--name", &name, "--slots", &slots];
            let mut command = this(&[&words[..], &["--server", &self.target.server]].concat())?;
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
        self.until(|status| status.workers >= n_workers).await.map(drop)
    }

    /// Memory that the scheduler holds.
    pub(crate) fn resident(&self) -> usize {
        resident_of(&self.scheduler.id().to_string())
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

    pub(crate) async fn status(&self) -> Result<v1::StatusResponse, Failure> {
        let status = self.admin.clone().status(v1::StatusRequest {}).await;
        Ok(status
            .map_err(|status| anyhow!("the scheduler does not answer: {status}"))?
            .into_inner())
    }

    /// Asks until something is so.
    pub(crate) async fn until(
        &self,
        is_so: impl Fn(&v1::StatusResponse) -> bool,
    ) -> Result<v1::StatusResponse, Failure> {
        let mut since = (now(), 0);
        loop {
            let status = self.status().await?;
            if is_so(&status) {
                return Ok(status);
            }
            let n_done = done(&status);
            if n_done != since.1 {
                since = (now(), n_done);
            }
            if since.0.elapsed() > PATIENCE {
                return Err(anyhow!("nothing happens any more: {status:?}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Jobs that are done, durably.
pub(crate) fn done(status: &v1::StatusResponse) -> u64 {
    status.counters.get("succeeded").copied().unwrap_or(0)
}

/// Starts a scheduler by `command`, and waits for the address where it listens.
pub(crate) fn scheduler(command: &str, place: &Path) -> Result<(Process, String), Failure> {
    let data = place.join("data");
    let mut command = this(&[command, "--listen", "127.0.0.1:0", "--data-dir"])?;
    let child = command.arg(data).current_dir(place).stderr(Stdio::piped()).spawn();
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
