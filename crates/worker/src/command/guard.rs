//! The process that kills what commands started, should the worker be killed.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use rustix::process::Pid;

use super::ChildProgram;
use crate::child::GUARD;
use crate::lock::lock;

/// Tells the guard which groups there are.
#[derive(Debug)]
pub(crate) struct Guard {
    /// `None` if there is no guard, or not any more.
    process: Mutex<Option<(Child, ChildStdin)>>,
}

impl Guard {
    /// Starts the guard. It removes `directory` in the end.
    pub(crate) fn start(program: &ChildProgram, directory: &Path) -> io::Result<Self> {
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .args([GUARD.as_ref(), directory.as_os_str()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { process: Mutex::new(pipe.map(|pipe| (child, pipe))) })
    }

    /// Without a guard: what commands started outlives a worker that is killed.
    pub(crate) fn none() -> Self {
        Self { process: Mutex::new(None) }
    }

    pub(crate) fn begin(&self, group: Pid) {
        self.tell('+', group);
    }

    pub(crate) fn end(&self, group: Pid) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: Pid) {
        let mut process = lock(&self.process);
        let Some((_, pipe)) = process.as_mut() else { return };
        let line = format!("{sign}{}\n", group.as_raw_nonzero());
        if let Err(error) = pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the guard is gone");
            *process = None;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = lock(&self.process).take() {
            // It ends with the pipe; waiting for it leaves no zombie.
            drop(pipe);
            let _ = child.wait();
        }
    }
}
