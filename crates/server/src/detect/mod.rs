//! Work that workers find: lanes that this scheduler leads, driven over the workers' streams.
//!
//! What to do next is decided in the crate `detect`; here it is done.
//!
//! **Invariant:** a lane is changed by whoever leads it, and what it changed is in the store before
//! a worker or a job hears of it.

mod configure;
mod publish;
mod asked;
mod lead;
mod ask;
mod propose;
mod sweep;
mod note;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use ::detect::{Detector, Lane, Phase, Sieve, Step, Turn, Type, View};
use model::{Millis, Name, Record, Timestamp, WorkerId};

use crate::fleet::Seat;
use crate::scheduler::Scheduler;
use crate::timers::Timer;

pub(crate) use asked::{Asked, What};
pub(crate) use configure::{Known, TypeWords};
pub(crate) use lead::PREFIX as LANE_PREFIX;
pub(crate) use note::{Activity, KINDS, TOPIC as ACTIVITY_TOPIC, run_topic};
pub(crate) use publish::{Publication, Published, check_context};
pub(crate) use sweep::Looked;

/// The jobs of a group are counted again this often, in case others saw them end.
const LOOK_EVERY: Millis = Millis::from_secs(2);

/// What is known of types, and the lanes that this scheduler leads.
#[derive(Debug, Default)]
pub(crate) struct Detection {
    /// This scheduler, among those that may lead.
    pub(crate) holder: String,
    pub(crate) types: BTreeMap<String, Known>,
    pub(crate) lanes: BTreeMap<String, Led>,
    pub(crate) published: Published,
    /// What a worker wants to be told to all, and whether something is on its way to the store.
    to_publish: Option<Publication>,
    is_publishing: bool,
    /// What operators asked for and is not done yet.
    asked: BTreeMap<String, Asked>,
    /// Something happened since the lanes were last looked at.
    pub(crate) is_dirty: bool,
    /// Lanes that others lead, or that nobody does, as they were when they were last seen.
    others: BTreeMap<String, Other>,
    /// Lanes whose lead is not asked for before this moment: somebody has it, or it is on its way.
    not_before: BTreeMap<String, Timestamp>,
    /// Lanes that are being let go of.
    letting_go: BTreeSet<String>,
    /// Types that a worker was asked about.
    describing: BTreeMap<String, WorkerId>,
}

/// A lane that this scheduler does not lead.
#[derive(Debug)]
struct Other {
    lane: Lane,
    /// Until when it is another's.
    until: Timestamp,
}

/// A lane that this scheduler leads.
#[derive(Debug)]
pub(crate) struct Led {
    token: u64,
    until: Timestamp,
    pub(crate) lane: Lane,
    /// Something about it is on its way to the store: the answer goes on.
    is_busy: bool,
    /// It was changed and is not kept yet.
    is_unkept: bool,
    /// The worker that was told to look.
    told: Option<WorkerId>,
    sieve: Option<Sieve>,
    /// Pages of proposals that are on their way to the store.
    n_pages: usize,
    /// How the detection ended, once all its pages are in the store.
    ended: Option<Result<(), String>>,
    n_unfinished: Option<usize>,
    looked_at: Timestamp,
    /// What was asked for and is done once the lane is kept.
    heeded: BTreeSet<String>,
}

impl Led {
    /// Whether this worker was told to look, for this run.
    fn is_told(&self, worker: &WorkerId, run: &str) -> bool {
        let is_run = self.lane.group.as_ref().is_some_and(|group| group.run == run);
        is_run && self.told.as_ref() == Some(worker)
    }

    /// Whether the worker that was told still is the one that is to look.
    fn is_looking(&self) -> bool {
        let Some((group, told)) = self.lane.group.as_ref().zip(self.told.as_ref()) else {
            return false;
        };
        let is_chosen = matches!(group.phase, Phase::Detecting { since_ms: Some(_), .. });
        is_chosen && *told == WorkerId::new(&group.worker)
    }
}

/// The group that jobs of a run are in.
pub(crate) fn group_of(run: &str) -> String {
    format!("detected/{run}")
}

impl Detection {
    pub(crate) fn new() -> Self {
        // A number that no other process has.
        let drawn = RandomState::new().build_hasher().finish();
        Self { holder: format!("scheduler-{drawn:016x}"), ..Self::default() }
    }
}

impl Scheduler {
    /// Takes every step that can be taken, in every lane that is led.
    pub(crate) fn drive_lanes(&mut self, now: Timestamp) {
        self.detection.is_dirty = false;
        let names: Vec<String> = self.detection.lanes.keys().cloned().collect();
        for name in names {
            self.drive(&name, now);
        }
        self.describe_asked();
        self.seek_leads(now);
    }

