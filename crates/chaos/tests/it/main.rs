//! A short run of everything that can be done to schedulers, workers, Postgres and the ways between
//! them. `cargo xtask chaos` is for longer ones.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chaos::{FORGOTTEN, Plan, run};
use faults::Chance;

/// The `maitre` that is hurt: the one beside our own program, which was built with it if all tests
/// were, or else before.
fn maitre() -> PathBuf {
    let maitre = Path::new(env!("CARGO_BIN_EXE_chaos")).with_file_name("maitre");
    if !maitre.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = ["build", "--quiet", "--package", "cli", "--bin", "maitre"];
        let built =
            Command::new(cargo).current_dir(env!("CARGO_MANIFEST_DIR")).args(build).status();
        assert!(built.is_ok_and(|status| status.success()), "`maitre` could not be built");
    }
    maitre
}

#[test]
fn whatever_is_hurt_nothing_is_lost_and_every_limit_holds() {
    let plan = Plan {
        program: maitre(),
        hand: PathBuf::from(env!("CARGO_BIN_EXE_chaos")),
        dir: Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos"),
        seed: Chance::seed(),
        length: Duration::from_secs(20),
        faults: 16,
        jobs: 1_500,
        schedulers: 3,
        workers: 6,
        clients: 4,
    };
    println!("seed {}", plan.seed);
    let report = run(&plan).unwrap_or_else(|error| panic!("seed {}: {error}", plan.seed));
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.n_faults() > 0 && report.n_jobs >= plan.jobs / 2, "{report}");
    // Somebody was hurt: a worker lost what it ran, or had to leave what it was given, or a client
    // did not hear what became of it. None of that happens by itself.
    let [_, _, n_unknown] = report.answers;
    let is_hurt = ["lost", "refused"].iter().any(|ending| report.endings.contains_key(*ending));
    assert!(is_hurt || n_unknown > 0, "{report}");
    assert!(report.states.contains_key(FORGOTTEN), "{report}");
}
