//! What must hold of a history, whatever was killed.

mod acknowledged;
mod forgotten;
mod lives;
mod fit;
mod limits;
mod order;
mod room;
mod runs;
mod output;
mod calm;
mod waits;
mod timeline;
mod steps;

use std::collections::BTreeMap;
use std::fmt;

pub use calm::{Recovery, recovery};

use crate::{Attempt, History, Job};

/// How much of a history there is to be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything: what was told to anybody must be true.
    Everything,
    /// The disk lost what was synced, so only what is left must fit together.
    StoreAlone,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it breaks, by a short name.
    pub rule: &'static str,
    /// Who and what.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Everything that is wrong with a history; nothing, if it is as it must be.
pub fn check(history: &History, scope: Scope) -> Vec<Violation> {
    let facts = Facts::of(history);
    let mut found = Found(Vec::new());
    for damage in &history.damage {
        found.add("damage", damage.clone());
    }
    for seen in &history.seen {
        found.add("out-of-balance", seen.clone());
    }
    lives::check(&facts, &mut found);
    forgotten::check(&facts, &mut found);
    steps::check(&facts, &mut found);
    limits::check(&facts, &mut found);
    fit::check(&facts, &mut found);
    room::check(&facts, &mut found);
    if scope == Scope::Everything {
        acknowledged::check(&facts, &mut found);
        order::check(&facts, &mut found);
        runs::check(&facts, &mut found);
        limits::check_runs(&facts, &mut found);
        output::check(&facts, &mut found);
        calm::check(&facts, &mut found);
    }
    found.0
}

/// A history, with what is needed to look things up.
struct Facts<'a> {
    history: &'a History,
    jobs: BTreeMap<u64, &'a Job>,
    /// By number.
    attempts: BTreeMap<u64, Vec<&'a Attempt>>,
}

impl<'a> Facts<'a> {
    fn of(history: &'a History) -> Self {
        let mut attempts: BTreeMap<u64, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &history.attempts {
            attempts.entry(attempt.job).or_default().push(attempt);
        }
        for attempts in attempts.values_mut() {
            attempts.sort_by_key(|attempt| attempt.number);
        }
        let jobs = history.jobs.iter().map(|job| (job.id, job)).collect();
        Self { history, jobs, attempts }
    }

    fn attempts_of(&self, job: u64) -> &[&'a Attempt] {
        self.attempts.get(&job).map_or(&[], Vec::as_slice)
    }
}

/// What was found so far.
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: &'static str, what: String) {
        self.0.push(Violation { rule, what });
    }
}
