//! Workers that find their own work: the example, as a person runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::site::Site;

/// The example beside the program.
fn janitor() -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_maitre"));
    let path = program.parent().expect("it is in a folder").join("examples/janitor");
    assert!(path.exists(), "build it first: cargo build --example janitor -p cli");
    Site::program(&path.display().to_string())
}

/// A folder with files that differ, each so many bytes.
pub(crate) fn folder(site: &Site, n_files: u8, n_bytes: usize) -> PathBuf {
    let folder = site.dir.path().join("tree");
    std::fs::create_dir_all(folder.join("deep/er")).expect("there is room");
    for n in 0..n_files {
        let place = if n % 2 == 0 { "deep/er" } else { "." };
        let bytes: Vec<u8> = (0..=250).cycle().map(|byte| byte ^ n).take(n_bytes).collect();
        let path = folder.join(place).join(format!("file-{n}"));
        std::fs::write(path, bytes).expect("there is room");
    }
    folder
}

fn start(site: &mut Site, folder: &Path) -> Vec<usize> {
    let journal = site.path("journal");
    (1..=3).map(|n| start_one(site, &format!("janitor-{n}"), (folder, &journal), &[])).collect()
}

/// Starts a janitor; its place in the order of the site's workers.
pub(crate) fn start_one(
    site: &mut Site,
    name: &str,
    (folder, journal): (&Path, &str),
    arguments: &[&str],
) -> usize {
    let mut command = janitor();
    command.args(["--name", name, "--journal", journal]).arg("--folder").arg(folder);
    command.args(arguments);
    site.adopt(command)
}

/// How often each thing was done, whoever did it.
pub(crate) fn journal(site: &Site) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in site.lines("journal") {
        let (_, what) = line.split_once(' ').expect("a name and a deed");
        *counts.entry(what.to_owned()).or_default() += 1;
    }
    counts
}

pub(crate) fn n_compressed(folder: &Path) -> usize {
    let places = ["deep/er", "."].map(|place| std::fs::read_dir(folder.join(place)));
    let entries = places.into_iter().flatten().flatten().flatten();
    let names = entries.map(|entry| entry.path());
    names.filter(|path| path.extension().is_some_and(|end| end == "gz")).count()
}

pub(crate) fn history(site: &Site, kind: &str, n: usize) -> Vec<Value> {
    site.until(&format!("{n} runs of {kind}"), || {
        let runs = site.json(&["types", "history", kind]);
        let runs = runs.as_array().expect("it is a list").clone();
        (runs.len() >= n).then_some(runs)
    })
}

#[test]
fn three_janitors_keep_a_folder_tidy() {
    let mut site = Site::serve();
    let folder = folder(&site, 6, 200_000);
    std::fs::write(folder.join("small"), "twice").unwrap();
    std::fs::write(folder.join("smaller"), "twice").unwrap();
    site.said(&["types", "set", "compress", "admin.size_min=100000"]);
    start(&mut site, &folder);
    let run = history(&site, "compress", 1).remove(0);
    assert_eq!((&run["status"], &run["proposed"]), (&json!("succeeded"), &json!(6)), "{run}");
    assert_eq!((&run["taken"], &run["succeeded"]), (&json!(6), &json!(6)));
    assert_eq!(n_compressed(&folder), 6);
    let run = history(&site, "duplicates", 1).remove(0);
    assert_eq!((&run["status"], &run["succeeded"]), (&json!("succeeded"), &json!(1)), "{run}");
    assert!(folder.join("small").exists() && !folder.join("smaller").exists());
    // Each was looked for once, by one of them, and each file was seen to once.
    assert!(journal(&site).values().all(|n| *n == 1), "{:?}", journal(&site));
    let kind = site.json(&["types", "show", "compress"]);
    let jobs_max = &kind["policy"]["jobs_max"];
    assert_eq!((&jobs_max["value"], &jobs_max["origin"]), (&json!("3"), &json!("descriptor")));
    assert_eq!((&kind["admin"]["size_min"], &kind["running"]), (&json!(100_000), &Value::Null));
    assert!(kind["next_due_ms"].as_i64() > kind["last_success_ms"].as_i64());
    // Now, not when it is due.
    std::fs::write(folder.join("smallest"), "twice").unwrap();
    let run = site.json(&["detect", "duplicates", "--wait"]);
    assert_eq!((&run["asked"], &run["succeeded"]), (&json!(true), &json!(1)), "{run}");
    let wrong = site.refused(&["types", "set", "compress", "admin.size_min=0"]);
    assert!(wrong.contains("`admin.size_min` is \"0\", which is not between 1 and"), "{wrong}");
    let told = site.refused(&["detect", "nope"]);
    assert!(told.contains("hint: the types that workers can look for are `"), "{told}");
    let activity = site.json(&["activity", "--kind", "detection"]);
    let entries = activity["entries"].as_array().expect("it is a list").iter();
    let mut whats = entries.filter_map(|entry| entry["what"].as_str());
    assert!(whats.any(|what| what.contains("went well: 6 proposed, 6 taken")), "{activity}");
}

#[test]
fn a_scheduler_that_is_killed_in_the_middle_of_a_group_goes_on_with_it() {
    let mut site = Site::serve();
    let folder = folder(&site, 9, 500_000);
    site.said(&["types", "set", "compress", "admin.size_min=100000", "worker.pause=40ms"]);
    let janitors = start(&mut site, &folder);
    site.until("some are done, and some are not", || (n_compressed(&folder) >= 2).then_some(()));
    site.kill_scheduler();
    assert!(n_compressed(&folder) < 9, "it was killed in the middle");
    site.launch(&["serve"]);
    // One of the hands goes too; others take what it had.
    site.kill_worker(janitors[0]);
    let run = history(&site, "compress", 1).remove(0);
    assert_eq!((&run["status"], &run["succeeded"]), (&json!("succeeded"), &json!(9)), "{run}");
    assert_eq!(n_compressed(&folder), 9);
    let journal = journal(&site);
    assert_eq!(journal["looks compress"], 1, "nobody looked again: {journal:?}");
    assert_done_once(&site, &journal, 9);
}

