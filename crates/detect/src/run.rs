//! What a run came to, as it is remembered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A worker looked to the end, and all jobs had their time.
    Succeeded,
    /// No worker looked to the end.
    Failed,
    /// The time was out before all jobs were done.
    OutOfTime,
}

/// One detection and what became of its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub run: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it went.
    pub status: Status,
    /// When it began.
    pub started_ms: i64,
    /// When its last job was done with.
    pub ended_ms: i64,
    /// Somebody asked for it.
    pub is_asked: bool,
    /// Who looked last; empty if nobody did.
    pub worker: String,
    /// What went wrong; empty if nothing did.
    pub error: String,
    /// Proposals that came.
    pub n_proposed: u32,
    /// Jobs that were made of them.
    pub n_taken: u32,
    /// Proposals that were refused, by reason.
    pub refused: BTreeMap<String, u32>,
    /// How its jobs ended.
    pub ends: Ends,
}

impl Run {
    /// Whether it counts among those that went well.
    pub fn is_success(&self) -> bool {
        self.status == Status::Succeeded
    }
}

/// How the jobs of a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Done.
    pub succeeded: u32,
    /// Not done.
    pub failed: u32,
    /// Called off.
    pub cancelled: u32,
}
