//! Lists of jobs, a page at a time.

use model::{Cause, JobId, Name, Record, State};
use rusqlite::types::Value;
use rusqlite::{Connection, Result, params_from_iter};

use super::fault::unreadable;
use super::row::{self, finished_columns, jobs_columns};
use crate::{Filter, Tally, number};

const LOOK: &str = concat!("SELECT ", jobs_columns!(), "WHERE j.id > ?1 ORDER BY j.id LIMIT ?2");

pub(super) fn look(
    connection: &Connection,
    after: Option<&JobId>,
    max: usize,
) -> Result<Vec<Record>> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(LOOK)?;
    let rows = statement.query_map([number::after(after), max], row::read)?;
    rows.collect()
}

pub(super) fn jobs(connection: &Connection, filter: &Filter) -> Result<Vec<Record>> {
    let (mut finished, mut unfinished) = (Vec::new(), Vec::new());
    for state in &filter.states {
        let list = if state.is_terminal() { &mut finished } else { &mut unfinished };
        list.push(*state);
    }
    let is_any = filter.states.is_empty();
    let mut records = Vec::new();
    if is_any || !finished.is_empty() {
        let condition = Condition::finished(filter, &finished);
        records = condition.page(connection, finished_columns!(), filter)?;
    }
    if (is_any || !unfinished.is_empty()) && filter.cause.is_none() {
        let condition = Condition::unfinished(filter, &unfinished);
        records.extend(condition.page(connection, jobs_columns!(), filter)?);
    }
    // Merges two ordered pages. Ids differ, so there is no tie.
    records.sort_by(|one, two| two.id.cmp(&one.id));
    records.truncate(filter.max);
    Ok(records)
}

const TALLY: &str = "SELECT kind, state, count(*) FROM jobs GROUP BY kind, state";

pub(super) fn tally(connection: &Connection) -> Result<Vec<Tally>> {
    let mut statement = connection.prepare_cached(TALLY)?;
    let rows = statement.query_map([], |read| {
        let state = row::named(read, 1, State::named)?.ok_or_else(|| unreadable("a state"))?;
        let kind = Name::new(&read.get::<_, String>(0)?);
        Ok(Tally { kind, state, n_jobs: read.get::<_, i64>(2)?.unsigned_abs() })
    })?;
    let mut tallies: Vec<Tally> = rows.collect::<Result<_>>()?;
    tallies.sort_by(|one, two| (&one.kind, one.state).cmp(&(&two.kind, two.state)));
    Ok(tallies)
}

/// The part of a statement after `WHERE`, and its values.
struct Condition {
    sql: String,
    values: Vec<Value>,
}

impl Condition {
    fn unfinished(filter: &Filter, states: &[State]) -> Self {
        let mut condition = Self::both(filter, states);
        if let Some(worker) = &filter.worker {
            let value = condition.bind(worker.to_string());
            condition.and(&format!("(j.worker = {value} OR j.last_worker = {value})"));
        }
        condition
    }

    fn finished(filter: &Filter, states: &[State]) -> Self {
        let mut condition = Self::both(filter, states);
        if let Some(worker) = &filter.worker {
            let value = condition.bind(worker.to_string());
            condition.and(&format!("j.last_worker = {value}"));
        }
        if let Some(cause) = filter.cause.map(Cause::name) {
            let value = condition.bind(cause.to_owned());
            condition.and(&format!("j.cause = {value}"));
        }
        condition
    }

    fn both(filter: &Filter, states: &[State]) -> Self {
        let before = number::before(filter.before.as_ref());
        let mut condition =
            Self { sql: "j.id < ?1".to_owned(), values: vec![Value::Integer(before)] };
        if let Some(tenant) = &filter.tenant {
            let value = condition.bind(tenant.to_string());
            condition.and(&format!("j.tenant = {value}"));
        }
        if let Some(kind) = &filter.kind {
            let value = condition.bind(kind.to_string());
            condition.and(&format!("j.kind = {value}"));
        }
        if let Some(group) = &filter.group {
            let value = condition.bind(group.clone());
            condition.and(&format!("j.group_name = {value}"));
        }
        if let Some(parent) = &filter.parent {
            let value = condition.bind(parent.to_string());
            condition.and(&format!("s.document ->> '$.parent' = {value}"));
        }
        if !states.is_empty() {
            let names: Vec<String> =
                states.iter().map(|state| format!("'{}'", state.name())).collect();
            condition.and(&format!("j.state IN ({})", names.join(", ")));
        }
        for (key, label) in &filter.labels {
            let (key, label) = (condition.bind(key.clone()), condition.bind(label.clone()));
            condition.and(&format!(
                "EXISTS (SELECT 1 FROM json_each(s.document, '$.labels') AS label \
                 WHERE label.key = {key} AND label.value = {label})"
            ));
        }
        condition
    }

    /// Adds a value and returns its SQL placeholder.
    fn bind(&mut self, text: String) -> String {
        self.values.push(Value::Text(text));
        format!("?{}", self.values.len())
    }

    fn and(&mut self, sql: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
    }

    fn page(
        mut self,
        connection: &Connection,
        columns: &str,
        filter: &Filter,
    ) -> Result<Vec<Record>> {
        self.values.push(Value::Integer(i64::try_from(filter.max).unwrap_or(i64::MAX)));
        let (condition, n_values) = (&self.sql, self.values.len());
        let sql = format!("SELECT {columns}WHERE {condition} ORDER BY j.id DESC LIMIT ?{n_values}");
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(self.values), row::read)?;
        rows.collect()
    }
}
