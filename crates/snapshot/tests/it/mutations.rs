//! JSON trees with one unintended change.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// One unintended change to a JSON tree.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Drop(Index),
    Replace(Index, Value),
    Double(Index),
    Insert(Index, &'static str, Value),
}

pub(crate) fn any_mutation() -> impl Strategy<Value = Mutation> {
    let fields = vec!["id", "tenant", "slots", "", "holder", "a\u{0}b", "preset", "resource", "$"];
    prop_oneof![
        any::<Index>().prop_map(Mutation::Drop),
        (any::<Index>(), extreme()).prop_map(|(place, value)| Mutation::Replace(place, value)),
        any::<Index>().prop_map(Mutation::Double),
        (any::<Index>(), select(fields), extreme())
            .prop_map(|(place, field, value)| Mutation::Insert(place, field, value)),
    ]
}

fn extreme() -> impl Strategy<Value = Value> {
    let values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(1.5),
        json!(0.0001),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(-1e300),
        json!(5e-324),
        json!(""),
        json!("*"),
        json!("0"),
        json!("aging"),
        json!("a\u{0}b"),
        json!("x".repeat(300)),
        json!([]),
        json!({}),
        json!([[]]),
        json!({ "": {} }),
    ];
    select(values)
}

impl Mutation {
    pub(crate) fn apply(&self, world: &mut Value) {
        let n_places = n_places(world);
        match self {
            Self::Drop(place) => {
                at(world, place.index(n_places), &mut remove);
            }
            Self::Replace(place, value) => {
                at(world, place.index(n_places), &mut |parent, index| {
                    *child(parent, index) = value.clone();
                });
            }
            Self::Double(place) => {
                at(world, place.index(n_places), &mut |parent, index| {
                    let copy = child(parent, index).clone();
                    insert(parent, "copy", copy);
                });
            }
            Self::Insert(place, field, value) => {
                at(world, place.index(n_places), &mut |parent, index| {
                    insert(child(parent, index), field, value.clone());
                });
            }
        }
    }
}

/// The number of values below this one.
fn n_places(value: &Value) -> usize {
    match value {
        Value::Array(entries) => entries.iter().map(|entry| 1 + n_places(entry)).sum(),
        Value::Object(fields) => fields.values().map(|entry| 1 + n_places(entry)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Calls `change` with the parent of the value at `place`, counted depth first, and its index.
fn at(parent: &mut Value, mut place: usize, change: &mut dyn FnMut(&mut Value, usize)) {
    let mut index = 0;
    loop {
        if place == 0 {
            return change(parent, index);
        }
        let child = child(parent, index);
        let below = n_places(child);
        if place <= below {
            return at(child, place - 1, change);
        }
        place -= below + 1;
        index += 1;
    }
}

fn child(parent: &mut Value, index: usize) -> &mut Value {
    let child = match parent {
        Value::Array(entries) => entries.get_mut(index),
        Value::Object(fields) => fields.values_mut().nth(index),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    child.expect("places are counted before they are looked for")
}

fn remove(parent: &mut Value, index: usize) {
    if let Value::Array(entries) = parent {
        entries.remove(index);
    } else if let Value::Object(fields) = parent {
        let key = fields.keys().nth(index).cloned();
        key.and_then(|key| fields.remove(&key));
    }
}

fn insert(parent: &mut Value, field: &str, value: Value) {
    if let Value::Array(entries) = parent {
        entries.push(value);
    } else if let Value::Object(fields) = parent {
        fields.insert(field.to_owned(), value);
    }
}
