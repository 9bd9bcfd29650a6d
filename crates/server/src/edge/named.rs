//! Jobs that somebody watches by their numbers, whichever scheduler has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{JobId, Name, Progress, State, TenantId, Timestamp, WorkerId};
use store::Store;
use tokio::time::{Instant, sleep_until};

use super::Door;
use super::follow::Looks;
use crate::watch::Change;

/// What was last told of each.
pub(super) struct Named {
    told: BTreeMap<JobId, Option<Told>>,
    /// Where they are looked up, if others may change them.
    store: Option<Arc<dyn Store>>,
    looks: Looks,
    /// When they are looked up next, however much is heard until then.
    next: Instant,
}

#[derive(PartialEq, Eq)]
struct Told {
    tenant: TenantId,
    kind: Name,
    state: State,
    worker: Option<WorkerId>,
    progress: Option<Progress>,
}

impl Told {
    fn by(change: &Change) -> Self {
        let Change { tenant, kind, state, worker, progress, .. } = change.clone();
        Self { tenant, kind, state, worker, progress }
    }

    /// It was there, and is gone: only what succeeded is not kept.
    fn gone(&self, job: &JobId, at: Timestamp) -> Change {
        Change {
            job: job.clone(),
            tenant: self.tenant.clone(),
            kind: self.kind.clone(),
            state: State::Succeeded,
            at,
            worker: None,
            progress: None,
        }
    }
}

impl Named {
    pub(super) fn of(ids: Vec<u64>, door: &Door) -> Self {
        let told: BTreeMap<_, _> = ids.into_iter().map(|id| (JobId::number(id), None)).collect();
        let is_shared = door.store.shared().is_some() && !told.is_empty();
        let store = is_shared.then(|| Arc::clone(&door.store));
        let mut looks = Looks::default();
        let next = Instant::now() + looks.next();
        Self { told, store, looks, next }
    }

    /// Whether it is about one of them and was not told before; without names, it always is.
    pub(super) fn is_news(&mut self, change: &Change) -> bool {
        if self.told.is_empty() {
            return true;
        }
        let Some(told) = self.told.get_mut(&change.job) else { return false };
        let now = Some(Told::by(change));
        // What another scheduler does is seen as well as heard.
        let is_news = self.store.is_none() || *told != now;
        *told = now;
        is_news
    }

    /// How those are that are not final, after a while. Never answers if nobody else changes them.
    pub(super) async fn look(&mut self) -> Vec<Change> {
        let Some(store) = &self.store else { return std::future::pending().await };
        sleep_until(self.next).await;
        self.next = Instant::now() + self.looks.next();
        let is_final = |told: &Option<Told>| told.as_ref().is_some_and(|it| it.state.is_terminal());
        let mut changes = Vec::new();
        for (job, told) in self.told.iter().filter(|(_, told)| !is_final(told)) {
            changes.extend(match store.job(job.clone()).await {
                Ok(Some(record)) => Some(Change::of(&record, store.now())),
                Ok(None) => told.as_ref().map(|told| told.gone(job, store.now())),
                // What cannot be read now is read later.
                Err(_) => None,
            });
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Spec;
    use store::{Memory, NewJob, Options, Repeat, Submission};

    use super::*;

    #[tokio::test]
    async fn jobs_are_looked_up_however_much_is_heard_of_others() {
        let store: Arc<dyn Store> = Arc::new(Memory::new(Options::default()));
        let tenant = TenantId::new("t");
        let spec = Spec::new(tenant.clone(), Name::new("k"));
        let job = NewJob { spec, after_indexes: Vec::new(), repeat: Repeat::Join, on_hold: false };
        let taken = store.submit(Submission::new(tenant, vec![job])).await;
        let job = taken.expect("it keeps it").expect("it takes it").jobs.remove(0).id;
        let (told, looks) = (BTreeMap::from([(job, None)]), Looks::default());
        let mut named = Named { told, store: Some(store), looks, next: Instant::now() };
        let mut n_seen = 0;
        for _ in 0..60 {
            // Something is heard every ten milliseconds.
            let seen = tokio::time::timeout(Duration::from_millis(10), named.look()).await;
            n_seen += seen.map_or(0, |changes| changes.len());
        }
        assert!(n_seen >= 4, "{n_seen} times");
    }
}
