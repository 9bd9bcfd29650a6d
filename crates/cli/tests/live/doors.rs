//! Settings, tokens, and what the outside sees of a scheduler.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::site::Site;

fn setting<'v>(config: &'v Value, key: &str) -> &'v Value {
    let all = config.as_array().expect("it is a list");
    all.iter().find(|entry| entry["key"] == key).expect("it is a setting")
}

#[test]
fn settings_say_who_set_them_and_what_is_wrong_is_refused_where_it_stands() {
    let site = Site::serve();
    std::fs::write(site.path("s.toml"), "lease = \"20s\"\nwebhook_secret = \"hush-hush\"\n")
        .unwrap();
    let file = site.path("s.toml");
    let config = ["config", "--json", "--config", &file, "--set", "jobs_max=7"];
    let output = site.command(&config).env("MAITRE_HEARTBEAT", "3s").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("hush-hush"), "{text}");
    let shown: Value = serde_json::from_str(&text).unwrap();
    let by =
        |key: &str| (setting(&shown, key)["value"].clone(), setting(&shown, key)["source"].clone());
    assert_eq!(by("lease"), (json!("20s"), json!(format!("{file}:1"))));
    assert_eq!(by("heartbeat"), (json!("3s"), json!("MAITRE_HEARTBEAT")));
    assert_eq!(by("jobs_max"), (json!("7"), json!("--set")));
    assert_eq!(by("retention"), (json!("7days"), json!("default")));
    assert_eq!(by("webhook_secret").0, "(hidden)");
    std::fs::write(site.path("s.toml"), "\njobs_maxx = 7\n").unwrap();
    let told = site.refused(&["config", "--config", &file]);
    let expected = format!(
        "error: {file}:2: `jobs_maxx` is not a setting\n\nhint: did you mean `jobs_max`?\n"
    );
    assert_eq!(told, expected);
    let told = site.refused(&["config", "--set", "lease=1s"]);
    assert!(told.contains("--set: `lease` is 1000 ms, less than three heartbeats"), "{told}");
}

#[test]
fn from_the_first_token_on_everybody_shows_one() {
    let mut site = Site::serve();
    let admin = site.said(&["token", "new", "--scope", "admin", "--name", "root"]);
    let admin = admin.trim().to_owned();
    let told = site.refused(&["jobs"]);
    assert!(told.contains("a token is needed") && told.contains("MAITRE_TOKEN"), "{told}");
    let empty = site.path("empty.token");
    std::fs::write(&empty, "\n").unwrap();
    let told = site.refused(&["jobs", "--token-file", &empty]);
    assert!(told.contains(&format!("the token file `{empty}` is empty")), "{told}");
    let file = site.path("admin.token");
    std::fs::write(&file, &admin).unwrap();
    let with = |words: &[&str], site: &Site| site.said(&[words, &["--token-file", &file]].concat());
    let work = with(&["token", "new", "--scope", "work"], &site);
    std::fs::write(site.path("work.token"), work).unwrap();
    let new = ["token", "new", "--name", "acme", "--tenant", "acme"];
    let acme = with(&[&new[..], &["--scope", "submit", "--scope", "read"]].concat(), &site);
    site.work("w1", &["--token-file", &site.path("work.token")]);
    let mut run = site.command(&["run", "--", "echo", "hello"]);
    let run = run.env("MAITRE_TOKEN", acme.trim()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "hello\n", "{run:?}");
    let jobs: Value = serde_json::from_str(&with(&["jobs", "--json"], &site)).unwrap();
    assert_eq!(jobs["jobs"][0]["tenant"], "acme", "{jobs}");
    let list = with(&["token", "list"], &site);
    assert!(list.contains("root") && list.contains("acme") && !list.contains(&admin), "{list}");
    with(&["token", "revoke", "acme"], &site);
    let refused = site.command(&["jobs"]).env("MAITRE_TOKEN", acme.trim()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_first_token_opens_an_address_that_others_can_reach() {
    let site = Site::serve();
    let data = site.path("elsewhere");
    let serve = ["serve", "--listen", "0.0.0.0:0", "--data-dir", &data];
    let told = site.refused(&serve);
    assert!(told.contains("without TLS") && told.contains("tls_cert"), "{told}");
    let plain = [&serve[..], &["--set", "insecure_plaintext=true"]].concat();
    let told = site.refused(&plain);
    assert!(told.contains("there are no tokens") && told.contains("maitre token new"), "{told}");
    let told = site.refused(&["token", "new", "--scope", "read", "--data-dir", &data]);
    assert!(told.contains("--scope admin"), "{told}");
    let secret = site.said(&["token", "new", "--scope", "admin", "--data-dir", &data]);
    assert!(secret.starts_with("maitre_"), "{secret}");
    let mut child = site.command(&plain).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    // The data of a scheduler that runs is not touched.
    let told = site.refused(&["token", "list", "--data-dir", &data]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("listens on 0.0.0.0:"), "{line}");
    assert!(told.contains("another scheduler uses the data"), "{told}");
    let list: Value =
        serde_json::from_str(&site.said(&["token", "list", "--json", "--data-dir", &data]))
            .unwrap();
    assert_eq!(list[0]["scopes"], json!(["admin"]));
}

#[test]
fn no_token_and_no_secret_is_ever_logged() {
    let site = Site::serve();
    let (data, secret) = (site.path("logged"), "0123456789abcdef0123456789abcdef");
    let token = site.said(&["token", "new", "--scope", "admin", "--data-dir", &data]);
    let token = token.trim();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
    let mut child = site
        .command(&serve)
        .env("MAITRE_LOG", "trace")
        .env("MAITRE_WEBHOOKS", "true")
        .env("MAITRE_WEBHOOK_SECRET", secret)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut log = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it does not listen:\n{log}");
        log += &line;
        if let Some((_, address)) = line.split_once("maitre listens on ") {
            break address.trim().to_owned();
        }
    };
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = stderr.read_to_string(&mut rest);
        rest
    });
    let wrong = "maitre_ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
    for shown in [token, wrong] {
        for words in [
            &["submit", "--webhook", "https://a.example", "--", "true"][..],
            &["token", "list"],
            &["jobs"],
        ] {
            let mut command = site.command(words);
            let output = command
                .env("MAITRE_SERVER", &address)
                .env("MAITRE_TOKEN", shown)
                .env("MAITRE_LOG", "trace")
                .output()
                .unwrap();
            log += &String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), shown == token, "{output:?}");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    log += &rest.join().unwrap();
    for hidden in [token, wrong, secret] {
        let digits = hidden.trim_start_matches("maitre_");
        assert!(!log.contains(digits), "a secret is in the log:\n{log}");
    }
}

