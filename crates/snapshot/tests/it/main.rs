//! The paper, from the outside: what is refused and how, what is assumed, what comes back.

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

/// The snapshot that `text` must be.
fn parsed(text: &str) -> Snapshot {
    match snapshot::parse(text) {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{}\nin {text}", said(&error)),
    }
}

/// What a person reads when `text` is refused: the message, and the hint if there is one.
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

/// The example of this name, as it is shipped.
fn example(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const EXAMPLES: [&str; 4] = ["kitchen", "quota", "build-farm", "agents"];
