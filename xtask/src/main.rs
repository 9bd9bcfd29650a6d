//! The build system of Maitre: `cargo xtask <command>`.
//!
//! **Invariant:** each check is a function over text that has been read already. Reading files and
//! starting programs is left to the `run` of each command.

#![expect(clippy::print_stdout, reason = "a build tool talks to the terminal")]
#![expect(clippy::print_stderr, reason = "a build tool talks to the terminal")]

mod ci;
mod layers;
mod tidy;
mod docs;
mod python;
mod shell;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci              everything below, with the linters and the tests; fails fast
  layers          each crate depends only on the crates it may depend on
  tidy            the habits that no linter checks
  python          the Python package, against the `maitre` that was built
  docs [--check]  write the generated pages, or fail when they are stale
  quality         write the figures and pictures of docs/quality.md anew
  seeds [--seeds N] [--from S] [--seed S] [--break WHAT]
                  schedulers on a store in memory, in orders that seeds draw
  chaos [--release] [--minutes M] [--faults N] [--jobs N] [--seed S]
                  schedulers, workers and clients on one Postgres, hurt in every way
  fair [--release] [--quick] [--only NAME] [--maitre PATH] [--policy POLICY] [--list]
                  shares of real jobs on real workers, scenario by scenario
  bench-postgres [--release] [OPTIONS OF `maitre bench run`]
                  `maitre bench run` on a Postgres that is started for it";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let outcome = match arguments.as_slice() {
        ["ci"] => ci::run(&root),
        ["layers"] => layers::run(&root),
        ["tidy"] => tidy::run(&root),
        ["python"] => python::run(&root),
        ["docs"] => docs::write(&root),
        ["docs", "--check"] => docs::check(&root),
        ["quality"] => quality(&root),
        ["seeds", rest @ ..] => seeds(&root, rest),
        ["chaos", "--release", rest @ ..] => beside(&root, "chaos", &["--release"], rest),
        ["chaos", rest @ ..] => beside(&root, "chaos", &[], rest),
        ["fair", "--release", rest @ ..] => fair(&root, &["--release"], rest),
        ["fair", rest @ ..] => fair(&root, &[], rest),
        ["bench-postgres", "--release", rest @ ..] => bench_postgres(&root, &["--release"], rest),
        ["bench-postgres", rest @ ..] => bench_postgres(&root, &[], rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    exit_code(&outcome)
}

/// Plays seeds, optimised as far as tests are.
fn seeds(root: &Path, rest: &[&str]) -> Result<()> {
    let line = ["cargo", "run", "--quiet", "--package", "seeds", "--"];
    shell::run(root, &[&line, rest].concat())
}

/// Replays our own workloads, and writes what came of it. The same tests check the page otherwise.
fn quality(root: &Path) -> Result<()> {
    let line = ["cargo", "test", "--quiet", "--package", "sim", "--test", "known", "quality::"];
    let one_by_one = ["--", "--test-threads=1"];
    let write = [("MAITRE_QUALITY_WRITE", Path::new("docs"))];
    shell::run_with(root, &[&line[..], &one_by_one].concat(), &write)
}

/// Plays scenarios of fair shares. With `--maitre PATH`, no `maitre` is built.
fn fair(root: &Path, profile: &[&str], rest: &[&str]) -> Result<()> {
    if rest.iter().any(|word| word.starts_with("--maitre")) {
        return run_package(root, "fair", profile, rest);
    }
    beside(root, "fair", profile, rest)
}

/// Measures whole jobs on a Postgres that lasts as long as the benchmark. Commits are durable.
fn bench_postgres(root: &Path, profile: &[&str], rest: &[&str]) -> Result<()> {
    let cluster = cluster::Cluster::start(cluster::Sync::On)?;
    let words = ["bench", "run", "--store", &cluster.url("postgres")];
    run_package(root, "cli", profile, &[&words, rest].concat())
}

/// Builds `maitre` and the package that starts it, and runs the package.
fn beside(root: &Path, package: &str, profile: &[&str], rest: &[&str]) -> Result<()> {
    let build = ["cargo", "build", "--quiet", "--package", "cli", "--package", package];
    shell::run(root, &[&build, profile].concat())?;
    run_package(root, package, profile, rest)
}

fn run_package(root: &Path, package: &str, profile: &[&str], rest: &[&str]) -> Result<()> {
    let line = ["cargo", "run", "--quiet", "--package", package];
    shell::run(root, &[&line, profile, &["--"], rest].concat())
}

fn exit_code(outcome: &Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace: the folder above this package, which `cargo run` names.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
