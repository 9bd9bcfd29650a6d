//! Starts other programs, always in the root of the workspace and without a keyboard.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Runs a command line and lets its output through.
pub(crate) fn run(root: &Path, line: &[&str]) -> Result<()> {
    finish(&mut command(root, line), line)
}

/// The same, with more in its environment.
pub(crate) fn run_with(root: &Path, line: &[&str], more: &[(&str, &Path)]) -> Result<()> {
    let mut command = command(root, line);
    command.envs(more.iter().copied());
    finish(&mut command, line)
}

fn finish(command: &mut Command, line: &[&str]) -> Result<()> {
    let status = command.status().with_context(|| starting(line))?;
    if !status.success() {
        bail!("`{}` failed", line.join(" "));
    }
    Ok(())
}

/// Runs a command line and returns what it writes to stdout.
pub(crate) fn read(root: &Path, line: &[&str]) -> Result<String> {
    let output =
        command(root, line).stderr(Stdio::inherit()).output().with_context(|| starting(line))?;
    if !output.status.success() {
        bail!("`{}` failed", line.join(" "));
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote something that is not text", line.join(" ")))
}

/// Whether a command line can be started and succeeds. Its output is dropped.
pub(crate) fn succeeds(root: &Path, line: &[&str]) -> bool {
    command(root, line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// `cargo` means the one that runs us, so that all steps use the same toolchain.
fn command(root: &Path, line: &[&str]) -> Command {
    let (program, arguments) = line.split_first().expect("a command line names a program");
    let program = match *program {
        "cargo" => env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")),
        other => OsString::from(other),
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    command
}

fn starting(line: &[&str]) -> String {
    format!("could not start `{}`", line.join(" "))
}
