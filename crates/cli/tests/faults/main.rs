//! The real processes are killed, suspended, and given bad disks. What must hold afterwards is in
//! `crates/faults`.
//!
//! `MAITRE_FAULT_SEED` plays a run again, `MAITRE_FAULT_KILLS` and `MAITRE_FAULT_HARMS` say how
//! often schedulers and workers are hurt.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use faults::{Error, Report};

/// One at a time: who waits for the processor loses leases.
static ALONE: Mutex<()> = Mutex::new(());

#[expect(clippy::print_stdout, reason = "what was counted is the report of these tests")]
fn play(name: &str, scenario: fn(&Path, &Path) -> Result<Report, Error>) -> Report {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_maitre"));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}"));
    match scenario(&program, &dir) {
        Ok(report) => {
            println!("{report}");
            report
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_scheduler_that_is_killed_loses_nothing_that_it_acknowledged() {
    let report = play("schedulers", faults::killed_schedulers);
    let is_default = std::env::var_os("MAITRE_FAULT_KILLS").is_none();
    assert!(report.n_schedulers >= 50 || !is_default, "{report}");
    assert!(report.n_succeeded > 0, "{report}");
}

#[test]
fn a_worker_that_is_killed_or_suspended_costs_no_job_and_gets_none_twice() {
    let report = play("workers", faults::unwell_workers);
    assert!(report.n_workers + report.n_suspended > 0 && report.n_lost > 0, "{report}");
}

#[test]
fn a_result_that_comes_too_late_or_twice_changes_nothing() {
    let report = play("stale", faults::stale_results);
    assert!(report.n_stale >= 7, "{report}");
}

#[test]
fn a_full_disk_is_told_and_costs_nothing_that_was_acknowledged() {
    let report = play("full", faults::full_disk);
    assert!(report.n_refused > 0, "{report}");
}

#[test]
fn a_scheduler_that_cannot_write_ends_and_loses_nothing() {
    let report = play("errors", faults::write_errors);
    assert!(report.n_unknown > 0, "{report}");
}

#[test]
fn a_torn_log_leaves_what_was_there_a_moment_before() {
    let report = play("torn", faults::torn_logs);
    assert!(report.n_jobs > 0, "{report}");
}
