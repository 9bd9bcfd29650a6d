//! What an operator set takes effect.

use std::sync::Arc;

use model::{Event, Tenant};

use crate::scheduler::Scheduler;
use crate::settings::Understood;

impl Scheduler {
    /// Takes in what an operator set.
    pub(crate) fn set(&mut self, setting: Understood) {
        self.note_quota(&setting);
        match setting {
            Understood::Event(Event::Tenant(tenant)) => self.set_tenant(tenant),
            Understood::Event(event) => self.world.apply(event),
            Understood::Budget(limit) => {
                self.budget_limit = limit;
                self.ask_usage();
            }
            Understood::Type(kind, defaults, words) => {
                let name = kind.name.clone();
                self.world.apply(Event::Type(kind.clone()));
                self.set_words(kind, words);
                self.types.send_modify(|types| {
                    Arc::make_mut(types).insert(name, defaults);
                });
            }
            Understood::Pool { pool, is_paused, policy } => {
                self.world.apply(Event::PoolPolicy { pool: pool.clone(), policy });
                if is_paused {
                    self.closed.pools.insert(pool);
                } else {
                    self.closed.pools.remove(&pool);
                }
            }
            Understood::Worker { worker, is_draining: true } => {
                self.closed.workers.insert(worker);
            }
            Understood::Worker { worker, is_draining: false } => {
                self.closed.workers.remove(&worker);
            }
            Understood::Descriptor(kind, descriptor) => self.set_descriptor(&kind, *descriptor),
            Understood::Published(published) => self.set_published(published),
            Understood::Schedule(name, schedule) => {
                self.set_schedule(name, schedule.map(|one| *one));
            }
            Understood::Asked(name, asked) => self.set_asked(name, asked),
        }
        self.refresh_workers();
    }

    /// What was counted stays: only what can be set is.
    fn set_tenant(&mut self, tenant: Tenant) {
        let known = self.world.tenants().into_iter().find(|status| status.tenant.id == tenant.id);
        let counted = known.map_or_else(|| Tenant::new(tenant.id.clone()), |status| status.tenant);
        let Tenant { used, completed, .. } = counted;
        self.world.apply(Event::Tenant(Tenant { used, completed, ..tenant }));
    }
}
