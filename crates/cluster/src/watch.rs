//! A process that cleans up after this one, because a killed process cannot.

use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Waits for the end of the process `$1`, then stops the server `$2` and removes its directory
/// `$3`. If the server ends first, a newer one may use the directory, so it stays.
const WATCH: &str = r#"
while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.3; done
kill -0 "$1" 2>/dev/null && exit
kill -QUIT "$2" 2>/dev/null
while kill -0 "$2" 2>/dev/null; do sleep 0.1; done
rm -rf "$3" "$3.lock"
"#;

/// A name of this test run, and the process that lasts as long as the run.
///
/// A runner that gives each test a process of its own lasts longer than the tests.
pub(crate) fn run() -> (String, u32) {
    match std::env::var("NEXTEST_RUN_ID") {
        Ok(run) => (run.chars().take(13).collect(), parent_id()),
        Err(_) => (std::process::id().to_string(), std::process::id()),
    }
}

/// Stops the server and removes its directory after the end of the process `watched`.
pub(crate) fn until_gone(watched: u32, server: u32, directory: &Path) -> Result<(), Error> {
    let mut watch = Command::new("sh");
    watch.args(["-c", WATCH, "watch", &watched.to_string(), &server.to_string()]).arg(directory);
    watch.process_group(0).current_dir("/");
    watch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    watch.spawn().map_err(Error::io("have a server watched"))?;
    Ok(())
}
