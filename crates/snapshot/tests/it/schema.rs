//! The schema agrees with the parser.

use serde_json::{Value, json};

fn objects(schema: &Value) -> Vec<(&str, &Value)> {
    let definitions = schema["$defs"].as_object().expect("a schema has definitions");
    let objects = definitions.iter().filter(|(_, object)| object["properties"].is_object());
    objects.map(|(name, object)| (name.as_str(), object)).chain([("Snapshot", schema)]).collect()
}

#[test]
fn every_object_refuses_unknown_fields_and_every_field_is_described() {
    let schema = snapshot::schema();
    let objects = objects(&schema);
    assert_eq!(objects.len(), 25, "{:?}", objects.iter().map(|(name, _)| name).collect::<Vec<_>>());
    for (name, object) in objects {
        assert_eq!(object["additionalProperties"], json!(false), "{name}");
        assert!(object["description"].is_string(), "{name}");
        for (field, property) in object["properties"].as_object().expect("an object has fields") {
            assert!(property["description"].is_string(), "{name}.{field}");
        }
    }
}

#[test]
fn only_ids_and_names_are_required() {
    let schema = snapshot::schema();
    let required: Vec<(&str, &Value)> = objects(&schema)
        .into_iter()
        .filter(|(_, object)| !object["required"].is_null())
        .map(|(name, object)| (name, &object["required"]))
        .collect();
    let expected = [
        ("Attempt", json!(["job", "worker"])),
        ("Freed", json!(["worker"])),
        ("Job", json!(["id"])),
        ("JobType", json!(["name"])),
        ("Mark", json!(["at_ms", "served"])),
        ("Resource", json!(["name"])),
        ("Sampling", json!(["sample_size"])),
        ("Tenant", json!(["id"])),
        ("Worker", json!(["id"])),
    ];
    let expected: Vec<(&str, &Value)> =
        expected.iter().map(|(name, fields)| (*name, fields)).collect();
    assert_eq!(required, expected);
}

#[test]
fn the_limits_of_numbers_are_in_the_schema() {
    let schema = snapshot::schema();
    let job = &schema["$defs"]["Job"]["properties"];
    assert_eq!(job["priority"]["minimum"], json!(-1000));
    assert_eq!(job["priority"]["maximum"], json!(1000));
    assert_eq!(job["slots"]["minimum"], json!(1));
    assert_eq!(job["id"]["type"], json!(["string", "integer"]));
    assert_eq!(schema["properties"]["workers"]["maxItems"], json!(model::maxima::WORKERS_MAX));
    assert_eq!(schema["title"], json!("Snapshot"));
}

#[test]
fn the_presets_are_in_the_schema() {
    let schema = snapshot::schema();
    let presets = schema["$defs"]["Preset"]["enum"].as_array().expect("presets are listed");
    assert_eq!(presets.len(), model::Preset::ALL.len());
}
