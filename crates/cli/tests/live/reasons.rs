//! Why jobs wait: for each reason a scheduler where it applies, with its code, numbers and names,
//! and that it does not change while nothing else does.

use std::collections::BTreeSet;
use std::time::Duration;

use model::Reason;
use proto::v1;
use serde_json::{Value, json};

use crate::neighbours::NEIGHBOURS;
use crate::puppet::hello;
use crate::rows::{ROWS, Row, busy, full};
use crate::shared::{database, serve};
use crate::site::{Site, until};
use crate::staged::{STAGED, puppet_as, unwell};

/// How often each job is asked about while nothing changes, and how long lies between.
const TIMES: usize = 5;
const BETWEEN: Duration = Duration::from_millis(600);

/// Reasons that end by themselves: each has a test of its own.
const PASSING: &[Reason] = &[Reason::Vetoed, Reason::Outranked, Reason::Claiming];

/// Lists of a check that name things.
const NAMES: &[&str] = &["jobs", "workers", "tenants"];

/// The names that a row expects in one of these lists.
fn named(row: &Row, names: &str) -> Value {
    match names {
        "jobs" => json!(row.jobs),
        "workers" => json!(row.workers),
        _ => json!(row.tenants),
    }
}

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
    } else if let Some(names) = NAMES.iter().find(|names| first[**names] != named(row, names)) {
        format!("{names} are not {}", named(row, names))
    } else if codes.first() != Some(&reason) || codes[1..] != *row.others {
        format!("has the checks {codes:?}, not {reason} and {:?}", row.others)
    } else {
        return None;
    };
    Some(format!("{name}: {problem}: {why}"))
}

/// Stages each row on a scheduler of its own, and asks again and again while nothing changes.
fn hold(rows: &[&Row]) {
    // A worker that the machine keeps waiting is not away.
    let serve = ["serve", "--set", "stop_grace=10m", "--heartbeat", "1s", "--lease", "20s"];
    let staged: Vec<(&Row, Site, String)> = rows
        .iter()
        .map(|row| {
            let mut site = Site::start(&serve);
            let job = (row.stage)(&mut site);
            (*row, site, job)
        })
        .collect();
    let problems = || -> Vec<String> {
        let all = staged.iter();
        all.filter_map(|(row, site, job)| wrong(row, &site.json(&["why", job]))).collect()
    };
    until(
        "each row has its reason",
        || problems().join("\n"),
        || problems().is_empty().then_some(()),
    );
    for _ in 0..TIMES {
        std::thread::sleep(BETWEEN);
        assert_eq!(problems(), Vec::<String>::new(), "nothing changed");
    }
}

#[test]
fn each_reason_is_told_with_its_numbers_and_stays_while_nothing_changes() {
    let rows: Vec<&Row> = ROWS.iter().chain(STAGED).collect();
    let told: BTreeSet<Reason> = rows.iter().map(|row| row.reason).collect();
    let all: BTreeSet<Reason> = Reason::ALL.into_iter().collect();
    let missing: Vec<Reason> = all.difference(&told).copied().collect();
    assert_eq!(missing, PASSING, "each has a row, or a test of its own");
    hold(&rows);
}

