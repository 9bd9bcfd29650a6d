//! The filter for the proposals of one run.

use std::collections::{BTreeMap, BTreeSet};

use model::{Name, Timestamp};

/// The limit of example errors for users.
const EXAMPLES_MAX: usize = 5;

/// One unit of work that a worker found, with the fields that the filter reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal<T> {
    /// Its type.
    pub kind: Name,
    /// Its dedupe key: a type has at most one unfinished job with a key.
    pub key: String,
    /// Higher goes first.
    pub priority: i32,
    /// The earliest start.
    pub not_before: Option<Timestamp>,
    /// The latest start.
    pub expires: Option<Timestamp>,
    /// The rest of the job.
    pub job: T,
}

/// The reason why a proposal is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// It is invalid, or exceeds a limit.
    Malformed,
    /// It has a different type than the run.
    Foreign,
    /// It has expired.
    Expired,
    /// It may not start before the end of the run. The next detection will find it again.
    TooEarly,
    /// This run has an earlier proposal with the same key.
    Repeated,
    /// The detection has reached its limit of proposals.
    TooMany,
    /// An unfinished job has the same key.
    Live,
}

impl Refused {
    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Foreign => "foreign",
            Self::Expired => "expired",
            Self::TooEarly => "too-early",
            Self::Repeated => "repeated",
            Self::TooMany => "too-many",
            Self::Live => "live",
        }
    }
}

/// Accepts proposals, and counts rejected ones by reason.
#[derive(Clone, Debug)]
pub struct Sieve {
    kind: Name,
    n_max: usize,
    until: Timestamp,
    keys: BTreeSet<String>,
    n_proposed: u32,
    refused: BTreeMap<Refused, u32>,
    examples: Vec<String>,
}

impl Sieve {
    /// A filter for a run of this type, whose jobs may start until a time.
    pub fn new(kind: Name, proposals_max: u32, until: Timestamp) -> Self {
        Self {
            kind,
            n_max: usize::try_from(proposals_max).unwrap_or(usize::MAX),
            until,
            keys: BTreeSet::new(),
            n_proposed: 0,
            refused: BTreeMap::new(),
            examples: Vec::new(),
        }
    }

    /// The accepted proposals of a page: the most urgent first, otherwise in their order. An entry
    /// that could not be read is an error message.
    pub fn sift<T>(
        &mut self,
        now: Timestamp,
        page: Vec<Result<Proposal<T>, String>>,
    ) -> Vec<Proposal<T>> {
        let mut taken = Vec::new();
        for proposal in page {
            self.n_proposed = self.n_proposed.saturating_add(1);
            match proposal {
                Err(problem) => self.refuse(Refused::Malformed, &problem),
                Ok(proposal) => {
                    if let Some(reason) = self.refusal(now, &proposal) {
                        self.refuse(reason, &proposal.key);
                    } else {
                        self.keys.insert(proposal.key.clone());
                        taken.push(proposal);
                    }
                }
            }
        }
        taken.sort_by_key(|proposal| std::cmp::Reverse(proposal.priority));
        taken
    }

    fn refusal<T>(&self, now: Timestamp, proposal: &Proposal<T>) -> Option<Refused> {
        if proposal.kind != self.kind {
            Some(Refused::Foreign)
        } else if proposal.expires.is_some_and(|at| at <= now) {
            Some(Refused::Expired)
        } else if proposal.not_before.is_some_and(|at| at >= self.until) {
            Some(Refused::TooEarly)
        } else if self.keys.contains(&proposal.key) {
            Some(Refused::Repeated)
        } else if self.keys.len() >= self.n_max {
            Some(Refused::TooMany)
        } else {
            None
        }
    }

    /// Counts a rejected proposal.
    pub fn refuse(&mut self, reason: Refused, what: &str) {
        let n = self.refused.entry(reason).or_default();
        *n = n.saturating_add(1);
        if reason == Refused::Malformed && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what.to_owned());
        }
    }

    /// The number of received proposals.
    pub const fn n_proposed(&self) -> u32 {
        self.n_proposed
    }

    /// The number of rejected proposals, by reason.
    pub fn refused(&self) -> BTreeMap<String, u32> {
        self.refused.iter().map(|(reason, n)| (reason.name().to_owned(), *n)).collect()
    }

    /// The number of accepted proposals.
    pub fn n_taken(&self) -> u32 {
        let n_refused = self.refused.values().fold(0_u32, |sum, n| sum.saturating_add(*n));
        self.n_proposed.saturating_sub(n_refused)
    }

    /// Some of the errors of unreadable proposals.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }
}
