//! `cargo xtask fair`: shares of real jobs on real workers.

#![expect(clippy::print_stdout, reason = "it is a report for people")]
#![expect(clippy::print_stderr, reason = "errors go there")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fair::{Error, Extent, Plan, run};

/// Plays scenarios with real schedulers, workers and jobs, and judges the tenants' shares by what
/// the jobs wrote down.
#[derive(Parser)]
struct Arguments {
    /// Play only this scenario. May be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Play only the scenarios for CI.
    #[arg(long, conflicts_with = "only")]
    quick: bool,
    /// Use this `maitre` [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    maitre: Option<PathBuf>,
    /// Write the files of each scenario to a directory in here.
    #[arg(long, value_name = "DIR", default_value = "target/fair")]
    dir: PathBuf,
    /// Play this many scenarios at once.
    #[arg(long, value_name = "N", default_value_t = 4)]
    at_once: usize,
    /// Set this policy before the steps of each scenario.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// List the names and claims of the scenarios.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for scenario in fair::table() {
            println!("{:<22} {}", scenario.name, scenario.claim);
        }
        return ExitCode::SUCCESS;
    }
    match judge(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            eprintln!("error: {error}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn judge(arguments: &Arguments) -> Result<bool, Error> {
    let own = std::env::current_exe().map_err(system("find this program"))?;
    let program = arguments.maitre.clone().unwrap_or_else(|| own.with_file_name("maitre"));
    std::fs::create_dir_all(&arguments.dir).map_err(system("make a directory"))?;
    let plan = Plan {
        // Processes start in directories of their own.
        program: program
            .canonicalize()
            .map_err(system(&format!("find `{}`", program.display())))?,
        dir: arguments.dir.canonicalize().map_err(system("find a directory"))?,
        only: arguments.only.clone(),
        extent: if arguments.quick { Extent::Quick } else { Extent::Whole },
        at_once: arguments.at_once.max(1),
        policy: arguments.policy.clone(),
    };
    run(plan, |line| println!("{line}"))
}

fn system(doing: &str) -> impl FnOnce(std::io::Error) -> Error {
    let system = faults::Error::system(doing);
    move |source| Error::Faults(system(source))
}
