//! Nothing needs root: not the scheduler, not its worker, not what they measure and kill.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::Value;

use crate::site::Site;

/// Nobody, on every system that we know.
const NOBODY: u32 = 65_534;

/// Has a command run as nobody, if it would run as root.
fn drop_privileges(command: &mut Command) {
    if std::fs::metadata("/proc/self").expect("it is there").uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// The directory is theirs, and the program can be read by them wherever it was built.
fn prepare(site: &Site) -> String {
    let program = site.path("maitre");
    std::fs::copy(env!("CARGO_BIN_EXE_maitre"), &program).expect("there is room for a copy");
    if std::fs::metadata("/proc/self").expect("it is there").uid() == 0 {
        chown(site.dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    program
}

/// Runs a job that is measured, one that is killed, and one that says who it is.
fn live(site: &Site) -> String {
    // It keeps what it takes for long enough to be seen with it.
    let script = "id -u; x=$(head -c 30000000 /dev/zero | tr '\\0' x); sleep 1";
    let id = site.submit(&["--wait", "--", "sh", "-c", script]);
    let job = site.job(&id);
    let attempt = &job["past_attempts"][0];
    assert!(attempt["ram_peak_mb"].as_u64().is_some_and(|mb| mb > 10), "{attempt}");
    assert!(attempt["cpu_ms"].is_u64(), "{attempt}");
    let stuck = site.submit(&["--", "sh", "-c", "sleep 60 & wait"]);
    site.wait(&stuck, "state", "running");
    site.said(&["cancel", &stuck]);
    site.wait(&stuck, "state", "cancelled");
    // What is expected of the next one was measured.
    site.submit(&["--need", "gpu=a100", "--", "true"]);
    let world: Value = serde_json::from_str(&site.said(&["snapshot"])).expect("it is JSON");
    let history = &world["jobs"][0]["history"];
    assert!(history["ram_peak_mb"].as_u64().is_some_and(|mb| mb > 10), "{history}");
    assert!(history["duration_s"].is_number(), "{history}");
    let said = site.said(&["logs", &id]);
    said.lines().next().expect("it says who it is").to_owned()
}

#[test]
fn a_scheduler_with_its_worker_needs_no_root() {
    let site = Site::prepared(&["dev", "--slots", "2"], |site, command| {
        *command = Site::program(&prepare(site));
        drop_privileges(command);
    });
    let who = live(&site);
    assert_ne!(who, "0");
    let database = std::fs::metadata(site.data().join("maitre.db")).unwrap();
    assert_eq!(database.uid().to_string(), who);
}

#[test]
fn a_worker_needs_no_root() {
    let mut site = Site::serve();
    let mut command = Site::program(&prepare(&site));
    drop_privileges(&mut command);
    site.work_as(command, "w1", &["--exec"]);
    assert_ne!(live(&site), "0");
}
