//! A process that scenarios start, suspend, end and kill.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// A process, running or not. A drop kills it.
#[derive(Debug)]
pub struct Process {
    /// Its name in reports.
    pub name: String,
    log: PathBuf,
    child: Option<Child>,
    /// Whether it was suspended by a signal, and not continued.
    pub is_suspended: bool,
}

impl Process {
    /// A process before its start. Its standard error is appended to `log`.
    pub fn new(name: String, log: PathBuf) -> Self {
        Self { name, log, child: None, is_suspended: false }
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        (self.child, self.is_suspended) = (None, false);
        false
    }

    /// Starts it, without standard input and output.
    pub fn start(&mut self, mut command: Command) -> Result<(), Error> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(Error::system("open a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(Error::system(format!("start {}", self.name)))?;
        self.child = Some(child);
        Ok(())
    }

    /// Suspends it, continues it, or asks it to end.
    pub fn signal(&mut self, signal: Signal) {
        let pid = self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
            match signal {
                Signal::STOP => self.is_suspended = true,
                Signal::CONT => self.is_suspended = false,
                _ => {}
            }
        }
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.is_suspended = false;
    }

    /// The panics in its log.
    pub fn panics(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().filter(|line| line.contains("panicked at"));
        lines.map(|line| format!("{}: {line}", self.name)).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
