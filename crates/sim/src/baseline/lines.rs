//! Waiting jobs in lines: where the first of a line does not fit, none of it does.

use std::collections::{BTreeMap, BTreeSet};

use model::Timestamp;

use crate::workload::Job;

/// What jobs of a line have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) tenant: usize,
    pub(super) fit: usize,
    pub(super) slots: u32,
    pub(super) on_demand: bool,
}

impl Line {
    /// Of jobs that only differ by who could run them.
    pub(super) const fn of(job: &Job) -> Self {
        Self { tenant: 0, fit: job.fit, slots: job.slots, on_demand: false }
    }
}

/// A job in line; smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) key: i64,
    pub(super) arrival: Timestamp,
    pub(super) rank: u32,
    pub(super) job: usize,
}

/// The lines in which someone waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(BTreeMap<Line, BTreeSet<Place>>);

impl Lines {
    /// The job at `ix` waits, in a line, with a key.
    pub(super) fn add(&mut self, line: Line, key: i64, ix: usize, job: &Job) {
        let place = Place { key, arrival: job.arrival, rank: job.rank, job: ix };
        self.0.entry(line).or_default().insert(place);
    }

    /// The first of each line.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Line, Place)> {
        self.0.iter().filter_map(|(line, places)| Some((*line, *places.first()?)))
    }

    /// The first of each line of a tenant.
    pub(super) fn heads_of(&self, tenant: usize) -> impl Iterator<Item = (Line, Place)> {
        let line = |tenant| Line { tenant, fit: 0, slots: 0, on_demand: false };
        let lines = self.0.range(line(tenant)..line(tenant + 1));
        lines.filter_map(|(line, places)| Some((*line, *places.first()?)))
    }

    /// The first so many of each line of a fit, whoever's they are.
    pub(super) fn of_fit(&self, fit: usize, n: usize) -> impl Iterator<Item = (Line, Place)> {
        let lines = self.0.iter().filter(move |(line, _)| line.fit == fit);
        lines.flat_map(move |(line, places)| places.iter().take(n).map(|place| (*line, *place)))
    }

    /// Whether anything of a tenant waits.
    pub(super) fn has_any_of(&self, tenant: usize) -> bool {
        self.heads_of(tenant).next().is_some()
    }

    pub(super) fn remove(&mut self, line: Line, place: Place) {
        if let Some(places) = self.0.get_mut(&line) {
            places.remove(&place);
            if places.is_empty() {
                self.0.remove(&line);
            }
        }
    }
}
