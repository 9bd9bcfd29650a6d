//! Scheduler states and decisions as JSON.
//!
//! [`parse`] turns a text into a checked [`Snapshot`], and [`write()`] turns one back. The written
//! text parses to the same snapshot. [`decision`] writes a decision. [`policy`] parses a policy
//! alone, and [`schema`] describes the format.
//!
//! **Invariant:** only this crate knows the names of JSON fields. A snapshot that breaks a rule of
//! [`model::Snapshot`] does not pass [`parse`].

mod error;
mod nearest;
mod json;
mod document;
mod policy;
mod read;
mod check;
mod resources;
mod write;
mod decision;

use model::{Decision, Policy, Preset, Snapshot, maxima};
use serde_json::Value;

use document::Document;
use error::Problem;

pub use error::SnapshotError;
pub use nearest::did_you_mean;

/// The checked snapshot of `text` with sorted lists, or the first error.
pub fn parse(text: &str) -> Result<Snapshot, SnapshotError> {
    if text.len() > maxima::SNAPSHOT_BYTES_MAX {
        let (n_bytes, bytes_max) = (text.len(), maxima::SNAPSHOT_BYTES_MAX);
        let problem = Problem::new(format!("has {n_bytes} bytes, more than {bytes_max}"));
        return Err(problem.into_error());
    }
    let document: Document = json::object(text).map_err(json::Failure::into_error)?;
    read::snapshot(document).map_err(Problem::into_error)
}

/// A snapshot as JSON. Default values are left out.
pub fn write(snapshot: &Snapshot) -> Value {
    serde_json::to_value(write::document(snapshot)).expect("a document has no failing parts")
}

/// The same as [`write()`], as text with fields in the order of the documentation.
pub fn write_text(snapshot: &Snapshot) -> String {
    pretty(&write::document(snapshot))
}

/// A decision as JSON.
pub fn decision(decision: &Decision) -> Value {
    serde_json::to_value(decision::document(decision)).expect("a decision has no failing parts")
}

/// The same as [`decision`], as text with fields in the order of the documentation.
pub fn decision_text(decision: &Decision) -> String {
    pretty(&decision::document(decision))
}

/// The policy of `text`: the name of a preset, or a JSON object with a preset's name and changes.
pub fn policy(text: &str) -> Result<Policy, SnapshotError> {
    policy::parse(text).map_err(|failure| failure.at("policy").into_error())
}

/// The policy of a server's setting, and a warning. An unknown name must not prevent the start of a
/// server, so it becomes `resource-aware`. All other problems are errors.
pub fn server_policy(text: &str) -> Result<(Policy, Option<String>), SnapshotError> {
    let is_name = !text.trim_start().starts_with(['{', '"']);
    match policy(text) {
        Ok(policy) => Ok((policy, None)),
        Err(error) if is_name => {
            let stand_in = Preset::ResourceAware;
            let warning = format!("{error}; `{}` is used instead", stand_in.name());
            Ok((stand_in.policy(), Some(warning)))
        }
        Err(error) => Err(error),
    }
}

/// The JSON Schema of a snapshot.
pub fn schema() -> Value {
    schemars::schema_for!(Document).to_value()
}

fn pretty(document: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a document has no failing parts");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_policy_replaces_an_unknown_name() {
        let (policy, warning) = server_policy("fastest").unwrap();
        assert_eq!(policy, Preset::ResourceAware.policy());
        assert!(warning.unwrap().contains("fastest"));
    }

    #[test]
    fn server_policy_accepts_a_known_name_without_a_warning() {
        assert_eq!(server_policy("aging").unwrap(), (Preset::Aging.policy(), None));
    }

    #[test]
    fn server_policy_rejects_a_wrong_setting() {
        assert!(server_policy(r#"{ "preset": "aging", "guard": { "rare_one_in": 4 } }"#).is_err());
    }
}
