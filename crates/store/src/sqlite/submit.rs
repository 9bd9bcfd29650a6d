//! Submissions: all jobs of one, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Record;
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::fault::unreadable;
use super::writer::Desk;
use super::{claim, notice, row};
use crate::plan::{self, Place, begin, plan};
use crate::{Idempotency, NewJob, Refusal, Repeat, Submission, Submitted, number, transition};

pub(super) fn submit(
    desk: &mut Desk,
    submission: Submission,
) -> Result<Result<Submitted, Refusal>> {
    let Submission { tenant, idempotency, mut jobs, first, claims } = submission;
    for job in &mut jobs {
        job.spec.tenant = tenant.clone();
    }
    let tenant_name = tenant.to_string();
    if let Some(idempotency) = &idempotency
        && let Some(before) = answered(&desk.connection, &tenant_name, idempotency)?
    {
        return Ok(before);
    }
    let mut places = match plan(&desk.connection, &tenant, &jobs)? {
        Ok(places) => places,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let n_new = places.iter().filter(|place| matches!(place, Place::New { .. })).count();
    let first = first.as_ref().and_then(number::of);
    // Jobs with reserved numbers have reserved room.
    if let Some(refusal) = desk.room.refusal(&tenant, n_new).filter(|_| first.is_none()) {
        return Ok(Err(refusal));
    }
    let first = first.unwrap_or_else(|| desk.numbers.take(plan::n_new(&places)));
    plan::number(&mut places, |n| first.saturating_add_unsigned(u64::try_from(n).unwrap_or(0)));
    if let Some(idempotency) = &idempotency {
        remember(&desk.connection, &tenant_name, idempotency, &places)?;
    }
    let mut submitted = write(desk, jobs, &places)?;
    submitted.claimed = claim::claim(desk, claims)?;
    Ok(Ok(submitted))
}

/// The answer to an earlier submission with the same key, with the jobs as they are now.
fn answered(
    connection: &Connection,
    tenant: &str,
    idempotency: &Idempotency,
) -> Result<Option<Result<Submitted, Refusal>>> {
    let sql = "SELECT body, jobs FROM keys WHERE tenant = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let kept = statement.query_row(params![tenant, idempotency.key], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?))
    });
    let Some((body, jobs)) = kept.optional()? else {
        return Ok(None);
    };
    if body != idempotency.body {
        return Ok(Some(Err(Refusal::KeyConflict { key: idempotency.key.clone() })));
    }
    let numbers: Vec<i64> =
        serde_json::from_str(&jobs).map_err(|error| unreadable(&error.to_string()))?;
    let record = |id: &i64| {
        // A key is deleted with the first of its jobs, so all of them exist.
        row::either(connection, *id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    };
    let jobs = numbers.iter().map(record).collect::<Result<Vec<Record>>>()?;
    let is_new = vec![false; jobs.len()];
    Ok(Some(Ok(Submitted { jobs, is_new, changed: Vec::new(), claimed: Vec::new() })))
}

fn remember(
    connection: &Connection,
    tenant: &str,
    idempotency: &Idempotency,
    places: &[Place],
) -> Result<()> {
    let numbers: Vec<i64> = places.iter().map(Place::id).collect();
    let jobs = serde_json::to_string(&numbers).map_err(|error| unreadable(&error.to_string()))?;
    let sql = "INSERT INTO keys (tenant, key, body, jobs) VALUES (?1, ?2, ?3, ?4)";
    let values = params![tenant, idempotency.key, idempotency.body, jobs];
    let key = connection.prepare_cached(sql)?.insert(values)?;
    let sql = "INSERT OR IGNORE INTO keyed (job, key) VALUES (?1, ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    for number in numbers {
        statement.execute([number, key])?;
    }
    Ok(())
}

/// Records that a submission adds or changes, by number.
struct Draft {
    records: BTreeMap<i64, Record>,
    /// The earlier fences of existing jobs.
    fences: BTreeMap<i64, u64>,
}

