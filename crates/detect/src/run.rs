//! Records of ended runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A worker completed the detection, and all jobs ended in time.
    Succeeded,
    /// No worker completed the detection.
    Failed,
    /// The time ran out before all jobs ended.
    OutOfTime,
}

/// One detection, and the results of its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub run: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The result.
    pub status: Status,
    /// When it began.
    pub started_ms: i64,
    /// When its last job ended.
    pub ended_ms: i64,
    /// A user requested it.
    pub is_asked: bool,
    /// The last detector. Empty if there was none.
    pub worker: String,
    /// The error message. Empty if there was none.
    pub error: String,
    /// Received proposals.
    pub n_proposed: u32,
    /// Jobs that were made of them.
    pub n_taken: u32,
    /// Rejected proposals, by reason.
    pub refused: BTreeMap<String, u32>,
    /// The endings of its jobs.
    pub ends: Ends,
}

impl Run {
    /// Whether the run succeeded.
    pub fn is_success(&self) -> bool {
        self.status == Status::Succeeded
    }
}

/// The endings of the jobs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Succeeded jobs.
    pub succeeded: u32,
    /// Failed jobs.
    pub failed: u32,
    /// Cancelled jobs.
    pub cancelled: u32,
}
