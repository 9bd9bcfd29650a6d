//! Many jobs at once: from a file, and changed by what they are like.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::site::Site;

/// Submits a file of lines; what was said of each.
fn submit_lines(site: &Site, flags: &[&str], lines: &str) -> Vec<Value> {
    std::fs::write(site.path("jobs.jsonl"), lines).expect("there is room");
    let said = site.said(&[&["submit", "--json", "--file", "jobs.jsonl"], flags].concat());
    said.lines().map(|line| serde_json::from_str(line).expect("each is JSON")).collect()
}

#[test]
fn a_file_of_lines_becomes_jobs_that_wait_for_each_other() {
    let site = Site::dev();
    let script = |word: &str| format!("echo {word} >> {}", site.path("order"));
    let line = |name: &str, after: Value| {
        let command = ["sh", "-c", &script(name)];
        json!({ "name": name, "command": command, "after": after }).to_string()
    };
    let first = site.submit(&["--tenant", "a", "--", "true"]);
    let lines = [
        line("one", json!([first.parse::<u64>().unwrap()])),
        String::new(),
        line("two", json!(["one"])),
        line("three", json!(["one", "two"])),
    ];
    let said = submit_lines(&site, &["--tenant", "a", "--priority", "3"], &lines.join("\n"));
    assert_eq!(said.iter().map(|one| &one["line"]).collect::<Vec<_>>(), [1, 3, 4]);
    for job in &said {
        let job = site.wait(&job["id"].to_string(), "state", "succeeded");
        assert_eq!((&job["tenant"], &job["priority"]), (&json!("a"), &json!(3)));
    }
    assert_eq!(site.lines("order"), ["one", "two", "three"]);
}

