//! A written snapshot parses to the same snapshot.

use proptest::prelude::*;

use super::worlds::any_world;
use super::{EXAMPLES, example, parsed};

#[test]
fn examples_round_trip() {
    for name in EXAMPLES {
        let snapshot = parsed(&example(name));
        assert_eq!(parsed(&snapshot::write_text(&snapshot)), snapshot, "{name}");
        assert_eq!(parsed(&snapshot::write(&snapshot).to_string()), snapshot, "{name}");
    }
}

#[test]
fn unused_tenant_round_trips() {
    let snapshot = parsed(r#"{ "tenants": [{ "id": "alone" }] }"#);
    assert_eq!(parsed(&snapshot::write(&snapshot).to_string()), snapshot);
}

#[test]
fn default_values_are_not_written() {
    let snapshot = parsed(r#"{ "workers": [{ "id": 1, "slots": 1 }], "jobs": [{ "id": 2 }] }"#);
    let expected = serde_json::json!({
        "policy": "balanced",
        "tenants": [{ "id": "default" }],
        "workers": [{ "id": "1" }],
        "jobs": [{ "id": "2" }],
    });
    assert_eq!(snapshot::write(&snapshot), expected);
}

proptest! {
    #[test]
    fn every_snapshot_round_trips(world in any_world()) {
        let snapshot = parsed(&world.to_string());
        let text = snapshot::write_text(&snapshot);
        prop_assert_eq!(parsed(&text), snapshot.clone());
        prop_assert_eq!(parsed(&snapshot::write(&snapshot).to_string()), snapshot.clone());
        // A second write gives the same text.
        prop_assert_eq!(snapshot::write_text(&parsed(&text)), text);
    }

    #[test]
    fn the_order_of_lists_does_not_matter(world in any_world()) {
        let mut turned = world.clone();
        for list in ["tenants", "workers", "jobs", "attempts", "types", "resources", "evictions"] {
            if let Some(entries) = turned.get_mut(list).and_then(|list| list.as_array_mut()) {
                entries.reverse();
            }
        }
        prop_assert_eq!(parsed(&turned.to_string()), parsed(&world.to_string()));
    }
}