#[test]
fn a_log_for_machines_has_an_object_a_line() {
    let site = Site::serve();
    let mut child = site
        .command(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &site.path("logged")])
        .envs([("MAITRE_LOG", "debug"), ("MAITRE_LOG_FORMAT", "json")])
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.take(100).find(|line| line.starts_with('{')).expect("it logs something");
    child.kill().unwrap();
    child.wait().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
}

pub(crate) fn get(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path}"), "")
}

/// Sends a body of JSON; the whole answer.
pub(crate) fn post(address: &str, path: &str, body: &str) -> String {
    ask(address, &format!("POST {path}"), body)
}

fn ask(address: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

/// How many requests watch, wait or follow.
pub(crate) fn n_watching(site: &Site) -> usize {
    let metrics = get(site.address(), "/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix("maitre_watches "));
    line.expect("it is measured").parse().expect("it is a number")
}

#[test]
fn health_and_metrics_are_on_the_same_port_and_a_signal_stops_it() {
    let mut site =
        Site::start(&["dev", "--slots", "2", "--name", "w1", "--set", "shutdown_grace=1h"]);
    assert!(get(site.address(), "/healthz").ends_with("ok\n"));
    assert!(get(site.address(), "/readyz").starts_with("HTTP/1.1 200"));
    site.said(&["run", "--", "true"]);
    let metrics = get(site.address(), "/metrics");
    assert!(metrics.contains("maitre_jobs_succeeded_total 1\n"), "{metrics}");
    assert!(metrics.contains("maitre_commit_seconds_count "), "{metrics}");
    let id = site.submit(&["--need", "gpu=a100", "--", "true"]);
    let wanted = site.json(&["workers", "--wanted"]);
    assert_eq!(wanted[0]["needs"], json!({ "gpu": ["a100"] }));
    // Somebody who watches for ever does not keep it from stopping.
    let mut watching = site.command(&["watch", &id]).spawn().unwrap();
    site.until("it is watched", || (n_watching(&site) == 1).then_some(()));
    site.terminate_scheduler();
    let _ = watching.kill();
    let _ = watching.wait();
    site.launch(&["serve"]);
    assert_eq!(site.job(&id)["state"], "queued");
}
