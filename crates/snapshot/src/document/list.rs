//! Objects, lists and tables with a limit of entries, without other JSON forms.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A JSON object with the fields of `T`. Serde alone would also accept a list of values.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

/// A JSON list of at most `MAX` entries.
#[derive(Debug)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<T>);

/// A JSON object with free keys, at most `MAX`, each once.
#[derive(Debug)]
pub(crate) struct Table<K, V, const MAX: usize>(pub(crate) BTreeMap<K, V>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
    type Value = List<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list: Vec<T> = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format!("has more than {MAX} entries")));
            }
            list.push(entry);
        }
        Ok(List(list))
    }
}

impl<'de, K, V, const MAX: usize> Deserialize<'de> for Table<K, V, MAX>
where
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TableVisitor(PhantomData))
    }
}

struct TableVisitor<K, V, const MAX: usize>(PhantomData<(K, V)>);

impl<'de, K, V, const MAX: usize> Visitor<'de> for TableVisitor<K, V, MAX>
where
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    type Value = Table<K, V, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut table: BTreeMap<K, V> = BTreeMap::new();
        while let Some(key) = entries.next_key::<K>()? {
            // `null` means left out, as in every object.
            let Some(value) = entries.next_value::<Option<V>>()? else { continue };
            if table.contains_key(&key) {
                return Err(A::Error::custom(format!("has `{key}` twice")));
            }
            if table.len() == MAX {
                return Err(A::Error::custom(format!("has more than {MAX} entries")));
            }
            table.insert(key, value);
        }
        Ok(Table(table))
    }
}

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<K: Serialize, V: Serialize, const MAX: usize> Serialize for Table<K, V, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Object<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

impl<T: JsonSchema, const MAX: usize> JsonSchema for List<T, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("List_of_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let entry = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": entry, "maxItems": MAX })
    }
}

impl<K, V: JsonSchema, const MAX: usize> JsonSchema for Table<K, V, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Table_of_{}", V::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Option<V>>();
        json_schema!({ "type": "object", "additionalProperties": value, "maxProperties": MAX })
    }
}
