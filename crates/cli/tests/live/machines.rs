//! What commands say to machines.

use serde_json::{Value, json};

use crate::site::Site;

#[test]
fn a_run_tells_its_output_and_then_its_job() {
    let site = Site::dev();
    let script = "echo out; echo err >&2; exit 3";
    let output = site.maitre(&["run", "--json", "--attempts", "1", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("each is JSON")).collect();
    let (job, pieces) = lines.split_last().expect("there is a job");
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("failed"), &json!(3)));
    let text = |stream: &str| -> String {
        let own = pieces.iter().filter(|piece| piece["stream"] == stream);
        own.map(|piece| piece["text"].as_str().expect("it is text")).collect()
    };
    assert_eq!((text("out").as_str(), text("err").as_str()), ("out\n", "err\n"));
    assert_eq!(output.stderr, b"");
}

#[test]
fn what_is_set_is_told_as_it_is_kept() {
    let site = Site::serve();
    let set = site.json(&["set", "tenant", "acme", r#"{"weight": 2}"#]);
    assert_eq!(set, json!({ "kind": "tenant", "name": "acme", "document": { "weight": 2 } }));
    assert_eq!(site.json(&["settings"]), json!([set]));
    assert_eq!(site.json(&["set", "tenant", "acme", "-"]), Value::Null);
    let budget = site.json(&["set", "budget", r#"{"limit": 9}"#]);
    assert_eq!(budget["document"], json!({ "limit": 9 }));
    let told = site.refused(&["set", "--json", "tenant", "acme", r#"{"wait": 2}"#]);
    assert!(told.contains("wait"), "{told}");
}
