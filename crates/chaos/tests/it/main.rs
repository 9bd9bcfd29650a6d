//! A short run with all kinds of faults. `cargo xtask chaos` is for longer runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chaos::{FORGOTTEN, Plan, run};
use faults::Chance;

/// The `maitre` beside this test's program. A build of all tests makes both. Otherwise it is from
/// an earlier build.
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

/// About half a minute with all kinds of faults.
fn plan(dir: &str) -> Plan {
    Plan {
        program: maitre(),
        hand: PathBuf::from(env!("CARGO_BIN_EXE_chaos")),
        dir: Path::new(env!("CARGO_TARGET_TMPDIR")).join(dir),
        seed: Chance::seed(),
        length: Duration::from_secs(20),
        faults: 16,
        jobs: 1_500,
        schedulers: 3,
        workers: 6,
        clients: 4,
        sabotage: Vec::new(),
    }
}

#[test]
fn no_fault_loses_a_job_or_breaks_a_limit() {
    let plan = plan("chaos");
    println!("seed {}", plan.seed);
    let report = run(&plan).unwrap_or_else(|error| panic!("seed {}: {error}", plan.seed));
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.n_faults() > 0 && report.n_jobs >= plan.jobs / 2, "{report}");
    // The faults had an effect: a killed worker lost its attempts. None of this happens without
    // faults.
    assert!(report.endings.contains_key("lost") && report.recovery.n_orphans > 0, "{report}");
    assert!(report.states.contains_key(FORGOTTEN), "{report}");
    assert!(report.endings.contains_key("preempted"), "{report}");
}

/// Bugs that triggers of the database inject. The usage of a limit and completions are counted
/// twice, retried jobs become younger, output is corrupted, and priorities rise. Each entry has the
/// event, the table, and the change of the row.
const SABOTAGE: [(&str, &str, &str); 5] = [
    ("UPDATE", "holdings", "NEW.held := greatest(2 * NEW.held - OLD.held, 0)"),
    ("INSERT", "usage", "NEW.completed := NEW.completed * 2"),
    (
        "UPDATE",
        "jobs",
        "NEW.ready := NEW.ready + (OLD.worker IS NOT NULL AND NEW.worker IS NULL)::int",
    ),
    ("INSERT", "logs", "NEW.bytes := overlay(NEW.bytes PLACING '?' FROM 1)"),
    ("INSERT", "jobs", "NEW.priority := NEW.priority + 1"),
];

/// The SQL of one trigger for each bug.
fn sabotage() -> Vec<String> {
    let trigger = |(n, (when, table, what)): (usize, &(&str, &str, &str))| {
        format!(
            "CREATE FUNCTION journal.sabotage{n}() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN {what}; RETURN NEW; END $$; \
             CREATE TRIGGER sabotage{n} BEFORE {when} ON maitre.{table} \
             FOR EACH ROW EXECUTE FUNCTION journal.sabotage{n}()"
        )
    };
    SABOTAGE.iter().enumerate().map(trigger).collect()
}

#[test]
fn checker_finds_injected_bugs_of_the_database() {
    let plan = Plan {
        // There are no faults, and the jobs are the same each time.
        seed: 7,
        length: Duration::from_secs(4),
        faults: 0,
        jobs: 400,
        sabotage: sabotage(),
        ..plan("sabotage")
    };
    let report = run(&plan).expect("it is judged");
    let found: BTreeSet<&str> = report.violations.iter().map(|found| found.rule).collect();
    for rule in ["out-of-balance", "ledger", "age-reset", "output-not-said", "other-terms"] {
        assert!(found.contains(rule), "{rule} is not among {found:?}: {report}");
    }
}