    fn drive(&mut self, name: &str, now: Timestamp) {
        let types = self.types_of(name);
        loop {
            let Some(led) = self.detection.lanes.get_mut(name) else { return };
            // Whoever may have lost the lead does nothing until it knows.
            if led.is_busy || now >= led.until {
                return;
            }
            if led.heeded.is_empty() {
                self.heed(name);
            }
            let Some(led) = self.detection.lanes.get_mut(name) else { return };
            if led.is_unkept {
                self.keep(name, Vec::new());
                return;
            }
            if now.since(led.looked_at) >= LOOK_EVERY {
                led.n_unfinished = None;
            }
            let (is_told, n_unfinished) = (led.is_looking(), led.n_unfinished);
            let view = View { now, types: &types, is_told, n_unfinished };
            let step = led.lane.step(name, &view);
            self.stop_looking(name);
            match step {
                Step::Keep => {
                    self.keep(name, Vec::new());
                    return;
                }
                Step::Tell(worker) => self.tell_to_look(name, &WorkerId::new(&worker)),
                Step::Look(sweep) => return self.look(name, sweep),
                Step::Finish => return self.count_ends(name),
                // Where nobody else is, nobody else waits for it.
                Step::LetGo(_) if self.is_shared() => return self.let_go(name),
                Step::Wait(at) | Step::LetGo(Turn::Wait(at)) => return self.wait_for(name, at),
                Step::LetGo(Turn::Begin(_) | Turn::Elsewhere) => return,
            }
        }
    }

    fn wait_for(&mut self, name: &str, at: Option<Timestamp>) {
        let Some(led) = self.detection.lanes.get(name) else { return };
        let look_at = led.n_unfinished.map(|_| led.looked_at + LOOK_EVERY);
        if let Some(at) = at.into_iter().chain(look_at).min() {
            self.timers.set(at, Timer::Lane(name.to_owned()));
        }
    }

    /// The types of a lane, with who can look for them.
    fn types_of(&self, lane: &str) -> BTreeMap<String, Type> {
        let known = self.detection.types.iter();
        let known = known.filter(|(_, known)| known.descriptor.is_some());
        let own = known.filter(|(_, known)| known.now.policy.lane == lane);
        let kind = |(name, known): (&String, &Known)| {
            let (detectors, is_elsewhere) = (self.detectors(name), self.is_elsewhere(name));
            (name.clone(), Type { policy: known.now.policy.clone(), detectors, is_elsewhere })
        };
        own.map(kind).collect()
    }

    /// Workers that can look for a type and are well.
    pub(crate) fn detectors(&self, kind: &str) -> Vec<Detector> {
        let name = Name::new(kind);
        let mut detectors = Vec::new();
        for (id, seat) in &self.fleet.seats {
            let n_max = seat.detects.get(&name).copied().unwrap_or(0);
            if n_max > 0 && seat.worker(&self.closed).is_serving() {
                let has_room = self.could_look(id, seat);
                detectors.push(Detector { worker: id.to_string(), has_room });
            }
        }
        detectors
    }

    /// Whether a worker could look for something now.
    fn could_look(&self, worker: &WorkerId, seat: &Seat) -> bool {
        let lanes = self.detection.lanes.values();
        let n_told = lanes.filter(|led| led.told.as_ref() == Some(worker)).count();
        let n_all: u32 = seat.detects.values().fold(0, |sum, n| sum.saturating_add(*n));
        u32::try_from(n_told).is_ok_and(|n_told| n_told < n_all)
    }

    /// Types that some worker here could look for now.
    pub(crate) fn looks_for(&self) -> BTreeSet<String> {
        let seats = self.fleet.seats.iter().filter(|(_, seat)| !seat.detects.is_empty());
        let can = seats.filter(|(id, seat)| {
            seat.worker(&self.closed).is_serving() && self.could_look(id, seat)
        });
        can.flat_map(|(_, seat)| seat.detects.keys().map(ToString::to_string)).collect()
    }

    /// A job came to its end: if it is one of a group, the group may be done.
    pub(crate) fn group_job_ended(&mut self, record: &Record) {
        let Some(group) = record.spec.group.as_deref() else { return };
        let Some(run) = group.strip_prefix("detected/") else { return };
        for led in self.detection.lanes.values_mut() {
            if led.lane.group.as_ref().is_some_and(|group| group.run == run) {
                led.n_unfinished = None;
                self.detection.is_dirty = true;
            }
        }
    }
}
