//! The workers that could run a class, and those of them that a tenant may use now.

use crate::catalogue::Class;
use crate::table::{ClassIx, TenantIx, WorkerIx};
use crate::world::World;

/// Workers that could run a class, for one tenant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience {
    /// Could run it, whatever their state.
    pub(crate) ever: Vec<WorkerIx>,
    /// Those that take work.
    pub(crate) serving: Vec<WorkerIx>,
    /// How many are draining or gone.
    pub(crate) n_draining: usize,
    /// Of those that serve, or of all if none does: those where the quota leaves room.
    pub(crate) within_quota: Vec<WorkerIx>,
    /// Those of them that may run one more job of the type.
    pub(crate) usable: Vec<WorkerIx>,
    /// Those of them that serve and have room.
    pub(crate) with_room: Vec<WorkerIx>,
    /// Those that serve and have room, whatever limits say.
    pub(crate) with_any_room: usize,
}

impl Audience {
    /// The workers that would have to have room: those that limits leave, if they leave any.
    pub(crate) fn wanted(&self) -> &[WorkerIx] {
        let all = [&self.usable, &self.within_quota, &self.serving];
        all.into_iter().find(|workers| !workers.is_empty()).map_or(&[], Vec::as_slice)
    }
}

impl World {
    pub(crate) fn audience(&self, (class, tenant): (ClassIx, TenantIx)) -> Audience {
        let class = &self.fleet.catalogue.classes[class];
        let kind = self.fleet.catalogue.fits[class.key.fit].key.kind;
        let seated = |ix: &WorkerIx| &self.fleet.workers[*ix];
        let matching = self.fleet.matching(class.key.fit);
        let ever: Vec<WorkerIx> = matching.filter(|ix| seated(ix).could_hold(&class.key)).collect();
        let n_draining =
            ever.iter().filter(|ix| seated(ix).worker.draining || seated(ix).is_gone).count();
        let those = |all: &[WorkerIx], test: &dyn Fn(&WorkerIx) -> bool| -> Vec<WorkerIx> {
            all.iter().copied().filter(test).collect()
        };
        let serving = those(&ever, &|ix| seated(ix).is_serving());
        let within_quota = those(if serving.is_empty() { &ever } else { &serving }, &|ix| {
            self.quota_allows(tenant, seated(ix).pool, class.key.slots)
        });
        let usable = those(&within_quota, &|ix| self.kind_allows(*ix, kind));
        let with_room = those(&usable, &|ix| self.has_room_now(*ix, class));
        let with_any_room = serving.iter().filter(|ix| self.has_room_now(**ix, class)).count();
        Audience { ever, serving, n_draining, within_quota, usable, with_room, with_any_room }
    }

    fn has_room_now(&self, worker: WorkerIx, class: &Class) -> bool {
        let seated = &self.fleet.workers[worker];
        seated.is_serving() && seated.has_room(&class.key)
    }
}