#[test]
fn a_file_goes_in_batches_as_large_as_the_scheduler_takes() {
    let limits = ["submission_max=3", "submission_bytes_max=2000", "message_bytes_max=3000"];
    let set: Vec<&str> = limits.iter().flat_map(|limit| ["--set", limit]).collect();
    let site = Site::start(&[&["serve"], &*set].concat());
    let line = |n: usize| {
        // Small ones, then some of which two are too many.
        let (name, payload) = (format!("n{n}"), "x".repeat(if n < 10 { 10 } else { 1_500 }));
        let after = n.checked_sub(1).map(|before| format!("n{before}"));
        let after: Vec<String> = after.into_iter().collect();
        json!({ "name": name, "type": "t", "payload": payload, "after": after }).to_string() + "\n"
    };
    let lines: String = (0..13).map(line).collect();
    let said = submit_lines(&site, &["--idempotency-key", "k"], &lines);
    assert!(said.len() == 13 && said.iter().all(|job| job["is_new"] == true), "{said:?}");
    let states = said.iter().map(|job| &job["state"]);
    assert_eq!(states.filter(|state| **state == "queued").count(), 1, "{said:?}");
    // What is too large for any batch is refused by its line, with nothing of it lost before.
    let lines = line(0) + &json!({ "type": "t", "payload": "x".repeat(2_500) }).to_string();
    std::fs::write(site.path("jobs.jsonl"), lines).expect("there is room");
    let refused = site.maitre(&["submit", "--file", "jobs.jsonl"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("more than `"), "{said}");
    assert!(said.contains("submitted before it: 1 job, 14"), "{said}");
}

#[test]
fn a_large_file_goes_in_batches_and_the_same_file_again_changes_nothing() {
    let site = Site::serve();
    let line = |n: u32| {
        let after = if n == 0 { json!([]) } else { json!(["first"]) };
        let name = if n == 0 { json!("first") } else { Value::Null };
        let line = json!({ "name": name, "type": "t", "payload": { "n": n }, "after": after });
        line.to_string() + "\n"
    };
    let lines: String = (0..2_500).map(line).collect();
    let said = submit_lines(&site, &["--idempotency-key", "k"], &lines);
    assert_eq!(said.len(), 2_500);
    assert!(said.iter().all(|job| job["is_new"] == true));
    // The last one is in another batch than the one that it waits for.
    let last = site.job(&said[2_499]["id"].to_string());
    assert_eq!((&last["state"], &last["payload"]), (&json!("blocked"), &json!("{\"n\":2499}")));
    let again = site.said(&["submit", "--idempotency-key", "k", "--file", "jobs.jsonl"]);
    assert_eq!(again, "2500 jobs, 1 to 2500 (2500 were there before)\n");
}

#[test]
fn a_line_that_is_wrong_is_named_and_nothing_of_its_file_is_submitted() {
    let site = Site::serve();
    let refused = |line: &str| {
        let lines = format!("{{\"type\": \"t\"}}\n{line}\n");
        std::fs::write(site.path("jobs.jsonl"), lines).unwrap();
        site.refused(&["submit", "--file", "jobs.jsonl"])
    };
    let told = refused(r#"{"comand": ["true"]}"#);
    assert!(told.contains("`jobs.jsonl` line 2: `comand` is unknown"), "{told}");
    assert!(told.contains("hint: did you mean `command`?"), "{told}");
    let told = refused(r#"{"priority": 1}"#);
    assert!(told.contains("line 2: there is nothing to run"), "{told}");
    let told = refused(r#"{"type": "t", "after": ["nobody"]}"#);
    assert!(told.contains("line 2: `after` has `nobody`, which no line before"), "{told}");
    // What only the scheduler knows to be wrong is named by its line too.
    let told = refused(r#"{"type": "t", "priority": 5000}"#);
    assert!(told.contains("line 2: `jobs[1].priority` is 5000"), "{told}");
    assert_eq!(site.json(&["jobs"])["jobs"], json!([]));
    let told = site.refused(&["submit", "--file", "missing.jsonl"]);
    assert!(told.contains("cannot read `missing.jsonl`") && told.contains("hint: "), "{told}");
}

#[test]
fn lines_come_by_a_pipe_too() {
    let site = Site::serve();
    let mut command = site.command(&["submit", "--file", "-", "--tenant", "a"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let lines = b"{\"type\": \"t\"}\n{\"type\": \"t\", \"tenant\": \"b\"}\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2 jobs, 1 to 2\n");
    assert_eq!((&site.job("1")["tenant"], &site.job("2")["tenant"]), (&json!("a"), &json!("b")));
}

#[test]
fn a_dry_run_submits_nothing() {
    let site = Site::dev();
    let said = site.said(&["submit", "--dry-run", "--", "true"]);
    assert!(said.starts_with("would start on w1 now: score "), "{said}");
    let said = site.said(&["submit", "--dry-run", "--array", "5", "--", "true"]);
    assert!(said.starts_with("2 would start on w1 now\n3 would wait: workers-full\n"), "{said}");
    let told = site.json(&["submit", "--dry-run", "--need", "gpu=a100", "--", "true"]);
    assert_eq!((&told[0]["worker"], &told[0]["reason"]), (&Value::Null, &json!("no-worker-ever")));
    assert_eq!(site.json(&["jobs"])["jobs"], json!([]));
}

#[test]
fn jobs_are_changed_by_what_they_are_like_once_somebody_agrees() {
    let site = Site::serve();
    site.said(&["submit", "--array", "1200", "--tenant", "a", "--group", "g", "--", "true"]);
    site.said(&["submit", "--tenant", "b", "--hold", "--", "true"]);
    let told = site.refused(&["cancel", "--tenant", "a"]);
    assert!(
        told.contains("nobody is there to agree to: cancel 1200 jobs (1200 queued)?"),
        "{told}"
    );
    assert!(told.contains("hint: `--yes`"), "{told}");
    let said = site.said(&["hold", "--group", "g", "--yes"]);
    assert_eq!(said, "1200 jobs (1200 queued): 1200 on hold\n");
    let said = site.json(&["cancel", "--tenant", "a", "--yes"]);
    assert_eq!(said, json!({ "matched": 1200, "changed": 1200, "unchanged": [] }));
    assert_eq!(site.job("1201")["state"], "queued", "another tenant's");
    let said = site.said(&["retry", "--cause", "asked", "--yes"]);
    assert_eq!(said, "1200 jobs (1200 cancelled): 1200 queued again\n");
    assert_eq!(
        site.said(&["priority", "7", "--tenant", "b", "--yes"]),
        "1 job (1 queued): 1 with priority 7\n"
    );
    assert_eq!(
        site.said(&["cancel", "--all", "--yes"]),
        "1201 jobs (1201 queued): 1201 cancelled\n"
    );
    assert_eq!(site.said(&["cancel", "--all", "--yes"]), "0 jobs: 0 cancelled\n");
    let told = site.refused(&["cancel"]);
    assert!(told.contains("no job is named") && told.contains("hint: "), "{told}");
    let told = site.refused(&["cancel", "1", "--tenant", "a"]);
    assert!(told.contains("both by their ids and by filters"), "{told}");
}

#[test]
fn poison_is_listed_and_released() {
    let mut site = Site::prepared(&["serve"], |_, command| {
        command.env("MAITRE_LOSSES_MAX", "1");
    });
    assert_eq!(site.json(&["poison"])["jobs"], json!([]));
    let worker = site.work("w1", &[]);
    let script = format!("test -e {} || sleep 60", site.path("cured"));
    let id = site.submit(&["--", "sh", "-c", &script]);
    site.wait(&id, "state", "running");
    site.kill_worker(worker);
    site.wait(&id, "cause", "poison");
    let said = site.said(&["poison"]);
    assert!(said.contains("LOSSES") && said.contains("w1"), "{said}");
    assert_eq!(site.json(&["poison"])["jobs"][0]["losses"], 1);
    std::fs::write(site.path("cured"), "").unwrap();
    let told = site.refused(&["poison", "release", "--all"]);
    assert!(told.contains("retry 1 job (1 failed)?"), "{told}");
    assert_eq!(site.said(&["poison", "release", &id]), format!("job {id} queued again\n"));
    site.work("w2", &[]);
    site.wait(&id, "state", "succeeded");
    assert_eq!(site.json(&["poison"])["jobs"], json!([]));
}
