//! The programs of an installed server, and the user that may run them.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

/// Names the directory of the programs, if it is not in one of the usual places.
pub(crate) const PROGRAMS: &str = "MAITRE_TEST_POSTGRES_BIN";
/// Directories with one directory for each version: `15`, `pgsql-15`, `postgresql@15`.
const VERSIONS: &[&str] = &["/usr/lib/postgresql", "/usr", "/opt/homebrew/opt"];
/// An unprivileged user.
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The programs of one version.
pub(crate) struct Programs {
    directory: PathBuf,
    /// A server refuses to run as root, so this user runs it instead.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// The newest installed version.
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

    /// A command for a program, with a user that may run a server. Signals to this process group do
    /// not reach it.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        command.process_group(0).current_dir("/").env("LC_ALL", "C");
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Gives a directory to the user of the programs.
    pub(crate) fn give(&self, directory: &Path) -> Result<(), Error> {
        let Some((uid, gid)) = self.user else { return Ok(()) };
        std::os::unix::fs::chown(directory, Some(uid), Some(gid))
            .map_err(Error::io("give away a directory"))
    }
}

/// The searched places, for error messages.
pub(crate) fn places() -> String {
    VERSIONS.iter().map(|place| format!("`{place}/*/bin`")).collect::<Vec<_>>().join(", ")
}

/// The `bin` directory of each version, the newest first.
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

/// The user that the package created for its server.
fn postgres() -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let user = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut fields = user.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Runs a program and waits for its end.
pub(crate) fn run(doing: &'static str, command: &mut Command) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::io(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let cause = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { doing, cause })
}