impl Draft {
    /// The record of this number, read on first use.
    fn get(&mut self, connection: &Connection, id: i64) -> Result<&mut Record> {
        if !self.records.contains_key(&id) {
            let record = row::job(connection, id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            self.fences.insert(id, record.fence);
            self.records.insert(id, record);
        }
        self.records.get_mut(&id).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

fn write(desk: &mut Desk, jobs: Vec<NewJob>, places: &[Place]) -> Result<Submitted> {
    let now = desk.now();
    let mut draft = Draft { records: BTreeMap::new(), fences: BTreeMap::new() };
    let mut insert_spec = desk.connection.prepare_cached(row::INSERT_SPEC)?;
    for (mut job, place) in jobs.into_iter().zip(places) {
        plan::name_blockers(&mut job, places);
        match place {
            Place::Same { id } => {
                let record = draft.get(&desk.connection, *id)?;
                match job.repeat {
                    Repeat::Join => _ = transition::join(record, job.spec.priority),
                    Repeat::Drop => {}
                }
            }
            Place::New { id, .. } | Place::Over { id } => {
                row::insert_spec(&mut insert_spec, *id, &job.spec)?;
                draft.records.insert(*id, begin(job, place, now));
            }
        }
        if let Place::New { blockers, .. } = place {
            for blocker in blockers {
                transition::add_dependent(draft.get(&desk.connection, *blocker)?);
            }
        }
    }
    drop(insert_spec);
    insert(desk, &draft, places)?;
    let is_new: Vec<bool> =
        places.iter().map(|place| !matches!(place, Place::Same { .. })).collect();
    let before = |(id, fence): (&i64, &u64)| {
        draft.records.get(id).filter(|record| record.fence != *fence).cloned()
    };
    let changed = draft.fences.iter().filter_map(before).collect();
    let mut records = draft.records;
    // A record is large, so it is moved if no other answer has it.
    let mut jobs: Vec<Record> = Vec::with_capacity(places.len());
    if is_new.iter().all(|is_new| *is_new) {
        jobs.extend(places.iter().filter_map(|place| records.remove(&place.id())));
    } else {
        jobs.extend(places.iter().filter_map(|place| records.get(&place.id()).cloned()));
    }
    Ok(Submitted { jobs, is_new, changed, claimed: Vec::new() })
}

/// The size of a submission that is likely to be claimed soon. A larger one would only displace
/// records that are claimed already.
const SOON_MAX: usize = 64;

fn insert(desk: &mut Desk, draft: &Draft, places: &[Place]) -> Result<()> {
    let mut insert_job = desk.connection.prepare_cached(row::INSERT_JOB)?;
    let mut inserted: Vec<(i64, &Record)> = Vec::with_capacity(draft.records.len());
    for (id, record) in &draft.records {
        match draft.fences.get(id) {
            Some(fence) if *fence == record.fence => {}
            Some(fence) => row::update(&desk.connection, *fence, record)?,
            None if record.state.is_terminal() => {
                let mut insert = desk.connection.prepare_cached(row::INSERT_FINISHED)?;
                row::insert_finished(&mut insert, (*id, record), None)?;
                notice::note(&desk.connection, *id, record)?;
            }
            None => {
                row::insert_job(&mut insert_job, *id, record)?;
                inserted.push((*id, record));
            }
        }
    }
    drop(insert_job);
    for (id, record) in inserted {
        desk.room.add(&record.spec.tenant);
        if places.len() <= SOON_MAX {
            desk.recent.keep(id, Arc::new(record.clone()), ());
        }
    }
    let sql = "INSERT INTO waits (blocker, waiter) VALUES (?1, ?2)";
    let mut statement = desk.connection.prepare_cached(sql)?;
    for place in places {
        if let Place::New { id, blockers } = place {
            for blocker in blockers {
                statement.execute([blocker, id])?;
            }
        }
    }
    Ok(())
}
