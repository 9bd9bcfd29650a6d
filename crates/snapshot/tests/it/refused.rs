//! Rejected texts and their errors.

use super::{refusal, said};

/// Blocks of a text, its error, and an optional hint.
const SNAPSHOTS: &str = include_str!("refused.txt");
/// The same for policies.
const POLICIES: &str = include_str!("refused_policies.txt");

#[test]
fn snapshot_error_is_one_line() {
    check(SNAPSHOTS, refusal);
}

#[test]
fn policy_error_is_one_line() {
    check(POLICIES, |text| match snapshot::policy(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => said(&error),
    });
}

fn check(cases: &str, refusal: impl Fn(&str) -> String) {
    let mut actual: Vec<String> = Vec::new();
    for case in cases.split("\n\n") {
        let text = case.lines().next().expect("a case starts with a text");
        let said = format!("{text}\n{}", refusal(text));
        if said != case.trim_end() {
            actual.push(said);
        }
    }
    assert!(actual.is_empty(), "said now:\n\n{}", actual.join("\n\n"));
}
