//! The programs of an installed server, and as whom they may run.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Names the directory of the programs, where they are in none of the usual places.
pub(crate) const PROGRAMS: &str = "MAITRE_TEST_POSTGRES_BIN";
/// Where packages put one directory a version: `15`, `pgsql-15`, `postgresql@15`.
const VERSIONS: &[&str] = &["/usr/lib/postgresql", "/usr", "/opt/homebrew/opt"];
/// Somebody who owns nothing.
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The programs of one version.
pub(crate) struct Programs {
    directory: PathBuf,
    /// A server refuses to run as root: who runs it instead.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// The newest that is installed.
    pub(crate) fn find() -> Result<Self, Error> {
        let named = std::env::var_os(PROGRAMS).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let candidates =
            named.into_iter().chain(newest_first()).chain(std::env::split_paths(&path));
        let mut found = candidates.filter(|directory| directory.join("initdb").is_file());
        let directory = found.next().ok_or(Error::NotInstalled)?;
        let own = std::fs::metadata("/proc/self").map(|own| own.uid());
        let is_root = own.is_ok_and(|uid| uid == 0);
        Ok(Self { directory, user: is_root.then(|| postgres().unwrap_or(NOBODY)) })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A program that runs as somebody who may run a server, and goes on after a signal to us.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        command.process_group(0).current_dir("/").env("LC_ALL", "C");
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Makes a directory theirs who run the programs.
    pub(crate) fn give(&self, directory: &Path) -> Result<(), Error> {
        let Some((uid, gid)) = self.user else { return Ok(()) };
        std::os::unix::fs::chown(directory, Some(uid), Some(gid))
            .map_err(Error::io("give away a directory"))
    }
}

/// Where each version is looked for, as it is told to people.
pub(crate) fn places() -> String {
    VERSIONS.iter().map(|place| format!("`{place}/*/bin`")).collect::<Vec<_>>().join(", ")
}

/// `bin` of each version, the newest first.
fn newest_first() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in VERSIONS.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten() {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.rsplit(['@', '-']).next().unwrap_or_default();
        if let Ok(version) = digits.parse() {
            found.push((version, entry.path().join("bin")));
        }
    }
    found.sort_unstable();
    found.into_iter().rev().map(|(_, bin)| bin).collect()
}

/// The user that the package made for its server.
fn postgres() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut fields = user.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Runs a program to its end.
pub(crate) fn run(doing: &'static str, command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::io(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let cause = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { doing, cause })
}