/// Each file was seen to: at least once, and never more often than attempts are on record.
pub(crate) fn assert_done_once(site: &Site, journal: &BTreeMap<String, usize>, n_files: usize) {
    let jobs = site.json(&["jobs", "--type", "compress", "-n", "500"]);
    let n_attempts: usize = jobs["jobs"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter_map(|job| usize::try_from(job["attempts"].as_u64()?).ok())
        .sum();
    let done = journal.iter().filter(|(what, _)| what.starts_with("compresses "));
    let n_done: usize = done.clone().map(|(_, n)| n).sum();
    assert_eq!(done.count(), n_files);
    assert!(n_done <= n_attempts, "{n_done} of {n_attempts}");
}

/// Waits until somebody has found the first hundred files and rests.
pub(crate) fn until_resting(site: &Site) -> Value {
    site.until("a hundred are found", || {
        let running = site.json(&["types", "show", "compress"])["running"].clone();
        (running["phase"] == "detecting" && running["taken"] == 100).then_some(running)
    })
}

#[test]
fn a_detector_that_is_killed_is_followed_by_another_and_without_one_the_run_has_failed() {
    let mut site = Site::serve();
    let (folder, lines) = (folder(&site, 120, 2_000), site.path("journal"));
    let resting = ["types", "set", "compress", "admin.size_min=1000", "worker.look_pause=40s"];
    site.said(&resting);
    let place = (&*folder, &*lines);
    let first = start_one(&mut site, "janitor-1", place, &["--only", "compress"]);
    let run = until_resting(&site);
    site.said(&["types", "set", "compress", "worker.look_pause=0s"]);
    start_one(&mut site, "janitor-2", place, &["--only", "compress"]);
    site.until("both are there", || {
        let kind = site.json(&["types", "show", "compress"]);
        (kind["detectors"] == json!(["janitor-1", "janitor-2"])).then_some(())
    });
    site.kill_worker(first);
    let done = history(&site, "compress", 1).remove(0);
    assert_eq!((&done["run"], &done["status"]), (&run["run"], &json!("succeeded")), "{done}");
    assert_eq!((&done["worker"], &done["taken"]), (&json!("janitor-2"), &json!(120)), "{done}");
    let journal = journal(&site);
    assert_eq!((journal["looks compress"], n_compressed(&folder)), (2, 120));
    assert_done_once(&site, &journal, 120);
    let activity = site.json(&["activity", "--kind", "detection"]).to_string();
    assert!(activity.contains("does not wait for worker `janitor-1` any more"), "{activity}");

    // Nobody is left: the run does not wait for anybody, and what it found is done all the same.
    std::fs::remove_dir_all(&folder).expect("it is ours");
    crate::janitor::folder(&site, 120, 2_001);
    site.said(&resting);
    site.said(&["detect", "compress"]);
    until_resting(&site);
    site.kill_worker(1);
    site.until("nobody looks any more", || {
        let kind = site.json(&["types", "show", "compress"]);
        (kind["running"]["phase"] == "executing").then_some(())
    });
    site.said(&["types", "set", "compress", "worker.look_pause=0s"]);
    start_one(&mut site, "janitor-3", place, &["--only", "compress"]);
    let failed = history(&site, "compress", 2).remove(0);
    assert_eq!((&failed["status"], &failed["taken"]), (&json!("failed"), &json!(100)), "{failed}");
    assert_eq!(failed["error"], "worker `janitor-2` was lost", "{failed}");
    assert_eq!(failed["succeeded"], 100, "{failed}");
    let found = site.json(&["detect", "compress", "--wait"]);
    assert_eq!((&found["status"], &found["taken"]), (&json!("succeeded"), &json!(20)), "{found}");
    assert_eq!(n_compressed(&folder), 120);
}

#[test]
fn a_job_recurs_until_it_is_paused_or_removed() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let script = format!("echo x >> {}", site.path("ticks"));
    let add = ["schedule", "add", "tick", "--every", "1s", "--", "sh", "-c", &script];
    assert!(site.said(&add).starts_with("schedule tick is due in "));
    site.until("it ran twice", || (site.lines("ticks").len() >= 2).then_some(()));
    site.said(&["schedule", "pause", "tick"]);
    let list = site.json(&["schedule", "list"]);
    assert_eq!((&list[0]["schedule"], &list[0]["paused"]), (&json!("tick"), &json!(true)));
    assert_eq!(list[0]["next_ms"], Value::Null);
    let jobs = site.json(&["jobs", "--label", "schedule=tick"]);
    let n_jobs = jobs["jobs"].as_array().unwrap().len();
    site.until("all are done", || (site.lines("ticks").len() == n_jobs).then_some(()));
    site.kill_scheduler();
    site.launch(&["serve"]);
    let again = site.json(&["schedule", "list"]);
    assert_eq!(again[0]["last_job"], list[0]["last_job"], "it rests across a restart");
    assert_eq!(site.said(&["schedule", "remove", "tick"]).trim(), "schedule tick is removed");
    let wrong = site.refused(&["schedule", "add", "bad", "--cron", "often", "--", "true"]);
    assert!(wrong.contains("`schedule.cron` is `often`"), "{wrong}");
    let cron =
        ["schedule", "add", "n", "--cron", "0 3 * * *", "--zone", "Asia/Tokyo", "--", "true"];
    assert!(site.said(&cron).starts_with("schedule n is due in "));
}
