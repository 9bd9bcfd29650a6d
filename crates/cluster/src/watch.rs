//! Somebody stays behind to clean up: a process that is killed cannot do so itself.

use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Waits until `$1` is gone, ends the server `$2`, and removes `$3`, unless a newer server uses it.
const WATCH: &str = r#"
while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.3; done
kill -0 "$1" 2>/dev/null && exit
kill -QUIT "$2" 2>/dev/null
while kill -0 "$2" 2>/dev/null; do sleep 0.1; done
rm -rf "$3" "$3.lock"
"#;

/// What tells this run of the tests from others, and the process that lasts as long as it does.
///
/// A runner that gives each test a process of its own lasts longer than they do.
pub(crate) fn run() -> (String, u32) {
    match std::env::var("NEXTEST_RUN_ID") {
        Ok(run) => (run.chars().take(13).collect(), parent_id()),
        Err(_) => (std::process::id().to_string(), std::process::id()),
    }
}

/// Has the server ended and its directory removed when the process `watched` is gone.
pub(crate) fn until_gone(watched: u32, server: u32, directory: &Path) -> Result<(), Error> {
    let mut watch = Command::new("sh");
    watch.args(["-c", WATCH, "watch", &watched.to_string(), &server.to_string()]).arg(directory);
    watch.process_group(0).current_dir("/");
    watch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    watch.spawn().map_err(Error::io("have a server watched"))?;
    Ok(())
}
