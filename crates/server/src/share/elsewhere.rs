//! What other schedulers have under way: their jobs use quotas, shares and resources as ours do.
//!
//! Each says it in one document, twice a second; what is under way elsewhere is in this world as
//! attempts of workers that are not here. What a limit must not exceed is counted in the store.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Ask, Attempt, Ended, Event, Fixed, JobId, Millis, Name, TenantId, Timestamp, Worker, WorkerId,
};
use serde::{Deserialize, Serialize};
use store::{Meeting, Peer};

use super::seats::Kind;
use crate::scheduler::Scheduler;

/// Attempts of one kind elsewhere that are counted one by one; the rest is counted as one.
const ONE_BY_ONE: u32 = 256;
/// Kinds that a scheduler tells of.
const KINDS_MAX: usize = 10_000;
/// What is not quite the same as before is counted anew after so long.
const COUNTED_WITHIN: Millis = Millis::from_secs(2);
/// Not quite the same: a part of so many more or less.
const ABOUT: u32 = 16;

/// What a scheduler says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Said {
    /// Workers that are connected to it.
    workers: usize,
    /// Those of them that take work, by kind.
    kinds: Vec<(Kind, u32)>,
    /// Those that take no work, by kind.
    away: Vec<(Kind, u32)>,
    /// Those of them that are only unhealthy. An older version does not say it.
    unwell: Vec<(Kind, u32)>,
    under_way: Vec<Group>,
    /// Types that a worker there could look for work of now.
    looks_for: BTreeSet<String>,
    /// The seal of the settings that it goes by.
    settings: String,
    /// Somebody there wants to hear what becomes of all jobs.
    watches: bool,
}

impl Said {
    /// What a newer version says that this one does not understand counts for nothing.
    fn by(peer: &Peer) -> Self {
        serde_json::from_str(&peer.said).unwrap_or_default()
    }
}

/// How jobs are dealt to those that have workers.
pub(super) struct Deal {
    /// The place of this scheduler among so many.
    pub(super) stripe: (usize, usize),
    /// When it said so.
    pub(super) said: Timestamp,
    /// When the one of the others said something last that has been quiet for longest.
    pub(super) others_said: Option<Timestamp>,
}

/// `None`: there are no workers here.
pub(super) fn deal(meeting: &Meeting) -> Option<Deal> {
    let places = meeting.all.iter().enumerate();
    let seated: Vec<(usize, &Peer)> =
        places.filter(|(_, peer)| Said::by(peer).workers > 0).collect();
    let own = seated.iter().position(|(place, _)| *place == meeting.place)?;
    let others = seated.iter().filter(|(place, _)| *place != meeting.place);
    let (stripe, said) = ((own, seated.len()), seated[own].1.at);
    Some(Deal { stripe, said, others_said: others.map(|(_, peer)| peer.at).min() })
}

/// Jobs of one kind that are under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    tenant: String,
    kind: String,
    pool: String,
    /// What each of them holds; a resource is held by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
    /// The job that holds that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    n: u32,
    slots: u32,
    cost: i64,
}

impl Group {
    /// Whether there are about as many, of the same kind.
    fn is_about(&self, other: &Self) -> bool {
        let alike = Self { n: other.n, slots: other.slots, cost: other.cost, ..self.clone() };
        alike == *other
            && self.n.abs_diff(other.n) <= self.n / ABOUT
            && self.slots.abs_diff(other.slots) <= self.slots / ABOUT
            && self.cost.abs_diff(other.cost) <= self.cost.unsigned_abs() / u64::from(ABOUT)
    }
}

/// A busy scheduler has a few attempts more or less each time: to count all of them anew for that
/// takes a good part of what its jobs take.
fn are_about(some: &[Group], others: &[Group]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.is_about(other))
}

/// Tenant, type, pool, and what each holds.
type Alike = (String, String, String, Option<String>);

/// What others have under way, as far as this world knows.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    known: Vec<Group>,
    attempts: Vec<JobId>,
    /// Their workers.
    pub(super) workers: Vec<(Kind, u32)>,
    /// Those of them that take no work.
    pub(super) away: Vec<(Kind, u32)>,
    /// Those of them that are only unhealthy.
    pub(super) unwell: Vec<(Kind, u32)>,
    /// Types that workers of others could look for work of now.
    looks_for: BTreeSet<String>,
    /// The seals of the settings that all go by, this scheduler included.
    seals: Vec<String>,
    /// When the oldest of what is counted was said.
    pub(super) said: Option<Timestamp>,
    /// When what is under way there was counted last.
    counted: Timestamp,
}

