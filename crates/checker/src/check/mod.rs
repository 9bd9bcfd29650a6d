//! The rules of a history, for any faults.

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

/// The rules that apply to a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All rules: every answer to a client must be true.
    Everything,
    /// The disk lost synced data, so only the store must be consistent.
    StoreAlone,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The details.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// All violations of a history. Empty if there are none.
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

/// A history with indexes.
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

/// The violations so far.
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: &'static str, what: String) {
        self.0.push(Violation { rule, what });
    }
}
