//! What operators look at: the load, the types, when a job may start; and the copy they keep.

use serde_json::{Value, json};

use crate::site::Site;

#[test]
fn the_load_is_shown_once_into_a_pipe() {
    let site = Site::dev();
    site.said(&["set", "tenant", "b", r#"{"weight": 3}"#]);
    site.submit(&["--tenant", "a", "--wait", "--", "true"]);
    for _ in 0..2 {
        let id = site.submit(&["--tenant", "a", "--", "sleep", "60"]);
        site.wait(&id, "state", "running");
    }
    site.said(&["submit", "--array", "3", "--tenant", "b", "--", "true"]);
    site.submit(&["--tenant", "b", "--need", "gpu=a100", "--", "true"]);
    let load = site.json(&["top"]);
    assert_eq!((&load["queued"], &load["running"]), (&json!(4), &json!(2)));
    assert_eq!(
        load["pools"][0],
        json!({ "pool": "default", "workers": 1, "slots": 2, "slots_used": 2 })
    );
    let tenant =
        |at: usize| (&load["tenants"][at]["share_pct"], &load["tenants"][at]["target_pct"]);
    assert_eq!(tenant(0), (&json!(100.0), &json!(25.0)));
    assert_eq!(tenant(1), (&json!(0.0), &json!(75.0)));
    assert_eq!(load["waits"]["n"], 1);
    let slowest = |at: usize| {
        let one = &load["slowest"][at];
        (one["id"].as_u64(), one["reason"].as_str(), one["alike"].as_u64())
    };
    assert_eq!(slowest(0), (Some(4), Some("workers-full"), Some(2)));
    assert_eq!(slowest(1), (Some(7), Some("no-worker-ever"), Some(0)));
    let said = site.said(&["top", "--once"]);
    for words in ["4 wait, 2 run", "p50 ", "2/2", "no-worker-ever", "25 %", "+2", "█"] {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn every_table_fits_the_columns_that_there_are() {
    let site = Site::dev();
    site.said(&["set", "type", "exec", r#"{"jobs_max": 9, "retry": {"attempts_max": 5}}"#]);
    let id = site.submit(&["--wait", "--", "sh", "-c", "echo a very long line of output; exit 0"]);
    site.submit(&["--tenant", "somebody-with-a-long-name", "--need", "gpu=a100", "--", "true"]);
    let commands: [&[&str]; 8] = [
        &["jobs"],
        &["job", &id],
        &["workers"],
        &["tenants"],
        &["types"],
        &["settings"],
        &["top", "--once"],
        &["poison"],
    ];
    for command in commands {
        let output = site.command(command).env("COLUMNS", "72").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let widest = said.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(
            output.status.success() && widest <= 72,
            "{command:?} has {widest} columns:\n{said}"
        );
    }
}

#[test]
fn types_say_who_takes_them_and_what_they_took() {
    let site = Site::dev();
    site.submit(&["--wait", "--", "true"]);
    site.submit(&["--type", "train", "--payload", "x"]);
    site.said(&["set", "type", "train", r#"{"jobs_max": 2}"#]);
    let types = site.json(&["types"]);
    let of = |at: usize| {
        (types[at]["type"].as_str().unwrap(), &types[at]["queued"], &types[at]["workers"])
    };
    assert_eq!(of(0), ("exec", &json!(0), &json!(1)));
    assert_eq!(of(1), ("train", &json!(1), &json!(0)));
    assert_eq!(
        (&types[0]["samples"], &types[1]["document"]),
        (&json!(1), &json!({ "jobs_max": 2 }))
    );
    assert!(types[0]["duration_ms"].is_u64(), "{types}");
}

#[test]
fn a_waiting_job_says_when_it_may_start() {
    let site = Site::dev();
    site.said(&["submit", "--array", "4", "--wait", "--", "sleep", "0.2"]);
    site.said(&["submit", "--array", "6", "--", "sleep", "60"]);
    let id = site.submit(&["--", "true"]);
    let told = site.json(&["why", &id]);
    assert_eq!(told["reason"], "workers-full", "{told}");
    assert!(told["starts_in_ms"].as_u64().is_some_and(|ms| ms > 0), "{told}");
    let said = site.said(&["why", &id]);
    assert!(said.contains("starts in about ") && said.contains("2 slots that fit"), "{said}");
}

fn metadata(path: &str) -> std::fs::Metadata {
    std::fs::metadata(path).expect("it is there")
}

#[test]
fn a_copy_is_made_while_the_scheduler_works_and_holds_all_that_it_acknowledged() {
    let mut site = Site::dev();
    let data = site.data().display().to_string();
    let first = site.submit(&["--wait", "--label", "kept=yes", "--", "echo", "hello"]);
    site.said(&["submit", "--array", "300", "--", "true"]);
    let copy = site.path("copy.db");
    let told = site.json(&["backup", &copy, "--data-dir", &data]);
    let n_jobs = told["finished"].as_u64().unwrap() + told["unfinished"].as_u64().unwrap();
    assert_eq!((n_jobs, &told["is_whole"]), (301, &json!(true)));
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata(&copy).permissions());
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    let told = site.refused(&["backup", &copy, "--data-dir", &data]);
    assert!(told.contains("is there already, and was left as it is"), "{told}");
    let told = site.refused(&["backup", "other.db", "--data-dir", "nowhere"]);
    assert!(told.contains("there is no store at `nowhere/maitre.db`"), "{told}");
    let told = site.refused(&["backup", "other.db", "--data-dir", ":memory:"]);
    assert!(told.contains("hint: "), "{told}");
    // Everything after the copy is gone; everything before it is there, and goes on.
    site.submit(&["--wait", "--", "true"]);
    site.kill_scheduler();
    // What an operator is told to do.
    for log in ["maitre.db-wal", "maitre.db-shm"] {
        std::fs::remove_file(site.data().join(log)).unwrap();
    }
    std::fs::copy(&copy, site.data().join("maitre.db")).unwrap();
    site.launch(&["dev", "--slots", "2", "--name", "w1"]);
    assert_eq!(site.said(&["logs", &first]), "hello\n");
    site.until("all are done", || {
        let left = site.json(&["jobs", "--state", "blocked,queued,claimed,running"]);
        (left["jobs"] == json!([])).then_some(())
    });
    let told = site.maitre(&["job", "302"]);
    assert_eq!(told.status.code(), Some(2), "it came after the copy");
}

/// A page of the docs.
fn page(name: &str) -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    std::fs::read_to_string(std::path::Path::new(docs).join(name)).expect("the page exists")
}

#[test]
fn the_settings_of_the_docs_give_the_screen_of_the_docs() {
    let (site, page) = (Site::serve(), page("operating.md"));
    let between = |text: &str, end: &str| text.split_once(end).unwrap().0.to_owned();
    let (_, file) = page.split_once("```toml\n").unwrap();
    std::fs::write(site.path("maitre.toml"), between(file, "```")).unwrap();
    let words = ["config", "--changed", "--set", "lease=30s"];
    let (_, screen) = page.split_once(&format!("$ maitre {}\n", words.join(" "))).unwrap();
    assert_eq!(site.said(&words), between(screen, "```"));
}

/// The column titles that the commands reference shows for a command.
fn titles_in_docs(command: &str) -> Vec<String> {
    let page = page("reference/commands.md");
    let mut shown = page.lines().skip_while(|line| *line != format!("$ maitre {command}"));
    titles(shown.nth(1).unwrap_or_else(|| panic!("no screen of `{command}`")))
}

fn titles(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_screens_of_the_docs_have_the_titles_that_commands_have() {
    let site = Site::dev();
    site.submit(&["--attempts", "1", "--wait", "--", "true"]);
    site.submit(&["--need", "gpu=a100", "--", "true"]);
    site.said(&["schedule", "add", "nightly", "--cron", "0 3 * * *", "--", "true"]);
    let data = site.path("other");
    site.said(&["token", "new", "--scope", "admin", "--data-dir", &data]);
    let tokens = ["token", "list", "--data-dir", &data];
    let commands: [(&str, &[&str]); 8] = [
        ("jobs -n 4", &["jobs", "-n", "4"]),
        ("job 4", &["job", "1"]),
        ("workers", &["workers"]),
        ("workers --wanted", &["workers", "--wanted"]),
        ("types", &["types"]),
        ("tenants", &["tenants"]),
        ("schedule list", &["schedule", "list"]),
        ("token list", &tokens),
    ];
    for (command, words) in commands {
        let said = site.said(words);
        assert_eq!(titles_in_docs(command), titles(said.lines().next().unwrap()), "{command}");
    }
    let said = site.said(&["store", "check", "--data-dir", &site.data().display().to_string()]);
    assert!(said.ends_with(": 1 unfinished and 1 finished jobs; everything agrees\n"), "{said}");
}

#[test]
fn what_is_refused_comes_with_a_hint() {
    let site = Site::serve();
    let commands: [&[&str]; 4] =
        [&["job", "99"], &["why", "99"], &["drain", "nobody"], &["logs", "99"]];
    for command in commands {
        let told = site.refused(command);
        assert!(
            told.starts_with("error: there is no ") && told.contains("\n\nhint: `maitre "),
            "{told}"
        );
    }
    let mut command = site.command(&["jobs"]);
    let output = command.env("MAITRE_SERVER", "127.0.0.1:1").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("no scheduler answers at `127.0.0.1:1`") && told.contains("hint: "),
        "{told}"
    );
    let _: Value = site.json(&["jobs"]);
}

#[test]
fn what_cannot_be_asked_for_comes_with_a_hint() {
    let site = Site::start(&[
        "serve",
        "--set",
        "webhooks=true",
        "--set",
        "webhook_secret=0123456789abcdef0123456789abcdef",
    ]);
    site.said(&["quota", "b", "--max", "3"]);
    let job = site.submit(&["--", "true"]);
    let cases: [(&[&str], &str, &str); 6] = [
        (&["submit", "--priority", "2000", "--", "true"], "priority` is 2000", "higher is sooner"),
        (&["priority", "2000", &job], "priority` is 2000", "higher is sooner"),
        (
            &["submit", "--webhook", "http://10.1.2.3/x", "--", "true"],
            "which is private",
            "name a public address",
        ),
        (&["quota", "a", "--min", "5", "--max", "2"], "at least 5 slots", "change both"),
        (&["quota", "b", "--min", "4"], "at most 3", "change both"),
        (&["detect", "nope"], "type `nope`", "nor of any other type"),
    ];
    for (command, error, hint) in cases {
        let told = site.refused(command);
        let (said, hinted) = told.split_once("\n\nhint: ").unwrap_or_else(|| panic!("{told}"));
        assert!(said.contains(error) && hinted.contains(hint), "{told}");
    }
}

#[test]
fn eighty_columns_show_tokens_and_ends_of_jobs_whole() {
    let site = Site::dev();
    site.said(&["submit", "--attempts", "1", "--", "false"]);
    site.wait("1", "cause", "exhausted");
    let data = site.path("other");
    let new = ["token", "new", "--data-dir", &data, "--name", "somebody-with-a-long-name"];
    site.said(&[&new[..], &["--scope", "admin", "--lasts", "90days"]].concat());
    let token = site.json(&["token", "list", "--data-dir", &data])[0]["id"].clone();
    let shown = |words: &[&str]| {
        let output = site.command(words).env("COLUMNS", "80").output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        shown
    };
    let tokens = shown(&["token", "list", "--data-dir", &data]);
    for words in [token.as_str().unwrap(), "somebody-with-a-long-name", "ago", "in 89d 23h"] {
        assert!(tokens.contains(words), "{words}: {tokens}");
    }
    let jobs = shown(&["jobs"]);
    assert!(jobs.contains("(exhausted)") && jobs.contains("PRIORITY"), "{jobs}");
}
