//! What a submission comes to, before anything is written: so a refusal leaves no trace.

use std::collections::{BTreeSet, HashMap};

use model::{IfFailed, Name, State, TenantId};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use crate::{NewJob, Refusal, number};

/// What becomes of one job that was asked for.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// It is new, and waits for these.
    New { id: i64, blockers: BTreeSet<i64> },
    /// It is new, and over: something that it waits for did not succeed.
    Over { id: i64 },
    /// It is this one, which is unfinished.
    Same { id: i64 },
}

impl Place {
    pub(super) const fn id(&self) -> i64 {
        match self {
            Self::New { id, .. } | Self::Over { id } | Self::Same { id } => *id,
        }
    }
}

/// Gives new jobs their numbers, from `first` on.
pub(super) fn number(places: &mut [Place], first: i64) {
    let number = |id: i64| if id < 0 { first + !id } else { id };
    for place in places {
        match place {
            Place::Over { id } | Place::Same { id } => *id = number(*id),
            Place::New { id, blockers } => {
                *id = number(*id);
                *blockers = blockers.iter().map(|id| number(*id)).collect();
            }
        }
    }
}

/// Finds out what becomes of each job, in order. New ones have no numbers yet: the first of them
/// is −1, the second −2, and so on.
pub(super) fn plan(
    connection: &Connection,
    tenant: &TenantId,
    jobs: &[NewJob],
) -> Result<Result<Vec<Place>, Refusal>> {
    let tenant = tenant.to_string();
    let mut n_new: i64 = 0;
    let mut taken: HashMap<(&Name, &str), i64> = HashMap::new();
    let mut places: Vec<Place> = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let key = job.spec.dedupe_key.as_deref().map(|key| (&job.spec.kind, key));
        if let Some(key) = key {
            let id = match taken.get(&key) {
                Some(id) => Some(*id),
                None => holder(connection, &tenant, key)?,
            };
            if let Some(id) = id {
                places.push(Place::Same { id });
                continue;
            }
        }
        let waits = match waits(connection, &tenant, (index, job), &places)? {
            Ok(waits) => waits,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let id = !n_new;
        n_new += 1;
        if waits.has_failed && job.spec.if_failed == IfFailed::Cancel {
            places.push(Place::Over { id });
            continue;
        }
        places.push(Place::New { id, blockers: waits.blockers });
        if let Some(key) = key {
            taken.insert(key, id);
        }
    }
    Ok(Ok(places))
}

const HOLDER: &str = "SELECT id FROM jobs WHERE tenant = ?1 AND kind = ?2 AND dedupe_key = ?3";

/// The unfinished job that has this dedupe key.
pub(super) fn holder(
    connection: &Connection,
    tenant: &str,
    (kind, key): (&Name, &str),
) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(HOLDER)?;
    statement.query_row(params![tenant, kind.to_string(), key], |row| row.get(0)).optional()
}

#[derive(Default)]
struct Waits {
    blockers: BTreeSet<i64>,
    /// One of them is final, and not succeeded.
    has_failed: bool,
}

fn waits(
    connection: &Connection,
    tenant: &str,
    (index, job): (usize, &NewJob),
    places: &[Place],
) -> Result<Result<Waits, Refusal>> {
    let mut waits = Waits::default();
    for id in &job.spec.after {
        let known = match number::of(id) {
            Some(number) => state(connection, tenant, number)?.map(|state| (number, state)),
            None => None,
        };
        match known {
            None => return Ok(Err(Refusal::NoSuchJob { index, job: id.clone() })),
            Some((_, State::Succeeded)) => {}
            Some((_, State::Failed | State::Cancelled)) => waits.has_failed = true,
            Some((number, _)) => {
                waits.blockers.insert(number);
            }
        }
    }
    for place in &job.after_indexes {
        match places.get(*place) {
            None => return Ok(Err(Refusal::no_such_place(index, *place))),
            Some(Place::Over { .. }) => waits.has_failed = true,
            Some(Place::New { id, .. } | Place::Same { id }) => {
                waits.blockers.insert(*id);
            }
        }
    }
    Ok(Ok(waits))
}

const STATE: &str = "SELECT state FROM jobs WHERE id = ?1 AND tenant = ?2 \
    UNION ALL SELECT state FROM finished WHERE id = ?1 AND tenant = ?2";

fn state(connection: &Connection, tenant: &str, id: i64) -> Result<Option<State>> {
    let mut statement = connection.prepare_cached(STATE)?;
    let state =
        statement.query_row(params![id, tenant], |row| super::row::named(row, 0, State::named));
    Ok(state.optional()?.flatten())
}
