//! `maitre decide`.

use serde_json::Value;

use crate::{file, refused, said};

const EXAMPLES: [&str; 4] = [
    "examples/agents.json",
    "examples/build-farm.json",
    "examples/kitchen.json",
    "examples/quota.json",
];

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("maitre prints JSON")
}

#[test]
fn the_readme_shows_what_its_command_prints() {
    let printed = said(&["decide", "examples/kitchen.json", "--table"], "");
    let readme = file("README.md");
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(shown, Some(printed.as_str()));
}

#[test]
fn every_example_is_decided_and_found_sound() {
    for example in EXAMPLES {
        let decision = json(&said(&["decide", example, "--check"], ""));
        let n_held = decision["holds"].as_array().unwrap().len();
        let n_done = decision["actions"].as_array().unwrap().len();
        assert!(n_held + n_done > 0, "{example}");
    }
}

#[test]
fn every_preset_decides_on_every_example() {
    for example in EXAMPLES {
        for preset in model::Preset::ALL {
            said(&["decide", example, "--check", "--policy", preset.name()], "");
        }
    }
}

#[test]
fn a_snapshot_comes_from_standard_input_too() {
    let text = file("examples/quota.json");
    let from_file = said(&["decide", "examples/quota.json"], "");
    assert_eq!(said(&["decide"], &text), from_file);
    assert_eq!(said(&["decide", "-"], &text), from_file);
}

#[test]
fn a_decision_has_the_documented_shape() {
    let snapshot = r#"{ "policy": "aging", "now_ms": 60000,
        "workers": [{ "id": "w", "types": ["pdf"] }],
        "jobs": [{ "id": 7, "type": "pdf", "created_ms": 0 }, { "id": 8, "type": "gif" }] }"#;
    let decision = json(&said(&["decide"], snapshot));
    let place = serde_json::json!({ "place": { "job": "7", "worker": "w", "score": 1460,
        "points": [{ "rule": "age", "points": 960 }, { "rule": "rarity", "points": 500 }] } });
    assert_eq!(decision["actions"], serde_json::json!([place]));
    assert_eq!(decision["holds"][0]["job"], "8");
    assert_eq!(decision["holds"][0]["reason"], "no-worker-ever");
}

#[test]
fn a_policy_on_the_command_line_wins() {
    let policy = r#"{ "preset": "aging", "aging": { "age": 1 } }"#;
    let snapshot = r#"{ "policy": "cohort", "now_ms": 60000, "workers": [{ "id": "w" }],
        "jobs": [{ "id": 7, "created_ms": 0 }] }"#;
    let decision = json(&said(&["decide", "--policy", policy], snapshot));
    assert_eq!(decision["actions"][0]["place"]["score"], 560);
}

#[test]
fn nothing_to_decide_is_said_to_people() {
    assert_eq!(said(&["decide", "--table"], "{}"), "nothing to decide\n");
}

#[test]
fn wrong_input_is_named_by_field_value_and_limit() {
    let complaint = refused(&["decide"], r#"{ "jobs": [{ "id": 1, "priority": 1001 }] }"#);
    assert!(complaint.starts_with("error: "), "{complaint}");
    for part in ["jobs[0].priority", "1001", "-1000", "1000"] {
        assert!(complaint.contains(part), "{complaint}");
    }
}

#[test]
fn an_unknown_field_comes_with_a_hint() {
    let complaint = refused(&["decide"], r#"{ "jobs": [{ "id": 1, "prioritty": 1 }] }"#);
    assert!(complaint.contains("prioritty") && complaint.contains("hint: "), "{complaint}");
}

#[test]
fn an_unknown_policy_is_an_error_here() {
    let complaint = refused(&["decide", "--policy", "fastest"], "{}");
    assert!(complaint.contains("fastest") && complaint.contains("balanced"), "{complaint}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let complaint = refused(&["decide", "no/such.json"], "");
    assert!(complaint.contains("no/such.json"), "{complaint}");
}

#[test]
fn the_schema_describes_every_example_by_name() {
    let schema = json(&said(&["decide", "--schema"], ""));
    let known = schema["properties"].as_object().unwrap();
    for example in EXAMPLES {
        for field in json(&file(example)).as_object().unwrap().keys() {
            assert!(known.contains_key(field), "{example}: {field}");
        }
    }
}
