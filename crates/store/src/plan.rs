//! Plans a submission before any write, so that a refusal leaves no trace.

use std::collections::{BTreeSet, HashMap};

use model::{Cause, IfFailed, Name, Record, State, TenantId, Timestamp};

use crate::{NewJob, Refusal, number, transition};

/// The plan of one submitted job.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A new job that waits for these.
    New { id: i64, blockers: BTreeSet<i64> },
    /// A new job that is final at once, because a blocker did not succeed.
    Over { id: i64 },
    /// This unfinished job, which has the same dedupe key.
    Same { id: i64 },
}

impl Place {
    pub(crate) const fn id(&self) -> i64 {
        match self {
            Self::New { id, .. } | Self::Over { id } | Self::Same { id } => *id,
        }
    }
}

/// Numbers new jobs: `number` maps the index among them to a number.
pub(crate) fn number(places: &mut [Place], number: impl Fn(usize) -> i64) {
    let of = |id: i64| usize::try_from(!id).map_or(id, &number);
    for place in places {
        match place {
            Place::Over { id } | Place::Same { id } => *id = of(*id),
            Place::New { id, blockers } => {
                *id = of(*id);
                *blockers = blockers.iter().map(|id| of(*id)).collect();
            }
        }
    }
}

/// Replaces indexes within the submission by the new job ids, in the list of blockers of a job. So
/// the record names all its blockers for as long as it exists.
pub(crate) fn name_blockers(job: &mut NewJob, places: &[Place]) {
    if job.after_indexes.is_empty() {
        return;
    }
    let placed = job.after_indexes.iter().filter_map(|place| places.get(*place));
    job.spec.after.extend(placed.map(|place| number::id(place.id())));
    job.spec.after.sort();
    job.spec.after.dedup();
}

/// The number of new jobs.
pub(crate) fn n_new(places: &[Place]) -> usize {
    places.iter().filter(|place| !matches!(place, Place::Same { .. })).count()
}

/// Queries that a store answers before the plan.
pub(crate) trait Known {
    /// The error of a query.
    type Fault;

    /// The unfinished job of a tenant that has this dedupe key.
    fn holder(&self, tenant: &str, key: (&Name, &str)) -> Result<Option<i64>, Self::Fault>;

    /// The state of a tenant's job.
    fn state(&self, tenant: &str, id: i64) -> Result<Option<State>, Self::Fault>;
}

/// Plans each job, in order. New jobs have placeholder numbers: −1 for the first, −2 for the
/// second, and so on.
pub(crate) fn plan<K: Known>(
    known: &K,
    tenant: &TenantId,
    jobs: &[NewJob],
) -> Result<Result<Vec<Place>, Refusal>, K::Fault> {
    let tenant = tenant.to_string();
    let mut n_new: i64 = 0;
    let mut taken: HashMap<(&Name, &str), i64> = HashMap::new();
    let mut places: Vec<Place> = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let key = job.spec.dedupe_key.as_deref().map(|key| (&job.spec.kind, key));
        if let Some(key) = key {
            let id = match taken.get(&key) {
                Some(id) => Some(*id),
                None => known.holder(&tenant, key)?,
            };
            if let Some(id) = id {
                places.push(Place::Same { id });
                continue;
            }
        }
        let waits = match waits(known, &tenant, (index, job), &places)? {
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

/// The record of a new job, as its plan says.
pub(crate) fn begin(job: NewJob, place: &Place, now: Timestamp) -> Record {
    match place {
        Place::New { id, blockers } => {
            let n_blockers = u32::try_from(blockers.len()).unwrap_or(u32::MAX);
            let mut record = transition::submit(number::id(*id), job.spec, n_blockers, now);
            record.on_hold = job.on_hold;
            record
        }
        Place::Over { id } | Place::Same { id } => {
            let mut record = transition::submit(number::id(*id), job.spec, 0, now);
            transition::finish(&mut record, State::Cancelled, Some(Cause::Dependency), now);
            record
        }
    }
}

#[derive(Default)]
struct Waits {
    blockers: BTreeSet<i64>,
    /// A blocker is final and did not succeed.
    has_failed: bool,
}

fn waits<K: Known>(
    known: &K,
    tenant: &str,
    (index, job): (usize, &NewJob),
    places: &[Place],
) -> Result<Result<Waits, Refusal>, K::Fault> {
    let mut waits = Waits::default();
    for id in &job.spec.after {
        let found = match number::of(id) {
            Some(number) => known.state(tenant, number)?.map(|state| (number, state)),
            None => None,
        };
        match found {
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
