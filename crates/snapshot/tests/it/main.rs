//! The snapshot format from outside: errors, defaults and round trips.

mod refused;
mod defaults;
mod decision;
mod policy;
mod schema;
mod worlds;
mod mutations;
mod round_trip;
mod fuzz;
mod maxima;

use model::Snapshot;
use snapshot::SnapshotError;

/// The snapshot of a valid `text`.
fn parsed(text: &str) -> Snapshot {
    match snapshot::parse(text) {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{}\nin {text}", said(&error)),
    }
}

/// The error of an invalid `text`: the message, and the hint if there is one.
fn refusal(text: &str) -> String {
    match snapshot::parse(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => said(&error),
    }
}

fn said(error: &SnapshotError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

/// The shipped example with this name.
fn example(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const EXAMPLES: [&str; 4] = ["kitchen", "quota", "build-farm", "agents"];