impl Scheduler {
    /// What this scheduler says of itself.
    pub(super) fn says(&self) -> String {
        let said = Said {
            workers: self.fleet.n_connected(),
            kinds: self.kinds_of_workers(),
            away: self.kinds_away(),
            unwell: self.kinds_unwell(),
            under_way: self.under_way(),
            looks_for: self.looks_for(),
            settings: self.sharing.iter().map(|sharing| sharing.settings.seal.as_str()).collect(),
            watches: self.hub.is_watched(),
        };
        serde_json::to_string(&said).unwrap_or_default()
    }

    fn under_way(&self) -> Vec<Group> {
        let mut sums: BTreeMap<Alike, (u32, u32, Fixed)> = BTreeMap::new();
        let mut holders: BTreeMap<String, String> = BTreeMap::new();
        for job in self.jobs.live_jobs() {
            let Some(live) = self.jobs.live(job) else { continue };
            let holds = match &live.holds {
                Some(Ask::Named(name)) => Some(name.to_string()),
                Some(Ask::Any) | None => None,
            };
            holders.extend(holds.clone().map(|name| (name, job.to_string())));
            let key =
                (live.tenant.to_string(), live.kind.to_string(), live.pool.to_string(), holds);
            let sum = sums.entry(key).or_default();
            sum.0 += 1;
            sum.1 = sum.1.saturating_add(live.slots);
            sum.2 += live.cost;
        }
        let kinds = sums.into_iter().take(KINDS_MAX);
        kinds
            .map(|((tenant, kind, pool, holds), (n, slots, cost))| Group {
                tenant,
                kind,
                pool,
                holder: holds.as_ref().and_then(|name| holders.get(name).cloned()),
                holds,
                n,
                slots,
                cost: cost.in_thousandths(),
            })
            .collect()
    }

    /// Takes in what others said, if it is not as before.
    pub(super) fn count_elsewhere(&mut self, meeting: &Meeting) {
        let others = meeting.all.iter().enumerate().filter(|(at, _)| *at != meeting.place);
        let said: Vec<Said> = others.clone().map(|(_, peer)| Said::by(peer)).collect();
        self.hub.others_watch(said.iter().any(|one| one.watches));
        let Some(sharing) = &mut self.sharing else { return };
        let looks_for = said.iter().flat_map(|one| one.looks_for.iter().cloned()).collect();
        self.detection.is_dirty |= sharing.elsewhere.looks_for != looks_for;
        sharing.elsewhere.looks_for = looks_for;
        sharing.elsewhere.workers = said.iter().flat_map(|one| one.kinds.clone()).collect();
        sharing.elsewhere.away = said.iter().flat_map(|one| one.away.clone()).collect();
        sharing.elsewhere.unwell = said.iter().flat_map(|one| one.unwell.clone()).collect();
        let seals = said.iter().map(|one| one.settings.clone());
        sharing.elsewhere.seals = seals.chain([sharing.settings.seal.clone()]).collect();
        // Somebody knows of a change that another did not hear of.
        let is_sealed = |seal: &String| *seal == sharing.settings.seal;
        sharing.settings.is_wanted |= !sharing.elsewhere.seals.iter().all(is_sealed);
        let said_at = others.map(|(_, peer)| peer.at).min();
        let known: Vec<Group> = said.into_iter().flat_map(|one| one.under_way).collect();
        let now = self.store.now();
        let is_recent = now.since(sharing.elsewhere.counted) < COUNTED_WITHIN;
        let is_same = sharing.elsewhere.known == known;
        if !is_same && is_recent && are_about(&sharing.elsewhere.known, &known) {
            return;
        }
        sharing.elsewhere.said = said_at;
        if is_same {
            return;
        }
        let before = std::mem::take(&mut sharing.elsewhere.attempts);
        sharing.elsewhere.known = known;
        sharing.elsewhere.counted = now;
        for job in before {
            let ended = Ended { job, cost: Fixed::ZERO, completed: false, at: now };
            self.world.apply(Event::Ended(ended));
        }
        self.start_elsewhere(now);
        self.is_dirty = true;
    }

    /// What others have is in this world, on workers that are not.
    pub(super) fn start_elsewhere(&mut self, now: Timestamp) {
        let Some(sharing) = &mut self.sharing else { return };
        let mut started = Vec::new();
        for some in &sharing.elsewhere.known {
            let n = some.n.clamp(1, ONE_BY_ONE);
            for place in 0..n {
                let job = JobId::new(&format!("elsewhere-{}", started.len()));
                let attempt = some.attempt(job.clone(), (place, n), now);
                // Without slots of its own, it could never run a job here.
                let worker = Worker::new(attempt.worker.clone());
                let mut absent = Worker { healthy: false, slots: 0, ..worker };
                absent.pool = Name::new(&some.pool);
                let worker = absent.id.clone();
                self.world.apply(Event::Joined(Box::new(absent)));
                self.world.apply(Event::Started(Box::new(attempt)));
                self.world.apply(Event::Left(worker));
                started.push(job);
            }
        }
        sharing.elsewhere.attempts = started;
    }

