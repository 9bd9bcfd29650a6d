//! The macro for all objects of the document.

use super::list::Object;
use super::name::{Id, Label};
use super::number::{AtLeastOne, Moment, Natural};

/// An object of the document: rejects unknown fields, and does not write absent ones.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
    }) => {
        #[derive(Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $(
                $(#[$field_meta])*
                #[serde(skip_serializing_if = "crate::document::record::Absent::is_absent")]
                pub(crate) $field: $type,
            )*
        }
    };
}

/// A field that may be absent.
pub(crate) trait Absent {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Id<T> {}
impl<T> Absent for Object<T> {}
impl Absent for Label {}
impl Absent for AtLeastOne {}
impl Absent for Moment {}
impl Absent for Natural {}
