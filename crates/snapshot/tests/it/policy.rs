//! Policies by name and with changes.

use model::policy::{Preemption, Rule, Sampling, Seat, Turn};
use model::{Fixed, Millis, Policy, Preset};

use super::{parsed, said};

fn policy(text: &str) -> Policy {
    match snapshot::policy(text) {
        Ok(policy) => policy,
        Err(error) => panic!("{}\nin {text}", said(&error)),
    }
}

#[test]
fn every_preset_is_found_by_its_name() {
    for preset in Preset::ALL {
        let name = preset.name();
        let expected = preset.policy();
        assert_eq!(policy(name), expected);
        assert_eq!(policy(&format!(" \"{name}\"\n")), expected);
        assert_eq!(policy(&format!(r#"{{ "preset": "{name}" }}"#)), expected);
        assert_eq!(parsed(&format!(r#"{{ "policy": "{name}" }}"#)).policy, expected);
        let object = format!(r#"{{ "policy": {{ "preset": "{name}" }} }}"#);
        assert_eq!(parsed(&object).policy, expected);
    }
    assert_eq!(policy("{}"), Preset::Balanced.policy());
}

#[test]
fn the_documented_changes_are_made() {
    let text = r#"{ "preset": "priority-age", "priority_percentage": 90, "sampling": {
        "sample_size": 50, "max_attempts": 1,
        "weights": { "rank": -10, "hint": 5, "free": 1 } } }"#;
    let sampling = Some(Sampling::new(50));
    let expected = Policy {
        seat: Seat::FirstMatch(sampling),
        priority_percentage: 90,
        ..Preset::PriorityAge.policy()
    };
    assert_eq!(policy(text), expected);

    let text = r#"{ "preset": "cohort", "preemption": { "enabled": true, "delay_ms": 1000 },
                    "eviction_cooldown_ms": 0 }"#;
    let own = Preset::Cohort.policy();
    let preemption = Preemption { enabled: true, delay: Millis(1000), ..own.preemption };
    assert_eq!(policy(text), Policy { preemption, eviction_cooldown: Millis::ZERO, ..own });
}

#[test]
fn unchanged_settings_are_those_of_the_preset() {
    let text = r#"{ "preset": "balanced", "fair_slack_ms": 8,
                    "interactive_share": 0.25, "guard": false, "share": false,
                    "reserve": false, "reserve_wait_max_ms": 7 }"#;
    let mut expected = Preset::Balanced.policy();
    expected.fairness.slack = Millis(8);
    expected.fairness.interactive = Fixed::thousandths(250);
    expected.turn = Turn::FirstCome;
    expected.guard = false;
    expected.reserve = false;
    expected.reserve_wait_max = Millis(7);
    assert_eq!(policy(text), expected);
}

#[test]
fn settings_of_all_presets_are_taken_by_all_presets() {
    for preset in Preset::ALL {
        let text = format!(
            r#"{{ "preset": "{}", "proactive_fetch_to_capacity": true, "sampling": null,
                  "proactive_fetch_literal": true, "preemption": {{ "min_run_ms": 1,
                  "evictions_max": 0 }} }}"#,
            preset.name()
        );
        let policy = policy(&text);
        assert!(policy.proactive_fetch_to_capacity && policy.proactive_fetch_literal);
        assert_eq!((policy.preemption.min_run, policy.preemption.evictions_max), (Millis(1), 0));
    }
}

#[test]
fn guard_is_set_or_unset() {
    assert!(!policy(r#"{ "preset": "balanced", "guard": false }"#).guard);
    assert!(policy(r#"{ "preset": "balanced", "guard": true }"#).guard);
    assert!(policy(r#"{ "preset": "balanced", "guard": null }"#).guard, "null is as if left out");
    assert!(policy(r#"{ "preset": "balanced" }"#).guard);
}

#[test]
fn rules_are_weighed_switched_off_and_switched_on() {
    let text = r#"{ "preset": "simple", "rules": { "wait": 2.5, "light": 0, "org-share": 1 } }"#;
    let rules = policy(text).rules;
    assert_eq!(rules.get(&Rule::Wait), Some(&Fixed::thousandths(2500)));
    assert_eq!(rules.get(&Rule::Light), None);
    assert_eq!(rules.get(&Rule::OrgShare), Some(&Fixed::ONE));
    assert_eq!(rules.len(), Preset::Simple.rules().len());
}

#[test]
fn without_fairness_only_run_times_count() {
    let unfair = policy(r#"{ "fair": false }"#);
    assert_eq!(unfair, Preset::Balanced.policy().unfair());
    let spelt_out = r#"{ "share": false, "guard": false, "interactive_share": 0 }"#;
    let mut bounded = unfair.clone();
    bounded.fairness.is_bounded = true;
    assert_eq!(policy(spelt_out), bounded);
    assert_eq!(policy(r#"{ "fair": true }"#), Preset::Balanced.policy());
    let with_shares = policy(r#"{ "fair": false, "share": true }"#);
    assert_eq!(with_shares.turn, Preset::Balanced.policy().turn);
    let refused = said(&snapshot::policy(r#"{ "preset": "aging", "fair": false }"#).unwrap_err());
    assert!(refused.contains("fair") && refused.contains("only by `balanced`"), "{refused}");
}

#[test]
fn literal_turns_are_for_fair_share_alone() {
    assert!(policy(r#"{ "preset": "fair-share", "literal": true }"#).literal);
    for preset in Preset::ALL.into_iter().filter(|preset| *preset != Preset::FairShare) {
        let text = format!(r#"{{ "preset": "{}", "literal": true }}"#, preset.name());
        assert!(snapshot::policy(&text).is_err(), "{}", preset.name());
    }
}
