//! Converts a document to a checked snapshot.

use std::collections::BTreeMap;

use model::{Millis, Name, Policy, Snapshot, Timestamp, maxima};

use crate::document::{
    Attempt, Document, Eviction, Job, JobType, Label, List, Object, PolicyChoice, Resource, Table,
    Tenant, Worker, or,
};
use crate::error::{At as _, Problem};
use crate::{check, policy, resources};

/// The snapshot of `document`.
pub(crate) fn snapshot(document: Document) -> Result<Snapshot, Problem> {
    let now = or(document.now_ms, Timestamp::default());
    let has_tenants = document.tenants.is_some();
    let mut snapshot = Snapshot {
        now,
        usual: document.usual_s.map(Millis::from),
        seed: or(document.seed, 0),
        policy: policy::read(document.policy).at("policy")?,
        pools: pools(document.pools)?,
        budget: document.budget.and_then(|Object(budget)| budget.read()),
        tenants: each("tenants", document.tenants, Tenant::read)?,
        resources: each("resources", document.resources, Resource::read)?,
        types: each("types", document.types, JobType::read)?,
        workers: each("workers", document.workers, Worker::read)?,
        jobs: each("jobs", document.jobs, |job: Job| job.read(now))?,
        attempts: each("attempts", document.attempts, |attempt: Attempt| attempt.read(now))?,
        evictions: each("evictions", document.evictions, |one: Eviction| one.read(now))?,
        freed: document.event.and_then(|Object(event)| event.read()),
        cluster: document.cluster.map_or_else(Default::default, |Object(cluster)| cluster.read()),
    };
    check::ids(&snapshot)?;
    check::workers(&snapshot)?;
    if has_tenants {
        check::tenants(&snapshot)?;
    } else {
        snapshot.tenants = check::named_tenants(&snapshot)?;
    }
    resources::complete(&mut snapshot)?;
    sort(&mut snapshot);
    Ok(snapshot)
}

/// Reads the policies of pools.
fn pools(
    given: Option<Table<Label, PolicyChoice, { maxima::QUOTAS_MAX }>>,
) -> Result<BTreeMap<Name, Policy>, Problem> {
    let pools = given.map_or_else(BTreeMap::new, |table| table.0).into_iter();
    let read = |(pool, choice): (Label, PolicyChoice)| {
        let name = Name::from(pool);
        let policy = policy::read(Some(choice)).at("policy").at("pools")?;
        Ok((name, policy))
    };
    pools.map(read).collect()
}

/// Reads every entry, or returns the path of the first invalid one.
fn each<D, M, const MAX: usize>(
    name: &'static str,
    given: Option<List<Object<D>, MAX>>,
    read: impl Fn(D) -> Result<M, Problem>,
) -> Result<Vec<M>, Problem> {
    let entries = given.map_or_else(Vec::new, |list| list.0).into_iter().enumerate();
    entries.map(|(index, Object(entry))| read(entry).at(index).at(name)).collect()
}

/// Sorts all lists, so that equal states have one form.
fn sort(snapshot: &mut Snapshot) {
    snapshot.tenants.sort_unstable_by(|one, two| one.id.cmp(&two.id));
    snapshot.resources.sort_unstable_by(|one, two| one.name.cmp(&two.name));
    snapshot.types.sort_unstable_by(|one, two| one.name.cmp(&two.name));
    snapshot.workers.sort_unstable_by(|one, two| one.id.cmp(&two.id));
    snapshot.jobs.sort_unstable_by(|one, two| one.id.cmp(&two.id));
    snapshot.attempts.sort_unstable_by(|one, two| one.job.cmp(&two.job));
    snapshot.evictions.sort_unstable();
}
