//! Lists of jobs, a page at a time.

use model::{JobId, Name, Record, State};

use super::desk::Desk;
use super::fault::{Fault, unreadable};
use super::filter::Condition;
use super::row::{self, finished_columns, jobs_columns};
use crate::{Filter, Tally, number};

const LOOK: &str =
    concat!("SELECT ", jobs_columns!(), " FROM jobs j WHERE j.id > $1 ORDER BY j.id LIMIT $2");

pub(super) async fn look(
    desk: &Desk,
    after: Option<&JobId>,
    max: usize,
) -> Result<Vec<Record>, Fault> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(LOOK).await?;
    row::read_all(&connection.query(&statement, &[&number::after(after), &max]).await?)
}

pub(super) async fn jobs(desk: &Desk, filter: &Filter) -> Result<Vec<Record>, Fault> {
    let (mut finished, mut unfinished) = (Vec::new(), Vec::new());
    for state in &filter.states {
        let list = if state.is_terminal() { &mut finished } else { &mut unfinished };
        list.push(*state);
    }
    let is_any = filter.states.is_empty();
    let (mut open, mut records) = (Vec::new(), Vec::new());
    if (is_any || !unfinished.is_empty()) && filter.cause.is_none() {
        let condition = Condition::unfinished(filter, &unfinished);
        let from = concat!(jobs_columns!(), " FROM jobs j ");
        open = condition.page(desk, from, filter.max).await?;
    }
    // Finished jobs are read last, so that a job that ends meanwhile is in at least one page.
    if is_any || !finished.is_empty() {
        let condition = Condition::finished(filter, &finished);
        let from = concat!(finished_columns!(), " FROM finished j ");
        records = condition.page(desk, from, filter.max).await?;
    }
    // Merges two ordered pages. If a job is in both, its finished record is the newer.
    records.extend(open);
    records.sort_by(|one, two| two.id.cmp(&one.id));
    records.dedup_by(|one, two| one.id == two.id);
    records.truncate(filter.max);
    Ok(records)
}

const TALLY: &str = "SELECT kind, state, count(*) FROM jobs GROUP BY kind, state";

pub(super) async fn tally(desk: &Desk) -> Result<Vec<Tally>, Fault> {
    let connection = desk.connection().await?;
    let statement = connection.prepare_cached(TALLY).await?;
    let tally = |read: &tokio_postgres::Row| {
        let state = row::named(read, 1, State::named)?.ok_or_else(|| unreadable("a state"))?;
        let kind = Name::new(read.try_get(0)?);
        Ok(Tally { kind, state, n_jobs: number::size(read.try_get(2)?) })
    };
    let rows = connection.query(&statement, &[]).await?;
    let mut tallies: Vec<Tally> = rows.iter().map(tally).collect::<Result<_, Fault>>()?;
    tallies.sort_by(|one, two| (&one.kind, one.state).cmp(&(&two.kind, two.state)));
    Ok(tallies)
}
