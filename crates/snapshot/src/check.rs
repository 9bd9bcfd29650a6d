//! Checks across entries of a snapshot: ids are unique, and named entries exist.
//!
//! Runs before lists are sorted, so that paths count entries as the author wrote them.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;

use model::tenant::TENANT_DEFAULT;
use model::{Snapshot, TenantId, WorkerId, maxima};

use crate::error::{At as _, Problem};
use crate::nearest::nearest;

/// The index of each id, if all are unique.
pub(crate) fn unique<'a, T: Eq + Hash + Display>(
    list: &'static str,
    field: &'static str,
    ids: impl ExactSizeIterator<Item = &'a T>,
) -> Result<HashMap<&'a T, usize>, Problem> {
    let mut places: HashMap<&'a T, usize> = HashMap::with_capacity(ids.len());
    for (index, id) in ids.enumerate() {
        if let Some(first) = places.insert(id, index) {
            let problem = Problem::new(format!("is `{id}`, which `{list}[{first}]` has already"));
            return Err(problem.at(field).at(index).at(list));
        }
    }
    Ok(places)
}

/// Every id and name is unique, and a job waits or runs, but not both.
pub(crate) fn ids(snapshot: &Snapshot) -> Result<(), Problem> {
    unique("tenants", "id", snapshot.tenants.iter().map(|tenant| &tenant.id))?;
    unique("resources", "name", snapshot.resources.iter().map(|resource| &resource.name))?;
    unique("types", "name", snapshot.types.iter().map(|kind| &kind.name))?;
    unique("workers", "id", snapshot.workers.iter().map(|worker| &worker.id))?;
    let waiting = unique("jobs", "id", snapshot.jobs.iter().map(|job| &job.id))?;
    unique("attempts", "job", snapshot.attempts.iter().map(|attempt| &attempt.job))?;
    for (index, attempt) in snapshot.attempts.iter().enumerate() {
        if let Some(place) = waiting.get(&attempt.job) {
            let problem = Problem::new(format!("is `{}`, as is `jobs[{place}].id`", attempt.job))
                .with_hint("a job waits in `jobs` or runs in `attempts`, not both");
            return Err(problem.at("job").at(index).at("attempts"));
        }
    }
    let n_jobs = snapshot.jobs.len() + snapshot.attempts.len();
    if n_jobs > maxima::JOBS_MAX {
        let what = format!("and `attempts` have {n_jobs} entries, more than {}", maxima::JOBS_MAX);
        return Err(Problem::new(what).at("jobs"));
    }
    Ok(())
}

/// Every named worker is in the list, except last workers.
pub(crate) fn workers(snapshot: &Snapshot) -> Result<(), Problem> {
    let known: HashSet<&WorkerId> = snapshot.workers.iter().map(|worker| &worker.id).collect();
    let check = |worker: &WorkerId| {
        if known.contains(worker) { Ok(()) } else { Err(unknown_worker(worker, snapshot)) }
    };
    for (index, job) in snapshot.jobs.iter().enumerate() {
        for worker in job.inputs.keys() {
            let inner = |problem: Problem| problem.at(worker.to_string()).at("inputs");
            check(worker).map_err(inner).at(index).at("jobs")?;
        }
        if let Some(worker) = &job.promised {
            check(worker).at("promised").at(index).at("jobs")?;
        }
    }
    for (index, attempt) in snapshot.attempts.iter().enumerate() {
        check(&attempt.worker).at("worker").at(index).at("attempts")?;
    }
    match &snapshot.freed {
        Some(freed) => check(&freed.worker).at("worker").at("freed").at("event"),
        None => Ok(()),
    }
}

fn unknown_worker(worker: &WorkerId, snapshot: &Snapshot) -> Problem {
    let known: Vec<String> = snapshot.workers.iter().map(|known| known.id.to_string()).collect();
    let hint = match nearest(&worker.to_string(), known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`? otherwise, list it in `workers`"),
        None => "list it in `workers`".to_owned(),
    };
    Problem::new(format!("names `{worker}`, which is not in `workers`")).with_hint(hint)
}

/// Every named tenant is in the list.
pub(crate) fn tenants(snapshot: &Snapshot) -> Result<(), Problem> {
    let known: HashSet<&TenantId> = snapshot.tenants.iter().map(|tenant| &tenant.id).collect();
    let check = |tenant: &TenantId| {
        if known.contains(tenant) { Ok(()) } else { Err(unknown_tenant(tenant, snapshot)) }
    };
    for (index, job) in snapshot.jobs.iter().enumerate() {
        check(&job.tenant).at("tenant").at(index).at("jobs")?;
    }
    for (index, attempt) in snapshot.attempts.iter().enumerate() {
        check(&attempt.tenant).at("tenant").at(index).at("attempts")?;
    }
    for (index, resource) in snapshot.resources.iter().enumerate() {
        if let Some(tenant) = &resource.tenant {
            check(tenant).at("tenant").at(index).at("resources")?;
        }
    }
    for (index, eviction) in snapshot.evictions.iter().enumerate() {
        check(&eviction.tenant).at("tenant").at(index).at("evictions")?;
    }
    Ok(())
}

fn unknown_tenant(tenant: &TenantId, snapshot: &Snapshot) -> Problem {
    let known: Vec<String> = snapshot.tenants.iter().map(|known| known.id.to_string()).collect();
    let ways_out = "list it in `tenants`, or leave `tenants` out";
    let hint = match nearest(&tenant.to_string(), known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`? otherwise, {ways_out}"),
        None if *tenant == TenantId::new(TENANT_DEFAULT) => {
            format!("what names no tenant belongs to `{TENANT_DEFAULT}`: {ways_out}")
        }
        None => ways_out.to_owned(),
    };
    Problem::new(format!("names `{tenant}`, which is not in `tenants`")).with_hint(hint)
}

/// The tenants that a snapshot without a list names, with defaults.
pub(crate) fn named_tenants(snapshot: &Snapshot) -> Result<Vec<model::Tenant>, Problem> {
    let named = (snapshot.jobs.iter().map(|job| &job.tenant))
        .chain(snapshot.attempts.iter().map(|attempt| &attempt.tenant))
        .chain(snapshot.resources.iter().filter_map(|resource| resource.tenant.as_ref()))
        .chain(snapshot.evictions.iter().map(|eviction| &eviction.tenant));
    let named: HashSet<&TenantId> = named.collect();
    if named.len() > maxima::TENANTS_MAX {
        let (n_tenants, tenants_max) = (named.len(), maxima::TENANTS_MAX);
        let what = format!("would be the {n_tenants} that are named, more than {tenants_max}");
        return Err(Problem::new(what).at("tenants"));
    }
    Ok(named.into_iter().cloned().map(model::Tenant::new).collect())
}
