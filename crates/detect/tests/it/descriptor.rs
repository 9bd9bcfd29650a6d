//! Valid descriptors, and the settings that they allow.

use detect::{Descriptor, Field, Kind, VisibleIf};
use serde_json::{Map, Value, json};

fn descriptor() -> Descriptor {
    Descriptor::new("Vacuum", "frees space")
        .admin(Field::new("threshold", Kind::Number).default(0.3).range(0.0, 1.0))
        .admin(Field::new("mode", Kind::Choice).choices(&["fast", "deep"]).default("fast"))
        .admin(Field {
            visible_if: Some(VisibleIf { field: "mode".to_owned(), is: json!("deep") }),
            ..Field::new("depth", Kind::Whole).default(2)
        })
        .worker(Field::new("pause", Kind::Length).default("1s").range(0.0, 60.0))
        .policy("interval", "17m")
}

fn given(mut value: Value) -> Map<String, Value> {
    value.as_object_mut().map(std::mem::take).unwrap_or_default()
}

fn refused(value: Value) -> String {
    descriptor().admin_values(&given(value)).unwrap_err().to_string()
}

#[test]
fn durations_round_trip() {
    assert_eq!(Descriptor::parse(&descriptor().to_text()), Ok(descriptor()));
}

#[test]
fn values_are_given_or_default_without_hidden_fields() {
    let values = |value| Value::Object(descriptor().admin_values(&given(value)).unwrap());
    assert_eq!(values(json!({})), json!({ "threshold": 0.3, "mode": "fast" }));
    // Command line arguments are parsed by the kind of their field.
    let words = json!({ "threshold": "0.5", "mode": "deep" });
    assert_eq!(values(words), json!({ "threshold": 0.5, "mode": "deep", "depth": 2 }));
}

#[test]
fn invalid_setting_names_its_field() {
    assert_eq!(
        refused(json!({ "treshold": 1 })),
        "`admin.treshold` is no field of this type; fields: threshold, mode, depth"
    );
    assert_eq!(
        refused(json!({ "threshold": 2 })),
        "`admin.threshold` is 2, which is not between 0 and 1"
    );
    assert_eq!(
        refused(json!({ "mode": "slow" })),
        "`admin.mode` is \"slow\", which is not one of fast, deep"
    );
    assert_eq!(
        refused(json!({ "depth": 1.5 })),
        "`admin.depth` is 1.5, which is not a whole number"
    );
    let long = descriptor().worker_values(&given(json!({ "pause": "2m" }))).unwrap_err();
    assert_eq!(long.to_string(), "`worker.pause` is \"2m\", which is not between 0 and 60 seconds");
}

#[test]
fn a_descriptor_that_contradicts_itself_is_refused() {
    let wrong = |text: &str| Descriptor::parse(text).unwrap_err().to_string();
    let default = r#"{"admin": [{"name": "a", "kind": "whole", "default": "x"}]}"#;
    assert_eq!(wrong(default), "`descriptor.admin.a` is \"x\", which is not a whole number");
    let twice = r#"{"worker": [{"name": "a", "kind": "flag"}, {"name": "a", "kind": "text"}]}"#;
    assert_eq!(wrong(twice), "`descriptor.worker.a` is there twice");
    let policy = r#"{"policy": {"interval": "soon"}}"#;
    assert!(wrong(policy).starts_with("`descriptor.policy.interval` is `soon`"));
    let unknown = wrong(r#"{"admin": [{"name": "a", "kind": "colour"}]}"#);
    assert!(unknown.starts_with("`descriptor.admin[0].kind` unknown variant"), "{unknown}");
}
