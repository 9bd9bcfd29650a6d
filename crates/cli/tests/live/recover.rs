//! Processes are killed, and nothing is lost.

use serde_json::json;

use crate::site::Site;

#[test]
fn a_job_whose_worker_was_killed_runs_again_elsewhere_with_its_age() {
    let mut site = Site::serve();
    let worker = site.work("w1", &[]);
    let marker = site.path("first");
    let script = format!("test -e {marker} || {{ touch {marker}; sleep 60; }}");
    let id = site.submit(&["--", "sh", "-c", &script]);
    site.until("it runs", || std::path::Path::new(&marker).exists().then_some(()));
    let ready = site.job(&id)["ready_ms"].clone();
    site.kill_worker(worker);
    site.work("w2", &[]);
    let job = site.wait(&id, "state", "succeeded");
    assert_eq!((&job["worker"], &job["ready_ms"]), (&json!("w2"), &ready));
    assert_eq!((&job["losses"], &job["failures"]), (&json!(1), &json!(0)));
    assert_eq!(job["past_attempts"][0]["ending"], "lost");
}

#[test]
fn a_scheduler_that_was_killed_comes_back_to_running_jobs() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let script =
        format!("echo x >> {0}; while ! test -e {0}.go; do sleep 0.02; done", site.path("runs"));
    let running = site.submit(&["--", "sh", "-c", &script]);
    site.wait(&running, "state", "running");
    let waiting = site.submit(&["--", "true"]);
    site.kill_scheduler();
    site.launch(&["serve"]);
    site.until("the worker is back", || {
        (site.json(&["workers"])[0]["state"] == "serving").then_some(())
    });
    std::fs::write(site.path("runs.go"), "").unwrap();
    let job = site.wait(&running, "state", "succeeded");
    assert_eq!((&job["attempts"], &job["losses"]), (&json!(1), &json!(0)));
    assert_eq!(site.lines("runs"), ["x"], "it ran once");
    site.wait(&waiting, "state", "succeeded");
}

#[test]
fn what_ran_before_a_restart_counts_after_it() {
    let mut site = Site::serve();
    site.said(&["quota", "t", "--max", "1"]);
    site.work("w1", &[]);
    let script = format!("while ! test -e {}; do sleep 0.02; done", site.path("go"));
    let running = site.submit(&["--tenant", "t", "--", "sh", "-c", &script]);
    site.wait(&running, "state", "running");
    let capped = site.submit(&["--tenant", "t", "--", "true"]);
    site.kill_scheduler();
    site.launch(&["serve"]);
    // Whoever comes first finds the quota used up, also before the worker that uses it is back.
    site.work("w2", &[]);
    let free = site.submit(&["--tenant", "u", "--", "true"]);
    site.wait(&free, "state", "succeeded");
    assert_eq!(site.json(&["why", &capped])["reason"], "tenant-at-max");
    assert_eq!(site.job(&capped)["attempts"], 0);
    std::fs::write(site.path("go"), "").unwrap();
    let ended = site.wait(&running, "state", "succeeded");
    assert_eq!((&ended["attempts"], &ended["losses"]), (&json!(1), &json!(0)));
    site.wait(&capped, "state", "succeeded");
}

#[test]
fn a_job_that_ends_while_there_is_no_scheduler_is_reported_later() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let script =
        format!("while ! test -e {0}; do sleep 0.02; done; echo end >> {0}.ran", site.path("go"));
    let id = site.submit(&["--", "sh", "-c", &script]);
    site.wait(&id, "state", "running");
    site.kill_scheduler();
    std::fs::write(site.path("go"), "").unwrap();
    site.until("it ended", || (site.lines("go.ran").len() == 1).then_some(()));
    site.launch(&["serve"]);
    let job = site.wait(&id, "state", "succeeded");
    assert_eq!(job["attempts"], 1);
}

#[test]
fn a_clean_stop_loses_nothing_and_leaves_no_lock() {
    let mut site = Site::dev();
    let id = site.submit(&["--hold", "--", "true"]);
    site.terminate_scheduler();
    site.launch(&["dev", "--slots", "2", "--name", "w1"]);
    site.said(&["release", &id]);
    site.wait(&id, "state", "succeeded");
}

#[test]
fn a_job_that_kills_workers_is_parked_and_listed() {
    let mut site = Site::serve();
    let id = site.submit(&["--", "sh", "-c", "kill -9 $PPID"]);
    for (n_lost, name) in ["w1", "w2", "w3"].into_iter().enumerate() {
        site.work(name, &[]);
        site.until("it took the worker with it", || {
            (site.job(&id)["losses"] == n_lost + 1).then_some(())
        });
    }
    let job = site.wait(&id, "state", "failed");
    assert_eq!((&job["cause"], &job["losses"]), (&json!("poison"), &json!(3)));
    let poison = site.json(&["jobs", "--cause", "poison"]);
    assert_eq!(poison["jobs"][0]["id"], job["id"]);
}
