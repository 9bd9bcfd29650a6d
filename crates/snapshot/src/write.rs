//! Converts a snapshot to a document.

use model::{Snapshot, Timestamp};

use crate::document::{
    Attempt, Budget, Cluster, Document, Event, Eviction, Job, JobType, Label, List, Moment,
    Natural, Object, Resource, Seconds, Table, Tenant, Worker, unless,
};
use crate::policy;

/// The document of `snapshot`.
pub(crate) fn document(snapshot: &Snapshot) -> Document {
    let now = snapshot.now;
    let cluster = unless(snapshot.cluster.clone(), &model::Cluster::default());
    let pools = snapshot.pools.iter();
    let pools = pools.map(|(pool, own)| (Label(pool.clone()), policy::write(own)));
    Document {
        now_ms: unless(now, &Timestamp::default()).map(Moment::from),
        usual_s: snapshot.usual.map(Seconds::from),
        seed: unless(snapshot.seed, &0).map(Natural),
        policy: Some(policy::write(&snapshot.policy)),
        pools: (!snapshot.pools.is_empty()).then(|| Table(pools.collect())),
        budget: snapshot.budget.map(|budget| Object(Budget::write(budget))),
        // Always written: left out would mean the tenants that jobs name.
        tenants: Some(list(&snapshot.tenants, Tenant::write)),
        resources: listed(&snapshot.resources, Resource::write),
        types: listed(&snapshot.types, JobType::write),
        workers: listed(&snapshot.workers, Worker::write),
        jobs: listed(&snapshot.jobs, |job| Job::write(job, now)),
        attempts: listed(&snapshot.attempts, |attempt| Attempt::write(attempt, now)),
        evictions: listed(&snapshot.evictions, |eviction| Eviction::write(eviction, now)),
        event: snapshot.freed.as_ref().map(|freed| Object(Event::write(freed))),
        cluster: cluster.map(|cluster| Object(Cluster::write(&cluster))),
    }
}

fn listed<M, D, const MAX: usize>(
    entries: &[M],
    write: impl Fn(&M) -> D,
) -> Option<List<Object<D>, MAX>> {
    (!entries.is_empty()).then(|| list(entries, write))
}

fn list<M, D, const MAX: usize>(entries: &[M], write: impl Fn(&M) -> D) -> List<Object<D>, MAX> {
    List(entries.iter().map(|entry| Object(write(entry))).collect())
}
