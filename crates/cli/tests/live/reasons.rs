//! Why jobs wait: for each reason a scheduler where it applies, with its code, numbers and names,
//! and that it does not change while nothing else does.

use std::collections::BTreeSet;
use std::time::Duration;

use model::Reason;
use serde_json::{Value, json};

use crate::rows::{ROWS, Row, busy, full};
use crate::shared::{database, serve};
use crate::site::Site;

/// How often each job is asked about while nothing changes, and how long lies between.
const TIMES: usize = 5;
const BETWEEN: Duration = Duration::from_millis(600);

/// Reasons that hold for a moment, or that need a clock that goes faster: the tests of decisions
/// and of the server have them.
const NOT_HERE: &[Reason] = &[
    Reason::WorkerUnhealthy,
    Reason::Guarded,
    Reason::Vetoed,
    Reason::BelowZero,
    Reason::Outranked,
    Reason::Claiming,
];

/// What is wrong with an answer.
fn wrong(row: &Row, why: &Value) -> Option<String> {
    let (name, reason) = (row.name, row.reason.name());
    let first = &why["checks"][0];
    let detail = why["detail"].as_str().unwrap_or_default();
    let codes: Vec<&str> =
        why["checks"].as_array()?.iter().filter_map(|check| check["code"].as_str()).collect();
    let is_said = |word: &&&str| !detail.contains(**word);
    let number = |(name, number): &&(&str, f64)| first["numbers"][*name] != json!(number);
    let problem = if why["reason"] != reason {
        format!("is {}, not {reason}", why["reason"])
    } else if let Some(word) = row.words.iter().find(is_said) {
        format!("does not say {word:?}")
    } else if let Some((name, number)) = row.numbers.iter().find(number) {
        format!("{name} is not {number}")
    } else if codes.first() != Some(&reason) || codes[1..] != *row.others {
        format!("has the checks {codes:?}, not {reason} and {:?}", row.others)
    } else {
        return None;
    };
    Some(format!("{name}: {problem}: {why}"))
}

#[test]
fn each_reason_is_told_with_its_numbers_and_stays_while_nothing_changes() {
    let mut told = BTreeSet::new();
    let staged: Vec<(&Row, Site, String)> = ROWS
        .iter()
        .map(|row| {
            let mut site = Site::start(&["serve", "--set", "stop_grace=10m"]);
            let job = (row.stage)(&mut site);
            told.insert(row.reason);
            (row, site, job)
        })
        .collect();
    for (row, site, job) in &staged {
        let mut last = String::new();
        site.until(row.name, || {
            let problem = wrong(row, &site.json(&["why", job]));
            if problem.as_ref().is_some_and(|problem| *problem != last) {
                last = problem.clone().unwrap_or_default();
                eprintln!("{last}");
            }
            problem.is_none().then_some(())
        });
    }
    for _ in 0..TIMES {
        std::thread::sleep(BETWEEN);
        let problems: Vec<String> = staged
            .iter()
            .filter_map(|(row, site, job)| wrong(row, &site.json(&["why", job])))
            .collect();
        assert!(problems.is_empty(), "nothing changed but:\n{}", problems.join("\n"));
    }
    told.extend(NOT_HERE);
    assert_eq!(told, Reason::ALL.into_iter().collect(), "each has a row, or is named above");
}

#[test]
fn the_nearest_workers_are_told_with_what_they_lack() {
    let mut site = Site::serve();
    site.work("near", &["--has", "gpu=t4"]);
    site.work("far", &["--pool", "other"]);
    let job = site.submit(&["--pool", "default", "--need", "gpu=a100", "--", "true"]);
    site.until("both are there", || {
        let nearest = &site.json(&["why", &job])["nearest"];
        (nearest.as_array()?.len() == 2).then_some(())
    });
    let nearest = &site.json(&["why", &job])["nearest"];
    assert_eq!(nearest[0], json!({ "worker": "near", "lacks": ["has gpu=t4, not a100"] }));
    assert_eq!(nearest[1]["worker"], "far");
    let said = site.said(&["why", &job]);
    assert!(said.contains("nearest worker near: has gpu=t4, not a100"), "{said}");
}

