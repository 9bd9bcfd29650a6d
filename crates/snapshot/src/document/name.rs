//! Ids and names: not empty, not too long, and without control characters.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use model::maxima::{NAME_BYTES_MAX, VALUES_MAX};
use model::{Ask, JobId, Name, TenantId, WorkerId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::error::shortened;

/// The name for any free resource of the tenant.
pub(crate) const ANY: &str = "*";

/// An id, written as a string or as a whole number: 7 and "7" are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id<T>(pub(crate) T);

/// A name, written as a string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label(pub(crate) Name);

/// Any number of names, written as one string or as a list. Sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<Name>);

/// The parts of an id.
pub(crate) trait Spelled {
    fn text(text: &str) -> Self;
    fn number(number: u64) -> Self;
}

macro_rules! spelled {
    ($($id:ident)*) => {$(
        impl Spelled for $id {
            fn text(text: &str) -> Self {
                Self::new(text)
            }

            fn number(number: u64) -> Self {
                Self::number(number)
            }
        }

        impl From<Id<$id>> for $id {
            fn from(id: Id<$id>) -> Self {
                id.0
            }
        }
    )*};
}

spelled!(JobId WorkerId TenantId);

impl From<Label> for Name {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl From<Label> for Ask {
    fn from(Label(name): Label) -> Self {
        if name == Name::new(ANY) { Self::Any } else { Self::Named(name) }
    }
}

impl From<&Ask> for Label {
    fn from(ask: &Ask) -> Self {
        match ask {
            Ask::Named(name) => Self(name.clone()),
            Ask::Any => Self(Name::new(ANY)),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn checked<E: Error>(text: &str) -> Result<&str, E> {
    if text.is_empty() {
        return Err(E::custom(format!("is empty, not a name of 1 to {NAME_BYTES_MAX} bytes")));
    }
    if text.len() > NAME_BYTES_MAX {
        let n_bytes = text.len();
        return Err(E::custom(format!("has {n_bytes} bytes, more than {NAME_BYTES_MAX}")));
    }
    if text.contains(char::is_control) {
        let shown = shortened(text);
        return Err(E::custom(format!("is {shown:?}, but a name has no control characters")));
    }
    Ok(text)
}

impl<'de, T: Spelled> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor(PhantomData)).map(Self)
    }
}

struct IdVisitor<T>(PhantomData<T>);

impl<T: Spelled> Visitor<'_> for IdVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id: a string, or a whole number from 0")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        checked(text).map(T::text)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelVisitor)
    }
}

struct LabelVisitor;

impl Visitor<'_> for LabelVisitor {
    type Value = Label;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Label, E> {
        checked(text).map(|text| Label(Name::new(text)))
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Names, E> {
        checked(text).map(|text| Names(vec![Name::new(text)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Names, A::Error> {
        let mut names: Vec<Name> = Vec::new();
        while let Some(Label(name)) = entries.next_element()? {
            if names.len() == VALUES_MAX {
                return Err(A::Error::custom(format!("has more than {VALUES_MAX} entries")));
            }
            names.push(name);
        }
        Ok(Names(sorted(names)))
    }
}

/// The same names in order, each once.
pub(crate) fn sorted(mut names: Vec<Name>) -> Vec<Name> {
    names.sort_unstable();
    names.dedup();
    names
}

impl<T: fmt::Display> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

impl<T> JsonSchema for Id<T> {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "minLength": 1,
            "maxLength": NAME_BYTES_MAX,
            "minimum": 0,
        })
    }
}

impl JsonSchema for Label {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX })
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Label>();
        json_schema!({
            "anyOf": [name, { "type": "array", "items": name, "maxItems": VALUES_MAX }],
        })
    }
}
