//! Values of settings, as people write them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::Millis;
use serde::Deserialize;
use server::Secret;

use crate::place::Place;

/// Something that a setting can say, the same in a file, in the environment and in a flag.
pub(super) trait Value: Sized {
    /// The value, or the rest of a sentence that starts with the text.
    fn read(text: &str) -> Result<Self, String>;
    /// As it is read; empty where nothing is set.
    fn show(&self) -> String;
}

/// A length of time such as `2s`, `500ms` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Duration);

impl Length {
    pub(crate) fn millis(self) -> Millis {
        Millis(i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX))
    }
}

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(Self).map_err(|error| {
            format!("`{text}` is not a length of time such as `2s` or `1h 30m`: {error}")
        })
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Value for Millis {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.parse::<Length>()?.millis())
    }

    fn show(&self) -> String {
        humantime::format_duration(Duration::from_millis(self.0.unsigned_abs())).to_string()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Value for $number {
            fn read(text: &str) -> Result<Self, String> {
                let digits = text.replace('_', "");
                let max = Self::MAX;
                digits.parse().map_err(|_| format!("`{text}` is not a number from 0 to {max}"))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

numbers!(u32, u64, usize);

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("`{text}` is neither `true` nor `false`"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        let not = |_| format!("`{text}` is not an address and a port such as `{}`", super::ADDRESS);
        text.parse().map_err(not)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Without what is secret in it.
impl Value for Place {
    fn read(text: &str) -> Result<Self, String> {
        let like = "this is not like `postgres://user@host/database`";
        Self::named(text).map_err(|_| like.to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("`` is no path".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Value> Value for Option<T> {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }

    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

impl Value for Secret {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Self::new(text.to_owned()))
    }

    fn show(&self) -> String {
        "(hidden)".to_owned()
    }
}
