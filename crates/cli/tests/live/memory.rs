//! A job that takes more memory than there is.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::site::Site;

/// A group of processes that gets little memory, for as long as a test lasts.
struct Narrow(PathBuf);

impl Narrow {
    /// `Err`: why this machine does not allow it.
    fn new() -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(root.join("cgroup.subtree_control"));
        let controllers = controllers.map_err(|error| format!("no cgroup v2: {error}"))?;
        if !controllers.split_whitespace().any(|controller| controller == "memory") {
            return Err("cgroup v2 does not control memory".to_owned());
        }
        let dir = root.join(format!("maitre-test-{}", std::process::id()));
        let made = std::fs::create_dir(&dir);
        made.map_err(|error| format!("no cgroup can be made (only root can): {error}"))?;
        let narrow = Self(dir);
        for (file, text) in [("memory.max", "96M"), ("memory.swap.max", "0")] {
            let written = std::fs::write(narrow.0.join(file), text);
            written.map_err(|error| format!("`{file}` cannot be set: {error}"))?;
        }
        Ok(narrow)
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        let _still_used = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_job_that_the_kernel_killed_for_memory_says_so_and_is_expected_to_do_so_again() {
    let narrow = match Narrow::new() {
        Ok(narrow) => narrow,
        Err(why) => return println!("NOT TESTED: a real kill for want of memory: {why}"),
    };
    let mut site = Site::serve();
    site.work_inside("w1", &narrow.0);
    let greedy = "head -c 500000000 /dev/zero | tail";
    let id = site.submit(&["--attempts", "1", "--", "sh", "-c", greedy]);
    let job = site.wait(&id, "state", "failed");
    assert_eq!(job["past_attempts"][0]["out_of_memory"], true, "{job}");
    site.submit(&["--need", "gpu=a100", "--", "true"]);
    let world: Value = serde_json::from_str(&site.said(&["snapshot"])).unwrap();
    assert_eq!(world["jobs"][0]["history"]["oom_rate"], json!(1));
    drop(site);
}
