//! The guard process: it kills the commands of a worker that was killed.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use rustix::process::Pid;

use super::ChildProgram;
use crate::child::GUARD;
use crate::lock::lock;

/// Reports process groups to the guard.
#[derive(Debug)]
pub(crate) struct Guard {
    /// `None` if there is no guard, or if it died.
    process: Mutex<Option<(Child, ChildStdin)>>,
}

impl Guard {
    /// Starts the guard, which removes `directory` at its end.
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

    /// Without a guard, commands outlive a worker that is killed.
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
            tracing::warn!(%error, "command guard died");
            *process = None;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = lock(&self.process).take() {
            // The guard ends with the pipe, and the wait reaps it.
            drop(pipe);
            let _ = child.wait();
        }
    }
}
