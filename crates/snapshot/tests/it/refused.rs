//! What is refused, and in which words.

use super::{refusal, said};

/// Blocks of a text, what is said about it, and perhaps the hint.
const SNAPSHOTS: &str = include_str!("refused.txt");
/// The same for policies.
const POLICIES: &str = include_str!("refused_policies.txt");

#[test]
fn what_is_wrong_with_a_snapshot_is_said_in_one_line() {
    check(SNAPSHOTS, refusal);
}

#[test]
fn what_is_wrong_with_a_policy_is_said_in_one_line() {
    check(POLICIES, |text| match snapshot::policy(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => said(&error),
    });
}

fn check(cases: &str, refusal: impl Fn(&str) -> String) {
    let mut actual = String::new();
    for case in cases.split_terminator("\n\n") {
        let text = case.lines().next().expect("a case starts with a text");
        actual.push_str(&format!("{text}\n{}\n\n", refusal(text)));
    }
    let n_cases = cases.split_terminator("\n\n").count();
    assert!(n_cases > 20, "{n_cases} cases");
    if actual.trim_end() != cases.trim_end() {
        let both = cases.split("\n\n").zip(actual.split("\n\n"));
        let differing = both.filter(|(expected, actual)| expected.trim() != actual.trim());
        let shown: Vec<String> =
            differing.map(|(expected, actual)| format!("{expected}\nbut\n{actual}")).collect();
        panic!("{}\n\nall:\n{actual}", shown.join("\n\n"));
    }
}
