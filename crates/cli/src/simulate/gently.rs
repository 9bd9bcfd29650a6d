//! In nobody's way: for replays beside a scheduler.

use std::fs;

use rustix::process::{Signal, nice, set_parent_process_death_signal};

/// The least that a process can be worth.
const LEAST: i32 = 19;

/// Steps back behind everybody else. What the system does not allow is left as it is.
pub(super) fn be() {
    let _ = nice(LEAST);
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}
