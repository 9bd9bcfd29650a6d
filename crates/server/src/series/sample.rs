//! The state at the end of a minute. Its cost depends on attempts under way and on kinds of waiting
//! jobs, not on how many jobs wait.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use model::{TenantId, Timestamp};

use super::NAMES_MAX;
use super::document::{Document, Entry, List};
use crate::scheduler::{Answer, Scheduler};
use crate::timers::Timer;

/// Entries by name, before the largest are chosen.
type Entries = BTreeMap<String, Entry>;

impl Scheduler {
    /// Stores the minute that is over, and begins the next.
    pub(crate) fn store_minute(&mut self, now: Timestamp) {
        let over = self.minute.next(now);
        self.timers.set(self.minute.ends(), Timer::Minute);
        let Some((began, mut document)) = over else { return };
        self.sample(now, &mut document);
        let document = document.write();
        self.call(move |store| {
            async move { Answer::Minute(store.keep_minute(began, document).await) }.boxed()
        });
    }

    fn sample(&mut self, now: Timestamp, document: &mut Document) {
        let (mut tenants, mut types, mut pools) = (Entries::new(), Entries::new(), Entries::new());
        let name =
            |name: Option<model::Name>| name.map(|name| name.to_string()).unwrap_or_default();
        for waiters in self.world.waiting_by_reason(now) {
            let (reason, n_jobs) = (waiters.reason.name(), waiters.n_jobs);
            *document.reasons.entry(reason.to_owned()).or_default() += n_jobs;
            let tenant = tenants.entry(waiters.tenant.to_string()).or_default();
            tenant.queued += n_jobs;
            *tenant.reasons.entry(reason.to_owned()).or_default() += n_jobs;
            types.entry(name(waiters.kind)).or_default().queued += n_jobs;
            pools.entry(name(waiters.pool)).or_default().queued += n_jobs;
        }
        for live in self.jobs.live_jobs().filter_map(|job| self.jobs.live(job)) {
            document.running += 1;
            for (entries, name) in [
                (&mut tenants, live.tenant.to_string()),
                (&mut types, live.kind.to_string()),
                (&mut pools, live.pool.to_string()),
            ] {
                let entry = entries.entry(name).or_default();
                entry.running += 1;
                entry.slots += u64::from(live.slots);
            }
        }
        let oldest = self.world.longest_waits(1).first().map(|wait| wait.ready);
        document.oldest_ms = oldest.map(|ready| now.since(ready).0.max(0).unsigned_abs());
        document.is_watcher = !self.has_stripe();
        document.tenants = List::largest(tenants, NAMES_MAX);
        document.types = List::largest(types, NAMES_MAX);
        document.pools = List::largest(pools, NAMES_MAX);
        let part = self.part_of_slots();
        for (tenant, entry) in &mut document.tenants.named {
            entry.due = self.due_here(&TenantId::new(tenant), part);
        }
    }

    /// Thousandths of this scheduler's slots that are due to a tenant. `None` means that the tenant
    /// does not compete, or that the policy knows no shares.
    fn due_here(&self, tenant: &TenantId, (own, all): (u64, u64)) -> Option<i64> {
        let share = self.world.share_of(tenant).filter(|share| share.competes)?;
        let due = i128::from(share.due.in_thousandths()) * i128::from(own) / i128::from(all.max(1));
        i64::try_from(due).ok()
    }

    /// The slots of this scheduler's workers, and with them the slots that its peers have in use.
    fn part_of_slots(&self) -> (u64, u64) {
        let pools = self.pools();
        let own = pools.iter().map(|pool| u64::from(pool.slots.max(pool.slots_used))).sum();
        match self.slots_used_elsewhere() {
            0 => (1, 1),
            elsewhere => (own, own + elsewhere),
        }
    }
}