#[test]
fn of_two_reasons_that_hold_the_one_that_lasts_is_first_and_the_other_is_beside_it() {
    hold(&NEIGHBOURS.iter().collect::<Vec<&Row>>());
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
pub(crate) fn page(site: &Site, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(site.address()).expect("it listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", site.address());
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// A job that waits, its reason, words of the detail, and the numbers of the first check.
type Shared = (String, &'static str, String, Value);

/// The first thing wrong with the answer of a scheduler about a job.
fn wrong_of(site: &Site, (job, reason, words, numbers): &Shared) -> Option<String> {
    let why = site.json(&["why", job]);
    let says = why["detail"].as_str().unwrap_or_default().contains(words);
    let counted = &why["checks"][0]["numbers"];
    let counts = numbers.is_null() || counted == numbers;
    let is_right = why["reason"] == *reason && says && counts;
    (!is_right).then(|| format!("job {job} is not {reason} ({words}, {numbers}): {why}"))
}

/// Asks both schedulers again and again while nothing changes.
fn hold_on_both(sites: [&Site; 2], rows: &[Shared]) {
    let problems = || -> Vec<String> {
        let all = sites.iter().flat_map(|site| rows.iter().map(move |row| wrong_of(site, row)));
        all.flatten().collect()
    };
    until("both know all", || problems().join("\n"), || problems().is_empty().then_some(()));
    for _ in 0..TIMES {
        std::thread::sleep(BETWEEN);
        assert_eq!(problems(), Vec::<String>::new(), "nothing changed");
    }
}

#[test]
fn two_schedulers_on_one_postgres_tell_the_same_reasons() {
    let database = database();
    let mut one = serve(&database);
    one.said(&["set", "tenant", "few", r#"{"jobs_max": 1}"#]);
    one.said(&["set", "tenant", "paused", r#"{"active": false}"#]);
    one.said(&["set", "tenant", "spent", r#"{"budget": 0}"#]);
    one.said(&["set", "pool", "closed", r#"{"paused": true}"#]);
    one.said(&["quota", "capped", "default", "--max", "1"]);
    let mut two = serve(&database);
    one.work_named("w1", &["--exec", "--slots", "3"]);
    two.work_named("w2", &["--exec", "--slots", "1", "--pool", "gpu"]);
    two.work_named("w3", &["--exec", "--slots", "1", "--pool", "closed"]);
    let holder = busy(&one, &["--tenant", "few", "--resource", "repo", "--pool", "default"]);
    busy(&two, &["--tenant", "capped", "--pool", "default"]);
    busy(&two, &["--pool", "gpu"]);
    let capped = one.submit(&["--tenant", "capped", "--pool", "default", "--", "true"]);
    let budget = json!({"left": 0.0, "cost": 1.0});
    let quota = json!({"slots": 1.0, "max": 1.0, "asked": 1.0});
    let few = json!({"running": 1.0, "max": 1.0});
    let closed = json!({"workers": 1.0, "paused": 1.0});
    let rows: Vec<Shared> = [
        (one.submit(&["--tenant", "few", "--", "true"]), "tenant-at-jobs-max", "1 job of at", few),
        (two.submit(&["--tenant", "paused", "--", "true"]), "tenant-paused", "paused", Value::Null),
        (two.submit(&["--tenant", "spent", "--", "true"]), "budget-spent", "spent", budget),
        (capped, "tenant-at-max", "1 of 1 in pool default", quota),
        (two.submit(&["--resource", "repo", "--", "true"]), "resource-held", "", Value::Null),
        (one.submit(&["--pool", "closed", "--", "true"]), "pool-paused", "closed", closed),
        (one.submit(&["--need", "gpu=a100", "--", "true"]), "no-worker-ever", "a100", Value::Null),
        (one.submit(&["--pool", "gpu", "--", "true"]), "workers-full", "", Value::Null),
    ]
    .map(|(job, reason, words, numbers)| (job, reason, words.to_owned(), numbers))
    .into();
    hold_on_both([&one, &two], &rows);
    let why = two.json(&["why", &rows[4].0]);
    assert_eq!(why["detail"], format!("repo is held by job {holder}; it starts when it is free"));
}

/// Each pool has workers at one scheduler alone, or at both.
#[test]
fn two_schedulers_on_one_postgres_tell_the_same_of_workers_that_take_no_work() {
    let database = database();
    let (mut one, mut two) = (serve(&database), serve(&database));
    let of = |name: &str, pool: &str| v1::Hello { pool: pool.to_owned(), ..hello(name) };
    puppet_as(&mut two, of("unwell", "sick"), unwell(), "unhealthy");
    puppet_as(&mut one, of("leaves", "leaving"), v1::Heartbeat::default(), "serving");
    puppet_as(&mut one, of("unwell-1", "both"), unwell(), "unhealthy");
    puppet_as(&mut two, of("unwell-2", "both"), unwell(), "unhealthy");
    puppet_as(&mut one, of("unwell-3", "mixed"), unwell(), "unhealthy");
    puppet_as(&mut two, of("leaves-2", "mixed"), v1::Heartbeat::default(), "serving");
    one.said(&["drain", "leaves"]);
    two.said(&["drain", "leaves-2"]);
    let row = |pool: &str, reason, words: &str, workers: f64, draining: f64| {
        let job = one.submit(&["--pool", pool, "--", "true"]);
        (job, reason, words.to_owned(), json!({"workers": workers, "draining": draining}))
    };
    let rows: Vec<Shared> = vec![
        row("sick", "worker-unhealthy", "1 worker could run it", 1.0, 0.0),
        row("leaving", "no-worker-now", "1 worker could run it", 1.0, 1.0),
        row("both", "worker-unhealthy", "2 workers could run it", 2.0, 0.0),
        row("mixed", "no-worker-now", "2 workers could run it", 2.0, 1.0),
    ];
    hold_on_both([&one, &two], &rows);
}
