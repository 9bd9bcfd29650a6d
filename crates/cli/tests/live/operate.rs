//! What operators do: workers, drains, tenants, quotas, budgets, policies, snapshots.

use serde_json::json;

use crate::site::Site;

#[test]
fn a_worker_that_drains_takes_no_more_work() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let first = site.submit(&["--", "true"]);
    site.wait(&first, "state", "succeeded");
    site.said(&["drain", "w1"]);
    let second = site.submit(&["--", "true"]);
    assert_eq!(site.json(&["why", &second])["reason"], "no-worker-now");
    assert_eq!(site.json(&["workers"])[0]["state"], "draining");
    site.said(&["drain", "w1", "--undo"]);
    site.wait(&second, "state", "succeeded");
    let told = site.refused(&["drain", "nobody"]);
    assert!(told.contains("there is no worker `nobody`"), "{told}");
}

#[test]
fn two_workers_of_one_name_do_not_take_each_others_jobs() {
    let mut site = Site::serve();
    let first = site.work("w1", &[]);
    let script =
        format!("touch {0}; while ! test -e {0}.go; do sleep 0.02; done", site.path("ran"));
    let id = site.submit(&["--", "sh", "-c", &script]);
    site.wait(&id, "state", "running");
    site.work("w1", &[]);
    // The second keeps asking; three heartbeats later the first still has its job.
    let heard = || site.json(&["workers"])[0]["heard_ms"].as_i64().unwrap();
    let before = heard();
    site.until("the first is alive", || (heard() > before + 500).then_some(()));
    std::fs::write(site.path("ran.go"), "").unwrap();
    let job = site.wait(&id, "state", "succeeded");
    assert_eq!((&job["attempts"], &job["losses"]), (&json!(1), &json!(0)));
    site.kill_worker(first);
    let next = site.submit(&["--", "true"]);
    site.wait(&next, "state", "succeeded");
}

#[test]
fn a_worker_can_be_told_to_stop() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let id = site.submit(&["--", "sleep", "60"]);
    site.wait(&id, "state", "running");
    site.said(&["drain", "w1", "--stop-within", "100ms"]);
    let job = site.wait(&id, "state", "queued");
    assert_eq!((&job["failures"], &job["losses"]), (&json!(0), &json!(0)));
    site.until("it is gone", || (site.json(&["workers"]) == json!([])).then_some(()));
}

#[test]
fn workers_differ_and_jobs_find_the_right_one() {
    let mut site = Site::serve();
    site.work("plain", &[]);
    site.work("gpu", &["--has", "gpu=a100", "--pool", "fast", "--amount", "ram_mb=1000"]);
    let on = |arguments: &[&str]| {
        let id = site.submit(&[arguments, &["--wait", "--", "true"]].concat());
        site.job(&id)["worker"].as_str().unwrap().to_owned()
    };
    assert_eq!(on(&["--need", "gpu=h100,a100"]), "gpu");
    assert_eq!(on(&["--pool", "fast"]), "gpu");
    assert_eq!(on(&["--pool", "default"]), "plain");
    assert_eq!(on(&["--amount", "ram_mb=500"]), "gpu");
}

#[test]
fn a_tenant_never_has_more_slots_than_its_quota() {
    let site = Site::dev();
    site.said(&["quota", "a", "--max", "1"]);
    let first = site.submit(&["--tenant", "a", "--", "sleep", "60"]);
    site.wait(&first, "state", "running");
    let second = site.submit(&["--tenant", "a", "--", "true"]);
    assert_eq!(site.json(&["why", &second])["reason"], "tenant-at-max");
    let other = site.submit(&["--tenant", "b", "--", "true"]);
    site.wait(&other, "state", "succeeded");
    let tenants = site.json(&["tenants"]);
    assert_eq!(
        tenants["tenants"][0]["quotas"][0],
        json!({"pool": "default", "min": 0, "max": 1, "slots": 1})
    );
    site.said(&["quota", "a", "--max", "2"]);
    site.wait(&second, "state", "succeeded");
}

