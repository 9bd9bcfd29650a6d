//! The process between a worker and its commands.
//!
//! Between fork and exec only unsafe code could run, so the worker starts this program instead. It
//! creates a session, ties its life to the worker, sets its limits, and becomes the command. A
//! second mode is the guard: it outlives a killed worker just long enough to kill the processes of
//! its commands.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::command::group;

/// Exit codes of a shell for a program that does not exist, or that cannot be executed.
const CODE_NOT_FOUND: u8 = 127;
const CODE_NOT_RUN: u8 = 126;

/// Tries of the guard to remove the directories, and the pause in between.
const REMOVALS_MAX: u32 = 100;
const REMOVAL_EVERY: Duration = Duration::from_millis(20);

/// The arguments that select a mode.
pub(crate) const RUN: &str = "run";
pub(crate) const GUARD: &str = "guard";

/// The limits of a command. `None` means those of the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Seconds of CPU time of one process.
    pub cpu_s: Option<u64>,
    /// Bytes of address space of one process.
    pub memory_bytes: Option<u64>,
    /// Processes of this user on the machine.
    pub processes: Option<u64>,
    /// Bytes in one file that it writes.
    pub file_bytes: Option<u64>,
    /// Files that one process has open.
    pub open_files: Option<u64>,
}

impl Limits {
    const RESOURCES: [Resource; 5] =
        [Resource::Cpu, Resource::As, Resource::Nproc, Resource::Fsize, Resource::Nofile];

    fn values(self) -> [Option<u64>; 5] {
        [self.cpu_s, self.memory_bytes, self.processes, self.file_bytes, self.open_files]
    }

    /// One argument: numbers, and `-` where there is no limit.
    pub(crate) fn word(self) -> String {
        let words = self.values().map(|value| value.map_or("-".to_owned(), |n| n.to_string()));
        words.join(",")
    }

    fn set(word: &str) -> Result<(), String> {
        for (resource, value) in Self::RESOURCES.into_iter().zip(word.split(',')) {
            if value == "-" {
                continue;
            }
            let value: u64 = value.parse().map_err(|_| format!("`{value}` is no limit"))?;
            let known = rustix::process::getrlimit(resource);
            // A process cannot raise a hard limit.
            let value = known.maximum.map_or(value, |maximum| value.min(maximum));
            let limit = Rlimit { current: Some(value), maximum: Some(value) };
            rustix::process::setrlimit(resource, limit)
                .map_err(|error| format!("could not limit {resource:?} to {value}: {error}"))?;
        }
        Ok(())
    }
}

/// The program between a worker and its commands. A binary that starts commands calls this first,
/// if it was started with the arguments in [`crate::CommandSettings::child`]. The remaining
/// arguments follow them.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    let mode = args.first().and_then(|mode| mode.to_str());
    match (mode, args.get(1..).unwrap_or_default()) {
        (Some(RUN), [parent, limits, program, args @ ..]) => {
            let text = |word: &OsString| word.to_string_lossy().into_owned();
            let command = command(program, args);
            run(&text(parent), &text(limits), command)
        }
        (Some(GUARD), [directory]) => guard(Path::new(directory)),
        _ => fail(CODE_NOT_RUN, "this is for workers to start, not for people"),
    }
}

fn command(program: &OsString, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

fn run(parent: &str, limits: &str, mut command: Command) -> ExitCode {
    if let Err(problem) = prepare(parent, limits) {
        return fail(CODE_NOT_RUN, &problem);
    }
    let error = command.exec();
    let program = command.get_program().to_string_lossy();
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    let code = if is_missing { CODE_NOT_FOUND } else { CODE_NOT_RUN };
    fail(code, &format!("could not run `{program}`: {error}"))
}

fn prepare(parent: &str, limits: &str) -> Result<(), String> {
    let told = |what: &'static str| move |error| format!("could not {what}: {error}");
    rustix::process::setsid().map_err(told("begin a session"))?;
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(told("tie its life to the worker's"))?;
        // A program that gains privileges would lose the parent-death signal.
        rustix::thread::set_no_new_privs(true).map_err(told("give up privileges"))?;
    }
    // The worker may have died before that call.
    let is_parent = |pid: Pid| pid.as_raw_nonzero().to_string() == parent;
    if !rustix::process::getppid().is_some_and(is_parent) {
        return Err("the worker is gone".to_owned());
    }
    Limits::set(limits)
}

/// Reads the process groups from its input, one line each: `+7` begins, `-7` ended. When the pipe
/// closes because the worker is gone, it kills the remaining groups.
fn guard(directory: &Path) -> ExitCode {
    // A signal from the terminal that ends the worker must not end the guard first.
    if let Err(error) = rustix::process::setsid() {
        return fail(CODE_NOT_RUN, &format!("could not begin a session: {error}"));
    }
    let mut groups: BTreeSet<i32> = BTreeSet::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(group) = line.get(1..).unwrap_or_default().parse() else { continue };
        if line.starts_with('+') {
            groups.insert(group);
        } else {
            groups.remove(&group);
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        group::signal(group, Signal::KILL);
    }
    remove(directory)
}

/// A killed process may still write for a moment.
fn remove(directory: &Path) -> ExitCode {
    for _ in 0..REMOVALS_MAX {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {}
            _ => return ExitCode::SUCCESS,
        }
        std::thread::sleep(REMOVAL_EVERY);
    }
    fail(1, &format!("could not remove `{}`", directory.display()))
}

/// Stderr is the command's, so this message is part of the attempt's output.
fn fail(code: u8, problem: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "maitre: {problem}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_one_argument() {
        assert_eq!(Limits::default().word(), "-,-,-,-,-");
        let limits = Limits { cpu_s: Some(1), open_files: Some(64), ..Limits::default() };
        assert_eq!(limits.word(), "1,-,-,-,64");
    }

    #[test]
    fn invalid_limit_is_an_error() {
        assert_eq!(Limits::set("x,-,-,-,-"), Err("`x` is no limit".to_owned()));
    }
}
