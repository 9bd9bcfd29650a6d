//! 1. Submit: what comes in is checked, and made ready for the store.

use std::collections::BTreeMap;

use model::maxima::NAME_BYTES_MAX;
use model::{Name, Retry, Spec};
use prost::Message as _;
use proto::{Invalid, v1};
use sha2::{Digest as _, Sha256};
use store::{Idempotency, NewJob, Repeat, Submission};

use crate::settings::TypeDefaults;

/// What to hand to the store, or the first field that may not be so.
pub(crate) fn submission(
    request: v1::SubmitRequest,
    types: &BTreeMap<Name, TypeDefaults>,
) -> Result<Submission, Invalid> {
    let n_jobs = request.jobs.len();
    if n_jobs == 0 {
        return Err(Invalid::new("jobs", "is empty: there is nothing to submit"));
    }
    check_cycles(&request.jobs)?;
    let idempotency = idempotency(&request)?;
    let array = request.array;
    let jobs = request.jobs.into_iter().enumerate().map(|(index, job)| {
        let inside = |invalid: Invalid| invalid.inside(&format!("jobs[{index}]"));
        new_job(job, index, types).map_err(inside)
    });
    let jobs: Vec<NewJob> = jobs.collect::<Result<_, _>>()?;
    let tenant = jobs[0].spec.tenant.clone();
    if let Some(other) = jobs.iter().position(|job| job.spec.tenant != tenant) {
        let problem = "differs from `jobs[0].tenant`; one submission is of one tenant";
        return Err(Invalid::new(&format!("jobs[{other}].tenant"), problem));
    }
    let jobs = if array == 0 { jobs } else { expand(jobs, array)? };
    Ok(Submission { idempotency, ..Submission::new(tenant, jobs) })
}

/// Jobs of one submission that wait for each other would wait for ever.
fn check_cycles(jobs: &[v1::Spec]) -> Result<(), Invalid> {
    let Some(cycle) = cycle(jobs) else { return Ok(()) };
    let next = cycle.iter().skip(1).chain(cycle.first());
    let waits: Vec<String> = cycle
        .iter()
        .zip(next)
        .map(|(job, next)| format!("jobs[{job}] waits for jobs[{next}]"))
        .collect();
    let problem = format!("makes a cycle, in which no job could ever start: {}", waits.join(", "));
    Err(Invalid::new(&format!("jobs[{}].after_indexes", cycle[0]), problem))
}

/// The first cycle that there is, each job followed by one that it waits for.
fn cycle(jobs: &[v1::Spec]) -> Option<Vec<usize>> {
    let (mut is_seen, mut is_on_way) = (vec![false; jobs.len()], vec![false; jobs.len()]);
    for first in 0..jobs.len() {
        // The way from `first` on; for each job on it, how many of those it waits for were tried.
        let mut way: Vec<(usize, usize)> = Vec::new();
        let mut next = Some(first);
        while next.is_some() || !way.is_empty() {
            if let Some(job) = next.take() {
                if is_on_way[job] {
                    let jobs = way.iter().map(|(job, _)| *job);
                    return Some(jobs.skip_while(|on_way| *on_way != job).collect());
                }
                if !std::mem::replace(&mut is_seen[job], true) {
                    is_on_way[job] = true;
                    way.push((job, 0));
                }
            }
            let Some((job, n_tried)) = way.last_mut() else { continue };
            let after = jobs[*job].after_indexes.get(*n_tried);
            *n_tried += 1;
            if let Some(index) = after {
                next = usize::try_from(*index).ok().filter(|at| *at < jobs.len());
            } else {
                is_on_way[*job] = false;
                way.pop();
            }
        }
    }
    None
}

fn idempotency(request: &v1::SubmitRequest) -> Result<Option<Idempotency>, Invalid> {
    let key = proto::text("idempotency_key", &request.idempotency_key, NAME_BYTES_MAX)?;
    if key.is_empty() {
        return Ok(None);
    }
    Ok(Some(Idempotency { key: key.to_owned(), body: digest(request) }))
}

/// A digest of everything that was asked. Maps have no order on the wire, so each is written by
/// itself, sorted.
fn digest(request: &v1::SubmitRequest) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(request.array.to_le_bytes());
    for job in &request.jobs {
        let mut job = job.clone();
        let needs: BTreeMap<_, _> = std::mem::take(&mut job.needs).into_iter().collect();
        let amounts: BTreeMap<_, _> = std::mem::take(&mut job.amounts).into_iter().collect();
        let labels: BTreeMap<_, _> = std::mem::take(&mut job.labels).into_iter().collect();
        let needs: Vec<_> = needs.iter().map(|(key, values)| (key, &values.values)).collect();
        let maps = format!("{needs:?}{amounts:?}{labels:?}");
        for part in [job.encode_to_vec(), maps.into_bytes()] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().into()
}

fn new_job(
    job: v1::Spec,
    index: usize,
    types: &BTreeMap<Name, TypeDefaults>,
) -> Result<NewJob, Invalid> {
    let after_indexes = earlier(&job.after_indexes, index)?;
    let on_hold = job.on_hold;
    let defaults = types.get(&Name::new(&job.r#type));
    let retry = defaults.and_then(|defaults| defaults.retry).unwrap_or(Retry::DEFAULT);
    let mut spec = job.checked(retry)?;
    let mut repeat = Repeat::Join;
    if let Some(defaults) = defaults {
        spec.run_timeout = spec.run_timeout.or(defaults.run_timeout);
        spec.silence_timeout = spec.silence_timeout.or(defaults.silence_timeout);
        repeat = defaults.repeat;
    }
    Ok(NewJob { spec, after_indexes, repeat, on_hold })
}

/// Places of the same submission that a job waits for: each before its own, so that no job can
/// wait for itself, however long the way around.
fn earlier(indexes: &[u32], own: usize) -> Result<Vec<usize>, Invalid> {
    let mut checked = Vec::with_capacity(indexes.len());
    for index in indexes {
        match usize::try_from(*index) {
            Ok(at) if at < own => checked.push(at),
            _ => {
                let problem = format!(
                    "has {index}, which is not before {own}; a job waits for jobs before it, so \
                     that there is no cycle"
                );
                return Err(Invalid::new("after_indexes", problem));
            }
        }
    }
    checked.sort_unstable();
    checked.dedup();
    Ok(checked)
}

/// One job, `n` times over.
fn expand(jobs: Vec<NewJob>, n: u32) -> Result<Vec<NewJob>, Invalid> {
    let [job] = <[NewJob; 1]>::try_from(jobs)
        .map_err(|jobs| Invalid::new("array", format!("is given for {} jobs", jobs.len())))?;
    let copy = |index| {
        let spec = Spec {
            array_index: Some(index),
            dedupe_key: job.spec.dedupe_key.as_ref().map(|key| format!("{key}[{index}]")),
            ..job.spec.clone()
        };
        NewJob { spec, ..job.clone() }
    };
    Ok((0..n).map(copy).collect())
}