#[test]
fn a_job_that_is_cancelled_names_the_job_that_failed() {
    let mut site = Site::serve();
    site.work("w1", &[]);
    let lines = [
        json!({"name": "one", "command": ["sh", "-c", "exit 1"], "attempts": 1}),
        json!({"name": "two", "command": ["true"], "after": ["one"]}),
        json!({"command": ["true"], "after": ["two"]}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(site.path("jobs.jsonl"), lines.join("\n")).expect("it can be written");
    site.said(&["submit", "--file", &site.path("jobs.jsonl")]);
    site.wait("3", "state", "cancelled");
    let why = site.json(&["why", "2"]);
    assert_eq!(why["detail"], "cancelled because job 1 failed (exit code 1)");
    let expected = "cancelled because job 2 was cancelled, because job 1 failed (exit code 1)";
    assert_eq!(site.json(&["why", "3"])["detail"], expected);
    assert!(site.said(&["why", "3"]).contains(expected));
}

#[test]
fn a_lost_attempt_names_the_worker_that_was_lost() {
    let mut site = Site::serve();
    let lost = site.work("lost", &[]);
    let job = site.submit(&["--", "sleep", "120"]);
    site.wait(&job, "state", "running");
    site.kill_worker(lost);
    site.work("living", &[]);
    busy(&site, &["--priority", "9"]);
    let told = site.until("its attempt is lost", || {
        let job = site.job(&job);
        (job["losses"] == 1).then_some(job)
    });
    let error = told["error"].as_str().unwrap_or_default();
    assert!(error.contains("worker lost gave no sign of life"), "{told}");
}

#[test]
fn jobs_are_counted_by_reason() {
    let mut site = Site::serve();
    full(&mut site);
    site.said(&["set", "tenant", "paused", r#"{"active": false}"#]);
    site.said(&["submit", "--array", "3", "--tenant", "paused", "--", "true"]);
    site.said(&["submit", "--array", "2", "--tenant", "acme", "--", "true"]);
    let sample = |reason: &str, tenant: &str| {
        format!(
            "maitre_jobs_waiting_by_reason{{reason=\"{reason}\",tenant=\"{tenant}\",type=\"exec\"}}"
        )
    };
    let expected = [
        format!("{} 3", sample("tenant-paused", "paused")),
        format!("{} 2", sample("workers-full", "acme")),
    ];
    site.until("they are counted", || {
        let said = page(&site, "/metrics");
        expected.iter().all(|line| said.contains(line)).then_some(())
    });
}

/// What HTTP answers.
fn page(site: &Site, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(site.address()).expect("it listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", site.address());
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn two_schedulers_on_one_postgres_tell_the_same_reasons() {
    let database = database();
    let mut one = serve(&database);
    one.said(&["set", "tenant", "few", r#"{"jobs_max": 1}"#]);
    one.said(&["set", "tenant", "paused", r#"{"active": false}"#]);
    one.said(&["set", "tenant", "spent", r#"{"budget": 0}"#]);
    one.said(&["set", "pool", "closed", r#"{"paused": true}"#]);
    let mut two = serve(&database);
    one.work_named("w1", &["--exec", "--slots", "2"]);
    two.work_named("w2", &["--exec", "--slots", "1", "--pool", "gpu"]);
    two.work_named("w3", &["--exec", "--slots", "1", "--pool", "closed"]);
    let holder = busy(&one, &["--tenant", "few", "--resource", "repo", "--pool", "default"]);
    busy(&two, &["--pool", "gpu"]);
    let held = format!("repo is held by job {holder}");
    let rows: Vec<(String, &str, &str)> = vec![
        (
            one.submit(&["--tenant", "few", "--", "true"]),
            "tenant-at-jobs-max",
            "1 job of at most 1",
        ),
        (two.submit(&["--tenant", "paused", "--", "true"]), "tenant-paused", "paused"),
        (two.submit(&["--tenant", "spent", "--", "true"]), "budget-spent", "spent"),
        (two.submit(&["--resource", "repo", "--", "true"]), "resource-held", &held),
        (one.submit(&["--pool", "closed", "--", "true"]), "pool-paused", "pool closed is paused"),
        (one.submit(&["--need", "gpu=a100", "--", "true"]), "no-worker-ever", "gpu=a100"),
        (one.submit(&["--pool", "gpu", "--", "true"]), "workers-full", ""),
    ];
    let wrong = || {
        let mut problems = Vec::new();
        for (site, who) in [(&one, "one"), (&two, "two")] {
            for (job, reason, words) in &rows {
                let why = site.json(&["why", job]);
                let says = why["detail"].as_str().unwrap_or_default().contains(words);
                if why["reason"] != *reason || !says {
                    problems.push(format!("{who}: job {job} is not {reason} ({words}): {why}"));
                }
            }
        }
        problems
    };
    let mut last = Vec::new();
    one.until("both know all", || {
        let problems = wrong();
        if problems != last {
            eprintln!("{}", problems.join("\n"));
            last.clone_from(&problems);
        }
        problems.is_empty().then_some(())
    });
    for _ in 0..TIMES {
        std::thread::sleep(BETWEEN);
        assert_eq!(wrong(), Vec::<String>::new(), "nothing changed");
    }
}
