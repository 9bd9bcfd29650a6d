//! The processes of one attempt: those of its leader's group, and of its session.

use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::guard::Guard;
use crate::proc::{self, Process};

/// The processes of one attempt. A drop kills the remaining ones.
///
/// **Invariant:** its leader is not reaped before [`Group::end`], so no other process has its
/// number.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    guard: Arc<Guard>,
    has_ended: bool,
}

impl Group {
    /// The group of a child that was just started.
    pub(crate) fn new(leader: Pid, guard: Arc<Guard>) -> Self {
        guard.begin(leader);
        Self { leader, guard, has_ended: false }
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends SIGTERM, and wakes suspended processes.
    pub(crate) fn terminate(&self) {
        signal(self.leader, Signal::TERM);
        signal(self.leader, Signal::CONT);
    }

    pub(crate) fn kill(&self) {
        signal(self.leader, Signal::KILL);
    }

    /// Kills the remaining processes after the end of the leader, and before it is reaped.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
        self.kill();
        self.guard.end(self.leader);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end();
        }
    }
}

/// Whether a process belongs to the attempt of `leader`.
pub(crate) fn is_member(process: &Process, leader: i32) -> bool {
    process.group == leader || process.session == leader
}

/// Signals the group, and processes of the session in other groups.
pub(crate) fn signal(leader: Pid, signal: Signal) {
    if kill_process_group(leader, signal).is_err() {
        // The group does not exist until the child has created it.
        let _ = kill_process(leader, signal);
    }
    let number = leader.as_raw_nonzero().get();
    for process in proc::processes() {
        let is_stray = process.session == number && process.group != number;
        if let (true, Some(pid)) = (is_stray, Pid::from_raw(process.pid)) {
            let _ = kill_process(pid, signal);
        }
    }
}
