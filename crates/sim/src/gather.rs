//! Rows of a file one by one: those that are jobs, and those that are left out.

use std::collections::{BTreeMap, BTreeSet};

use model::{JobId, Name, TenantId, Timestamp};

use crate::workload::{Bad, Row};

/// What an id stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ids {
    /// One job.
    Job,
    /// What a tenant calls a job, or the stages of a build: these come together, each of a type of
    /// its own.
    Build,
}

/// The rows that were read so far.
#[derive(Debug)]
pub(crate) struct Gathered<'a> {
    ids: Ids,
    rows: Vec<Row>,
    /// When jobs came.
    came: BTreeMap<(JobId, Option<TenantId>), Timestamp>,
    stages: BTreeSet<(JobId, TenantId, Option<Name>)>,
    bad: &'a mut Bad,
}

impl<'a> Gathered<'a> {
    pub(crate) const fn new(ids: Ids, bad: &'a mut Bad) -> Self {
        Self { ids, rows: Vec::new(), came: BTreeMap::new(), stages: BTreeSet::new(), bad }
    }

    /// What a line says, if it says something that can be.
    pub(crate) fn add(&mut self, line: u64, read: Result<Row, String>) {
        match read {
            Ok(row) if self.is_new(&row) => self.rows.push(row),
            Ok(row) => self.bad.add(|| format!("line {line}: job `{}` is there twice", row.id)),
            Err(problem) => self.bad.add(|| format!("line {line}: {problem}")),
        }
    }

    pub(crate) fn rows(self) -> Vec<Row> {
        self.rows
    }

    fn is_new(&mut self, row: &Row) -> bool {
        match self.ids {
            Ids::Job => self.came.insert((row.id.clone(), None), row.arrival).is_none(),
            Ids::Build => {
                let job = (row.id.clone(), Some(row.tenant.clone()));
                let stage = (row.id.clone(), row.tenant.clone(), row.kind.clone());
                *self.came.entry(job).or_insert(row.arrival) == row.arrival
                    && self.stages.insert(stage)
            }
        }
    }
}
