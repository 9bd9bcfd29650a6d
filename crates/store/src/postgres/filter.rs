//! The SQL of a filter of jobs. Values are bound as parameters.

use model::{Cause, Record, State};
use tokio_postgres::types::ToSql;

use super::desk::Desk;
use super::fault::Fault;
use super::row;
use crate::{Filter, number};

/// The part of a statement after `WHERE`, and its values.
pub(super) struct Condition {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Condition {
    pub(super) fn unfinished(filter: &Filter, states: &[State]) -> Self {
        let mut condition = Self::both(filter, states);
        if let Some(worker) = &filter.worker {
            let value = condition.bind(worker.to_string());
            condition.and(&format!("(j.worker = {value} OR j.last_worker = {value})"));
        }
        condition
    }

    pub(super) fn finished(filter: &Filter, states: &[State]) -> Self {
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
        let mut condition = Self { sql: "j.id < $1".to_owned(), values: vec![Box::new(before)] };
        let texts = [
            ("j.tenant", filter.tenant.as_ref().map(ToString::to_string)),
            ("j.kind", filter.kind.as_ref().map(ToString::to_string)),
            ("j.group_name", filter.group.clone()),
            ("j.document::json ->> 'parent'", filter.parent.as_ref().map(ToString::to_string)),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                let value = condition.bind(text);
                condition.and(&format!("{column} = {value}"));
            }
        }
        if !states.is_empty() {
            let names: Vec<&'static str> = states.iter().map(|state| state.name()).collect();
            let value = condition.bind(names);
            condition.and(&format!("j.state = ANY({value})"));
        }
        for (key, label) in &filter.labels {
            let (key, label) = (condition.bind(key.clone()), condition.bind(label.clone()));
            condition.and(&format!("j.document::json -> 'labels' ->> {key} = {label}"));
        }
        condition
    }

    /// Adds a value and returns its SQL placeholder.
    fn bind(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    fn and(&mut self, sql: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
    }

    /// The newest jobs that match.
    pub(super) async fn page(
        mut self,
        desk: &Desk,
        from: &str,
        max: usize,
    ) -> Result<Vec<Record>, Fault> {
        let max = self.bind(i64::try_from(max).unwrap_or(i64::MAX));
        let sql = format!("SELECT {from} WHERE {} ORDER BY j.id DESC LIMIT {max}", self.sql);
        let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(self.values.len());
        for value in &self.values {
            values.push(&**value);
        }
        let connection = desk.connection().await?;
        let statement = connection.prepare_cached(&sql).await?;
        row::read_all(&connection.query(&statement, &values).await?)
    }
}
