//! All checks in one command, the same here and there. Fails fast, cheapest first.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::{docs, fair, layers, python, shell, tidy};

/// Checks by programs that not everybody has.
const TOOLS: &[&[&str]] = &[
    &["typos"],
    &["cargo", "machete"],
    &["cargo", "deny", "check", "bans", "licenses", "sources"],
];

const CLIPPY: &[&str] =
    &["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];

/// Runs every step until one fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    command(root, &["cargo", "fmt", "--all", "--check"])?;
    step("layers", || layers::run(root))?;
    step("tidy", || tidy::run(root))?;
    for line in TOOLS {
        tool(root, line)?;
    }
    step("postgres", || postgres(root))?;
    step("browser", || browser(root))?;
    command(root, CLIPPY)?;
    tests(root)?;
    step("fair --quick", || fair(root, &[], &["--quick"]))?;
    step("docs --check", || docs::check(root))
}

/// The runner that prints the count of all tests comes last, so that the count is easy to find.
fn tests(root: &Path) -> Result<()> {
    // What the tests of the Python package run is built with the other tests, and not once more.
    command(root, &["cargo", "test", "--workspace", "--no-run"])?;
    step("python", || python::run(root))?;
    if is_installed(root, &["cargo", "nextest"]) {
        command(root, &["cargo", "test", "--doc", "--workspace"])?;
        command(root, &["cargo", "nextest", "run", "--workspace"])
    } else {
        command(root, &["cargo", "test", "--workspace"])
    }
}

/// Tests bring their own Postgres, from the programs of an installed server: without them, it is
/// installed, and if that does not work either, nothing is skipped.
fn postgres(root: &Path) -> Result<()> {
    if cluster::is_there() {
        return Ok(());
    }
    let installed = install(root, &["postgresql"]);
    if cluster::is_there() {
        return Ok(());
    }
    installed.context(cluster::Error::NotInstalled)
}

/// The board is tested in a real browser, which is come by in the same way.
fn browser(root: &Path) -> Result<()> {
    let is_there = || {
        let programs = ["chromium", "chromedriver"];
        programs.iter().all(|program| shell::succeeds(root, &[program, "--version"]))
    };
    if is_there() {
        return Ok(());
    }
    let installed = install(root, &["chromium", "chromium-driver"]);
    if is_there() {
        return Ok(());
    }
    installed.context("`chromium` and `chromedriver` are missing, and could not be installed")
}

fn install(root: &Path, packages: &[&str]) -> Result<()> {
    let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes"];
    println!("installing {}", packages.join(" "));
    // A list of packages that is old may do all the same.
    drop(shell::run(root, &["apt-get", "update"]));
    shell::run(root, &[&environment[..], &["--no-install-recommends"], packages].concat())
}

fn tool(root: &Path, line: &[&str]) -> Result<()> {
    if is_installed(root, line) {
        return command(root, line);
    }
    println!("== {}: skipped: not installed", line.join(" "));
    Ok(())
}

fn is_installed(root: &Path, line: &[&str]) -> bool {
    shell::succeeds(root, &version(line))
}

/// The command line that asks a tool for its version; `cargo` finds its subcommands itself.
fn version<'a>(line: &[&'a str]) -> Vec<&'a str> {
    let n_words = if line.first() == Some(&"cargo") { 2 } else { 1 };
    line.iter().copied().take(n_words).chain(["--version"]).collect()
}

fn command(root: &Path, line: &[&str]) -> Result<()> {
    step(&line.join(" "), || shell::run(root, line))
}

fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let (outcome, took) = timed(run);
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!("== {name}: {verdict}, {:.1} s", took.as_secs_f64());
    outcome.with_context(|| format!("`{name}` did not pass"))
}

#[expect(clippy::disallowed_methods, reason = "the one clock of the build system")]
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let outcome = run();
    (outcome, started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_asked_for_its_version_and_nothing_else() {
        assert_eq!(version(&["typos"]), ["typos", "--version"]);
        assert_eq!(version(&["cargo", "deny", "check"]), ["cargo", "deny", "--version"]);
    }

    #[test]
    fn a_tool_that_nobody_has_is_not_installed() {
        assert!(!is_installed(Path::new("."), &["a-tool-that-nobody-has"]));
    }

    #[test]
    fn a_failed_step_says_which_one_it_was() {
        let error = step("sweep", || anyhow::bail!("the floor is dirty"));
        let error = error.expect_err("the step fails");
        assert_eq!(format!("{error:#}"), "`sweep` did not pass: the floor is dirty");
    }
}
