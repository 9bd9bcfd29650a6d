//! Completes resources: adds those that are named but not listed, and sets holders from attempts.

use std::collections::HashMap;

use model::{Ask, JobId, Name, Resource, Snapshot, TenantId, maxima};

use crate::error::{At as _, Problem};

/// Adds the resources that jobs and attempts name, and sets attempts as holders.
pub(crate) fn complete(snapshot: &mut Snapshot) -> Result<(), Problem> {
    let mut resources = Resources::new(std::mem::take(&mut snapshot.resources));
    for (index, job) in snapshot.jobs.iter().enumerate() {
        if let Some(Ask::Named(name)) = &job.resource {
            let asked = resources.ask(name, &job.tenant);
            asked.map(|_| ()).at("resource").at(index).at("jobs")?;
        }
    }
    for (index, attempt) in snapshot.attempts.iter().enumerate() {
        if let Some(Ask::Named(name)) = &attempt.holds {
            let asked = resources.ask(name, &attempt.tenant);
            let held = asked.and_then(|resource| hold(resource, &attempt.job));
            held.at("resource").at(index).at("attempts")?;
        }
    }
    snapshot.resources = resources.list;
    Ok(())
}

struct Resources {
    list: Vec<Resource>,
    places: HashMap<Name, usize>,
}

impl Resources {
    fn new(list: Vec<Resource>) -> Self {
        let places = list.iter().enumerate().map(|(place, each)| (each.name.clone(), place));
        Self { places: places.collect(), list }
    }

    /// The resource `name`, if `tenant` may use it. Every tenant may use an unlisted one.
    fn ask(&mut self, name: &Name, tenant: &TenantId) -> Result<&mut Resource, Problem> {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => self.add(name)?,
        };
        let resource = &mut self.list[place];
        match resource.tenant.as_ref().filter(|owner| *owner != tenant) {
            Some(owner) => {
                let what = format!("is `{name}`, which is `{owner}`'s, not `{tenant}`'s");
                let hint = "leave the tenant of the resource out to make it anybody's";
                Err(Problem::new(what).with_hint(hint))
            }
            None => Ok(resource),
        }
    }

    fn add(&mut self, name: &Name) -> Result<usize, Problem> {
        let place = self.list.len();
        if place == maxima::RESOURCES_MAX {
            let most = maxima::RESOURCES_MAX;
            let what = format!("is `{name}`, a resource more than the {most} that there may be");
            return Err(Problem::new(what));
        }
        self.list.push(Resource { name: name.clone(), tenant: None, holder: None });
        self.places.insert(name.clone(), place);
        Ok(place)
    }
}

fn hold(resource: &mut Resource, job: &JobId) -> Result<(), Problem> {
    if let Some(holder) = resource.holder.as_ref().filter(|holder| *holder != job) {
        let name = &resource.name;
        let what = format!("is `{name}`, which job `{holder}` holds, not job `{job}`");
        return Err(Problem::new(what).with_hint("one job at a time may hold a resource"));
    }
    resource.holder = Some(job.clone());
    Ok(())
}
