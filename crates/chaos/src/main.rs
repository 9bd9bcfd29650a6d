//! `cargo xtask chaos`: several schedulers on one Postgres, with random faults from a seed.

#![expect(clippy::print_stdout, reason = "it is a report for people")]
#![expect(clippy::print_stderr, reason = "errors go there")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chaos::{Hand, Plan, run, work};
use clap::{Parser, Subcommand};
use faults::Chance;

/// Inject faults into schedulers, workers, Postgres and the links between them, and check the data.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Duration of submissions and faults, in minutes
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Number of faults
    #[arg(long, default_value_t = 30)]
    faults: usize,
    /// Number of jobs
    #[arg(long, default_value_t = 5_000)]
    jobs: usize,
    /// Seed of all random choices. Random if not set
    #[arg(long)]
    seed: Option<u64>,
    /// Path of the `maitre` to test. By default, the one beside this program
    #[arg(long)]
    program: Option<PathBuf>,
    /// Directory of all logs. By default, one beside this program
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Role {
    /// Run one of the workers
    #[command(hide = true)]
    Worker(Hand),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.role {
        Some(Role::Worker(hand)) => work(hand).map(|()| ExitCode::SUCCESS),
        None => plan(&arguments).and_then(|plan| {
            println!("seed {}", plan.seed);
            let report = run(&plan)?;
            println!("{report}");
            let is_well = report.violations.is_empty();
            Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }),
    };
    outcome.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        eprintln!("Error: {error}{}", cause.unwrap_or_default());
        ExitCode::FAILURE
    })
}

fn plan(arguments: &Arguments) -> Result<Plan, chaos::Error> {
    let hand = std::env::current_exe().map_err(chaos::Error::system("find this program"))?;
    let beside = |name: &str| hand.with_file_name(name);
    Ok(Plan {
        program: arguments.program.clone().unwrap_or_else(|| beside("maitre")),
        dir: arguments.dir.clone().unwrap_or_else(|| beside("chaos-run")),
        seed: arguments.seed.unwrap_or_else(Chance::seed),
        length: Duration::from_secs_f64(arguments.minutes * 60.0),
        faults: arguments.faults,
        jobs: arguments.jobs,
        schedulers: 3,
        workers: 6,
        clients: 4,
        sabotage: Vec::new(),
        hand,
    })
}
