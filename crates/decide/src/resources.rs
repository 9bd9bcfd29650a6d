//! Named resources: who holds them, and which lines wait for them.
//!
//! Lines whose resource is not to be had stand aside, and come back when it is free: however many
//! jobs wait for resources that are held, no decision looks at them.

use std::collections::{BTreeMap, BTreeSet};

use model::{JobId, Resource};

use crate::queue::LineKey;
use crate::table::{LineIx, NameIx, TenantIx};
use crate::waiting::AskIx;
use crate::world::World;

/// Who may hold a resource now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OpenTo {
    #[default]
    Anybody,
    Tenant(TenantIx),
    /// Somebody holds it.
    Nobody,
}

/// Named resources that lines ask for, or that not everybody may hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    by_name: BTreeMap<NameIx, Asking>,
}

#[derive(Clone, Debug, Default)]
struct Asking {
    open_to: OpenTo,
    /// All lines whose jobs ask for it, whether they stand aside or not.
    lines: BTreeSet<LineIx>,
}

impl Asked {
    /// Takes in who may hold the resource, and returns the lines that this may concern.
    pub(crate) fn set(&mut self, name: NameIx, open_to: OpenTo) -> Vec<LineIx> {
        let asking = self.by_name.entry(name).or_default();
        let is_new = std::mem::replace(&mut asking.open_to, open_to) != open_to;
        let lines = if is_new { asking.lines.iter().copied().collect() } else { Vec::new() };
        self.forget_if_plain(name);
        lines
    }

    pub(crate) fn add(&mut self, key: &LineKey, line: LineIx) {
        if let Some(AskIx::Named(name)) = key.ask {
            self.by_name.entry(name).or_default().lines.insert(line);
        }
    }

    pub(crate) fn remove(&mut self, key: &LineKey, line: LineIx) {
        let Some(AskIx::Named(name)) = key.ask else { return };
        if let Some(asking) = self.by_name.get_mut(&name) {
            asking.lines.remove(&line);
        }
        self.forget_if_plain(name);
    }

    /// Whether a line of this key has to stand aside.
    pub(crate) fn parks(&self, key: &LineKey) -> bool {
        let Some(AskIx::Named(name)) = key.ask else { return false };
        match self.by_name.get(&name).map(|asking| asking.open_to) {
            None | Some(OpenTo::Anybody) => false,
            Some(OpenTo::Tenant(tenant)) => tenant != key.tenant,
            Some(OpenTo::Nobody) => true,
        }
    }

    /// A resource that anybody may hold and nobody asks for need not be remembered.
    fn forget_if_plain(&mut self, name: NameIx) {
        let asking = self.by_name.get(&name);
        if asking.is_some_and(|own| own.open_to == OpenTo::Anybody && own.lines.is_empty()) {
            self.by_name.remove(&name);
        }
    }
}

impl World {
    /// Takes in a resource; what an attempt holds stays held.
    pub(crate) fn declare_resource(&mut self, resource: Resource) {
        let name = self.names.find(&resource.name);
        let known = name.and_then(|name| self.resources.get(&name));
        let holder = known.and_then(|known| known.holder.clone());
        let held_by = holder.filter(|job| self.register.running(job).is_some());
        self.set_resource(Resource { holder: held_by.or(resource.holder.clone()), ..resource });
    }

    fn set_resource(&mut self, resource: Resource) {
        let name = self.names.intern(&resource.name);
        if let Some(old) = self.resources.insert(name, resource) {
            self.index_resource(&old, false);
        }
        let resource = self.resources[&name].clone();
        self.index_resource(&resource, resource.holder.is_none());
        let open_to = self.open_to(&resource);
        self.queue.open_resource(name, open_to, &mut self.fleet.catalogue);
    }

    fn open_to(&mut self, resource: &Resource) -> OpenTo {
        match (&resource.holder, &resource.tenant) {
            (Some(_), _) => OpenTo::Nobody,
            (None, Some(owner)) => {
                OpenTo::Tenant(self.tenants.find_or_default(owner, &mut self.names))
            }
            (None, None) => OpenTo::Anybody,
        }
    }

    fn index_resource(&mut self, resource: &Resource, is_free: bool) {
        let Some(tenant) = &resource.tenant else { return };
        let tenant = self.tenants.find_or_default(tenant, &mut self.names);
        let free = self.resources_free.entry(tenant).or_default();
        if is_free {
            free.insert(resource.name.clone());
        } else {
            free.remove(&resource.name);
        }
    }

    pub(crate) fn set_holder(&mut self, name: NameIx, holder: Option<JobId>) {
        let text = self.names.name(name).clone();
        let known = self.resources.get(&name).cloned();
        let known = known.unwrap_or(Resource { name: text, tenant: None, holder: None });
        self.set_resource(Resource { holder, ..known });
    }
}

#[cfg(test)]
mod tests {
    use model::{Action, Ask, Event, Job, Name, Preset, TenantId, Timestamp, Worker, WorkerId};

    use super::*;

    fn resource(at: u64, holder: Option<JobId>) -> Event {
        Event::Resource(Resource { name: Name::number(at), tenant: None, holder })
    }

    /// A hundred resources that somebody holds, a job that waits for each, and room for all.
    fn crowd() -> World {
        let mut world = World::new(Preset::Aging.policy(), 0);
        world.apply(Event::Joined(Box::new(Worker {
            slots: 200,
            ..Worker::new(WorkerId::number(1))
        })));
        for at in 0..100 {
            let mut job = Job::new(JobId::number(at), TenantId::number(1), Timestamp(0));
            job.resource = Some(Ask::Named(Name::number(at)));
            world.apply(Event::Queued(Box::new(job)));
            world.apply(resource(at, Some(JobId::number(1_000 + at))));
        }
        world
    }

    #[test]
    fn no_decision_looks_at_lines_whose_resource_is_held() {
        let mut world = crowd();
        assert!(world.queue.active().is_empty());
        assert_eq!(world.decide(Timestamp(1)), []);
    }

    #[test]
    fn a_line_comes_back_when_its_resource_is_free() {
        let mut world = crowd();
        world.apply(resource(7, None));
        let actions = world.decide(Timestamp(1));
        let [Action::Place(placement)] = actions.as_slice() else { panic!("{actions:?}") };
        assert_eq!(placement.job, JobId::number(7));
        assert!(world.queue.active().is_empty());
    }
}