    /// Its workers are not here, also after names that nobody uses were forgotten.
    pub(crate) fn leave_elsewhere(&mut self) {
        let known = self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.known);
        let workers: Vec<WorkerId> = known.map(Group::worker).collect();
        for worker in workers {
            self.world.apply(Event::Left(worker));
        }
    }

    /// The job that holds an exclusive lock at another scheduler.
    pub(crate) fn holder_elsewhere(&self, name: &str) -> Option<JobId> {
        let mut known = self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.known);
        let group = known.find(|group| group.holds.as_deref() == Some(name))?;
        group.holder.as_deref().map(JobId::new)
    }

    /// Slots that attempts of other schedulers use.
    pub(crate) fn slots_used_elsewhere(&self) -> u64 {
        let known = self.sharing.iter().flat_map(|sharing| &sharing.elsewhere.known);
        known.map(|group| u64::from(group.slots)).sum()
    }

    /// Whether another scheduler has a worker that could look for work of this type now.
    pub(crate) fn is_elsewhere(&self, kind: &str) -> bool {
        self.sharing.as_ref().is_some_and(|it| it.elsewhere.looks_for.contains(kind))
    }

    /// The seals of the settings that all schedulers go by; `None` if there is but this one.
    pub(crate) fn seals(&self) -> Option<Vec<String>> {
        self.sharing.as_ref().map(|sharing| sharing.elsewhere.seals.clone())
    }

    /// For how long what is known of others has been known, in milliseconds.
    pub(crate) fn staleness_ms(&self) -> u64 {
        let said = self.sharing.as_ref().and_then(|sharing| sharing.elsewhere.said);
        said.map_or(0, |said| self.ms_since(said))
    }

    /// The same of what tenants were charged there.
    pub(crate) fn usage_age_ms(&self) -> u64 {
        if self.is_shared() { self.ms_since(self.usage_from) } else { 0 }
    }

    fn ms_since(&self, moment: Timestamp) -> u64 {
        self.store.now().since(moment).0.max(0).unsigned_abs()
    }
}

impl Group {
    fn worker(&self) -> WorkerId {
        WorkerId::new(&format!("elsewhere-{}", self.pool))
    }

    /// One of `n` attempts that together are what was said.
    fn attempt(&self, job: JobId, (place, n): (u32, u32), now: Timestamp) -> Attempt {
        let part = |all: u32| all / n + u32::from(place < all % n);
        let cost = self.cost / i64::from(n);
        Attempt {
            job,
            tenant: TenantId::new(&self.tenant),
            worker: self.worker(),
            kind: Some(Name::new(&self.kind)),
            needs: model::job::Needs::new(),
            slots: part(self.slots).max(1),
            amounts: model::job::Amounts::new(),
            priority: 0,
            ready: now,
            started: now,
            cost: Fixed::thousandths(cost),
            estimate: None,
            on_demand: false,
            is_contested: false,
            limit: None,
            evictions: 0,
            traits: model::Traits::default(),
            holds: self.holds.as_ref().map(|name| Ask::Named(Name::new(name))),
            stopping_for: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::scheduler;
    use super::*;

    fn under_way(n: u32, at: i64) -> Meeting {
        let group = format!(
            r#"{{"tenant": "a", "kind": "k", "pool": "p", "n": {n}, "slots": {n}, "cost": 0}}"#
        );
        let other = Peer { said: format!(r#"{{"under_way": [{group}]}}"#), at: Timestamp(at) };
        let own = Peer { said: String::new(), at: Timestamp(at) };
        Meeting { place: 0, all: vec![own, other] }
    }

    #[tokio::test]
    async fn a_few_attempts_more_among_many_are_counted_later_and_one_among_few_at_once() {
        for (before, after, is_counted) in
            [(160, 160, false), (160, 170, false), (160, 171, true), (15, 16, true), (160, 0, true)]
        {
            let mut scheduler = scheduler().await;
            scheduler.count_elsewhere(&under_way(before, 1));
            scheduler.is_dirty = false;
            scheduler.count_elsewhere(&under_way(after, 2));
            assert_eq!(scheduler.is_dirty, is_counted, "{before}, {after}");
            let later = scheduler.store.now() - COUNTED_WITHIN;
            scheduler.sharing.as_mut().unwrap().elsewhere.counted = later;
            scheduler.count_elsewhere(&under_way(after, 3));
            let known = &scheduler.sharing.as_ref().unwrap().elsewhere.known;
            assert_eq!(known[0].n, after, "in the end it is known");
        }
    }
}
