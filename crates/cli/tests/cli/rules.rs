//! `maitre rules`.

use serde_json::Value;

use crate::{file, said};

#[test]
fn the_page_of_rules_is_up_to_date() {
    assert_eq!(said(&["rules", "--markdown"], ""), file("docs/rules.md"));
}

#[test]
fn every_rule_is_listed_once_for_people_and_machines() {
    let rules: Value = serde_json::from_str(&said(&["rules", "--json"], "")).unwrap();
    let names = rules.as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    let all: Vec<&str> =
        model::policy::Rule::ALL.into_iter().map(model::policy::Rule::name).collect();
    assert_eq!(names, all);
    let table = said(&["rules"], "");
    for name in names {
        assert!(table.lines().any(|line| line.trim_start().starts_with(name)), "{name}");
    }
}

#[test]
fn org_share_is_there_and_off() {
    let rules: Value = serde_json::from_str(&said(&["rules", "--json"], "")).unwrap();
    let found = rules.as_array().unwrap().iter().find(|rule| rule["rule"] == "org-share").unwrap();
    assert_eq!(found["presets"], serde_json::json!([]));
}
