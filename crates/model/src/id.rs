//! Names, and a separate type of id for each kind of object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A name. Names of digits compare as numbers and come first, others by bytes.
///
/// Cheap to clone. A name that is a plain number needs no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(Spelling);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Spelling {
    /// Digits without leading zeros.
    Number(u64),
    Text(Arc<str>),
}

impl Name {
    /// The name that is spelled `text`.
    pub fn new(text: &str) -> Self {
        let is_plain = text == "0" || !text.starts_with('0');
        match text.parse() {
            Ok(number) if is_plain && is_digits(text) => Self(Spelling::Number(number)),
            _ => Self(Spelling::Text(Arc::from(text))),
        }
    }

    /// The name that is spelled as the decimal `number`.
    pub const fn number(number: u64) -> Self {
        Self(Spelling::Number(number))
    }

    /// Its number, if it is a plain one.
    pub const fn as_number(&self) -> Option<u64> {
        match self.0 {
            Spelling::Number(number) => Some(number),
            Spelling::Text(_) => None,
        }
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Spelling::Number(one), Spelling::Number(two)) => one.cmp(two),
            (Spelling::Text(one), Spelling::Text(two)) => compare(one, two),
            (Spelling::Number(one), Spelling::Text(two)) => compare(&one.to_string(), two),
            (Spelling::Text(one), Spelling::Number(two)) => compare(one, &two.to_string()),
        }
    }
}

fn compare(one: &str, two: &str) -> Ordering {
    match (as_digits(one), as_digits(two)) {
        (Some(a), Some(b)) => a.len().cmp(&b.len()).then(a.cmp(b)).then(one.cmp(two)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(two),
    }
}

/// The digits of `text` without leading zeros, if it is all digits.
fn as_digits(text: &str) -> Option<&str> {
    is_digits(text).then(|| text.trim_start_matches('0'))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Spelling::Number(number) => write!(f, "{number}"),
            Spelling::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $id:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $id(Name);

        impl $id {
            /// The id that is spelled `text`.
            pub fn new(text: &str) -> Self {
                Self(Name::new(text))
            }

            /// The id that is spelled as the decimal `number`.
            pub const fn number(number: u64) -> Self {
                Self(Name::number(number))
            }

            /// Its number, if it is a plain one.
            pub const fn as_number(&self) -> Option<u64> {
                self.0.as_number()
            }

            /// The id as a name.
            pub const fn name(&self) -> &Name {
                &self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// One submitted unit of work.
    JobId
);
id!(
    /// A connected process that runs jobs.
    WorkerId
);
id!(
    /// A user, team or customer that shares the fleet.
    TenantId
);

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut texts: Vec<&str>) -> Vec<String> {
        texts.sort_by_key(|text| Name::new(text));
        texts.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn digits_compare_as_numbers_and_come_before_words() {
        assert_eq!(sorted(vec!["b", "10", "9", "a10", "a9"]), ["9", "10", "a10", "a9", "b"]);
    }

    #[test]
    fn numbers_with_leading_zeros_or_beyond_64_bits_still_compare_as_numbers() {
        let huge = "100000000000000000000000";
        assert_eq!(sorted(vec![huge, "007", "8", "7", "-1"]), ["007", "7", "8", huge, "-1"]);
    }

    #[test]
    fn a_name_is_spelled_as_it_was_given() {
        for text in ["7", "007", "0", "00", "+7", "", "pdf", "18446744073709551616"] {
            assert_eq!(Name::new(text).to_string(), text);
        }
        assert_ne!(Name::new("7"), Name::new("007"));
    }
}