#[test]
fn a_budget_is_kept_and_a_paused_tenant_waits() {
    let site = Site::dev();
    site.said(&["set", "tenant", "a", r#"{"budget": 3}"#]);
    let arguments = ["--tenant", "a", "--cost", "2", "--", "true"];
    let first = site.submit(&arguments);
    site.wait(&first, "state", "succeeded");
    let second = site.submit(&arguments);
    assert_eq!(site.json(&["why", &second])["reason"], "budget-spent");
    site.said(&["set", "tenant", "a", r#"{"budget": 4, "active": false}"#]);
    assert_eq!(site.json(&["why", &second])["reason"], "tenant-paused");
    // The command that is told changes nothing else.
    let told = site.said(&["why", &second]);
    let document = r#"{"active":true,"budget":4}"#;
    assert!(told.contains(&format!("maitre set tenant a '{document}'")), "{told}");
    site.said(&["set", "tenant", "a", document]);
    site.wait(&second, "state", "succeeded");
    assert_eq!(site.json(&["tenants"])["tenants"][0]["used"], 4.0);
}

#[test]
fn the_policy_can_change_and_stays_changed() {
    let mut site = Site::serve();
    assert_eq!(site.said(&["policy"]), "balanced\n");
    site.said(&["policy", "aging"]);
    let told = site.refused(&["policy", "fastest"]);
    assert!(told.contains("fastest"), "{told}");
    site.kill_scheduler();
    site.launch(&["serve"]);
    assert_eq!(site.json(&["policy"])["preset"], "aging");
}

#[test]
fn a_tenant_below_its_minimum_gets_a_slot_back() {
    let mut site = Site::serve();
    site.said(&[
        "policy",
        r#"{"preset": "cohort", "preemption": {"enabled": true, "delay_ms": 0}}"#,
    ]);
    site.said(&["quota", "paid", "--min", "1"]);
    site.work("w1", &[]);
    let victim = site.submit(&["--tenant", "free", "--", "sleep", "60"]);
    site.wait(&victim, "state", "running");
    let paid = site.submit(&["--tenant", "paid", "--priority", "1", "--", "true"]);
    site.wait(&paid, "state", "succeeded");
    site.wait(&victim, "state", "running");
    let job = site.job(&victim);
    assert_eq!((&job["evictions"], &job["failures"]), (&json!(1), &json!(0)));
    assert_eq!(job["past_attempts"][0]["ending"], "preempted");
}

#[test]
fn the_live_world_can_be_decided_on_elsewhere() {
    let site = Site::serve();
    let id = site.submit(&["--need", "gpu=a100", "--", "true"]);
    std::fs::write(site.path("world.json"), site.said(&["snapshot"])).unwrap();
    let decision: serde_json::Value =
        serde_json::from_str(&site.said(&["decide", &site.path("world.json"), "--check"])).unwrap();
    assert_eq!(decision["holds"][0]["job"], id);
    assert_eq!(decision["holds"][0]["reason"], "no-worker-ever");
}

#[test]
fn only_loopback_is_allowed_and_a_data_directory_has_one_scheduler() {
    let site = Site::serve();
    let told = site.refused(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(told.contains("`listen` is `0.0.0.0:0`, which others can reach"), "{told}");
    let data = site.data().display().to_string();
    let told = site.refused(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    assert!(told.contains("another scheduler uses the data"), "{told}");
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let site = Site::serve();
    let lease = |variables: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["serve", "--data-dir", ":memory:"], flags].concat();
        let output = site.command(&arguments).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        let (_, rest) = told.split_once("`lease` is ").unwrap_or_else(|| panic!("{told}"));
        rest.split(',').next().unwrap().to_owned()
    };
    // What is set is told, because it is too little for these heartbeats.
    std::fs::write(site.path("maitre.toml"), "heartbeat = \"5s\"\nlease = \"6s\"\n").unwrap();
    let environment = [("MAITRE_LEASE", "7s")];
    assert_eq!(lease(&[], &[]), "6000 ms");
    assert_eq!(lease(&environment, &[]), "7000 ms");
    assert_eq!(lease(&environment, &["--lease", "8s"]), "8000 ms");
    assert_eq!(lease(&[], &["--lease", "8s"]), "8000 ms");
    let mut serve = site.command(&["serve"]);
    let told = serve.env("MAITRE_LEASE", "60s").env("MAITRE_JOBS_MAX", "many").output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("MAITRE_JOBS_MAX") && told.contains("many"), "{told}");
    std::fs::write(site.path("maitre.toml"), "leese = \"5s\"\n").unwrap();
    let told = site.refused(&["serve"]);
    assert!(told.contains("maitre.toml:1") && told.contains("did you mean `lease`"), "{told}");
}

#[test]
fn a_worker_runs_only_what_it_was_told_to() {
    let mut site = Site::serve();
    let config = "[worker.commands.greet]\nargv = [\"echo\", \"hello\"]\n";
    std::fs::write(site.path("worker.toml"), config).unwrap();
    let told = site.refused(&["work"]);
    assert!(told.contains("this worker would run nothing"), "{told}");
    site.work_named("greeter", &["--config", "worker.toml"]);
    let id = site.submit(&["--type", "greet", "--wait", "--", "you; rm -rf /"]);
    assert_eq!(site.said(&["logs", &id]), "hello you; rm -rf /\n");
    let exec = site.submit(&["--", "true"]);
    assert_eq!(site.json(&["why", &exec])["reason"], "no-worker-ever");
}
