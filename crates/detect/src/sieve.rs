//! What is taken of the proposals of one run.

use std::collections::{BTreeMap, BTreeSet};

use model::{Name, Timestamp};

/// Examples of what was wrong that are kept for people.
const EXAMPLES_MAX: usize = 5;

/// One unit of work that a worker found, as far as it matters whether it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal<T> {
    /// Its type.
    pub kind: Name,
    /// What it is about: a type has one unfinished job of a key.
    pub key: String,
    /// Higher goes first.
    pub priority: i32,
    /// Not to start earlier.
    pub not_before: Option<Timestamp>,
    /// Not worth starting later.
    pub expires: Option<Timestamp>,
    /// All the rest.
    pub job: T,
}

/// Why a proposal is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// It cannot be read, or breaks a limit.
    Malformed,
    /// It is of another type than was asked for.
    Foreign,
    /// Its time is over.
    Expired,
    /// It may not start before the group's time is out: the next detection finds it again.
    TooEarly,
    /// The same was proposed before, in this run.
    Repeated,
    /// There are as many as one detection may bring.
    TooMany,
    /// An unfinished job does the same already.
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

/// Takes what may be taken, and counts the rest by reason.
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
    /// For a run of this type whose jobs may start until a moment.
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

    /// What is taken of a page: the most urgent first, otherwise as it was proposed. What could
    /// not be read comes as what was wrong with it.
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

    /// Counts one that is not taken.
    pub fn refuse(&mut self, reason: Refused, what: &str) {
        let n = self.refused.entry(reason).or_default();
        *n = n.saturating_add(1);
        if reason == Refused::Malformed && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what.to_owned());
        }
    }

    /// How many came.
    pub const fn n_proposed(&self) -> u32 {
        self.n_proposed
    }

    /// How many were refused, by reason.
    pub fn refused(&self) -> BTreeMap<String, u32> {
        self.refused.iter().map(|(reason, n)| (reason.name().to_owned(), *n)).collect()
    }

    /// How many were not.
    pub fn n_taken(&self) -> u32 {
        let n_refused = self.refused.values().fold(0_u32, |sum, n| sum.saturating_add(*n));
        self.n_proposed.saturating_sub(n_refused)
    }

    /// Some of what was wrong with those that could not be read.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }
}
