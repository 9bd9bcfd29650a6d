//! A lane: its types go one after the other, each with its detection and all its jobs.
//!
//! **Invariant:** one group at a time, and one detector of it at a time; a run asks no worker
//! twice.
//!
//! **Invariant:** whatever a step changes is to be kept before anybody is told.

use std::collections::{BTreeMap, BTreeSet};

use model::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Ends, Policy, Run, Sieve, Status};

/// Everything that must outlive the scheduler that leads a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lane {
    /// When the last run of each type began: the next is due an interval later.
    pub began_ms: BTreeMap<String, i64>,
    /// When the last run of each type began that went well.
    pub succeeded_ms: BTreeMap<String, i64>,
    /// The type that ran last: the next pass starts after it, so that an early slow type does not
    /// always delay the rest.
    pub last: String,
    /// Who looked for work of each type last, and does so again as long as it is well.
    pub detectors: BTreeMap<String, String>,
    /// Types that somebody wants a run of now.
    pub asked: BTreeSet<String>,
    /// Runs so far: they are numbered.
    pub n_runs: u64,
    /// What runs now.
    pub group: Option<Group>,
}

/// A type's detection and all its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The type.
    pub kind: String,
    /// What the run is called.
    pub run: String,
    /// When it began.
    pub started_ms: i64,
    /// When its time is out.
    pub until_ms: i64,
    /// Somebody asked for it.
    pub is_asked: bool,
    /// Where it is.
    pub phase: Phase,
    /// Who looks, or looked last.
    pub worker: String,
    /// What went wrong so far.
    pub error: String,
    /// Its time ran out.
    pub is_out_of_time: bool,
    /// Proposals that came, jobs that were made of them, and refusals by reason.
    pub n_proposed: u32,
    /// Jobs that were made of them.
    pub n_taken: u32,
    /// Refusals by reason.
    pub refused: BTreeMap<String, u32>,
}

/// Where a group is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A worker looks for work.
    Detecting {
        /// Since when; `None` while nobody is chosen.
        since_ms: Option<i64>,
        /// Who was asked and did not look to the end.
        tried: BTreeSet<String>,
    },
    /// Its jobs are done, in the queue like any others.
    Executing,
    /// No more of them start; what runs may end until then.
    Draining {
        /// Until when.
        until_ms: i64,
    },
    /// What still runs is told to stop.
    Stopping,
}

/// A worker that can look for work of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detector {
    /// Its name.
    pub worker: String,
    /// It could begin now.
    pub has_room: bool,
}

/// A type of the lane as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Type {
    /// How it is looked for and done.
    pub policy: Policy,
    /// Who can, and is well, by name.
    pub detectors: Vec<Detector>,
    /// Another scheduler has somebody who could begin now.
    pub is_elsewhere: bool,
}

/// What a step depends on.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Timestamp,
    /// The types of this lane.
    pub types: &'a BTreeMap<String, Type>,
    /// The worker that is to look has been told so.
    pub is_told: bool,
    /// Unfinished jobs of the group; `None` if that is not known any more.
    pub n_unfinished: Option<usize>,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment, unless something happens.
    Wait(Option<Timestamp>),
    /// The lane is changed: keep it, then take the next step.
    Keep,
    /// Tell this worker to look for work of the group's type.
    Tell(String),
    /// Find out how many jobs of the group are unfinished, and call off some.
    Look(Sweep),
    /// The group is done: count how its jobs ended, and [`Lane::finish`].
    Finish,
    /// Nothing is to be done here: whoever has something to do may lead.
    LetGo(Turn),
}

/// Whose turn it is in a lane in which nothing runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This type's, here.
    Begin(String),
    /// That of a type that only another scheduler can begin.
    Elsewhere,
    /// Nobody's before this moment, as far as can be known here.
    Wait(Option<Timestamp>),
}

/// Which jobs of a group are called off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// None.
    Nothing,
    /// Those that wait.
    Waiting,
    /// Also those that run.
    All,
}

impl Lane {
    /// When the next run of a type is due.
    pub fn due_at(&self, kind: &str, policy: &Policy) -> Option<Timestamp> {
        let began = self.began_ms.get(kind)?;
        Some(Timestamp(*began) + policy.interval)
    }

    /// Somebody wants a run of this type now.
    pub fn ask(&mut self, kind: &str) {
        self.asked.insert(kind.to_owned());
    }

    /// Takes over from a scheduler that went away. A detection that it had under way cannot come
    /// to an end any more, so its type is due again; jobs go on.
    pub fn inherit(&mut self) {
        let Some(group) = &mut self.group else { return };
        if matches!(group.phase, Phase::Detecting { .. }) {
            "the scheduler that led the lane went away".clone_into(&mut group.error);
            group.phase = Phase::Executing;
            self.began_ms.remove(&group.kind);
        }
    }

    /// What is to be done next. Called again after everything that happens.
    pub fn step(&mut self, lane: &str, view: &View<'_>) -> Step {
        if self.group.is_some() {
            return self.go_on(view);
        }
        match self.turn(view) {
            Turn::Begin(kind) => {
                self.begin(lane, &kind, view);
                Step::Keep
            }
            turn @ (Turn::Elsewhere | Turn::Wait(_)) => Step::LetGo(turn),
        }
    }

    fn go_on(&mut self, view: &View<'_>) -> Step {
        let Some(group) = &mut self.group else { return Step::Wait(None) };
        let until = Timestamp(group.until_ms);
        let policy = policy_of(view, &group.kind);
        let is_detecting = matches!(group.phase, Phase::Detecting { .. });
        let is_running = is_detecting || group.phase == Phase::Executing;
        if is_running && view.now >= until && (is_detecting || view.n_unfinished != Some(0)) {
            if is_detecting {
                "its time was out before a worker had looked to the end"
                    .clone_into(&mut group.error);
            }
            group.is_out_of_time = true;
            group.phase = Phase::Draining { until_ms: (view.now + policy.drain_grace).0 };
            return Step::Keep;
        }
        match group.phase {
            Phase::Detecting { since_ms, .. } => self.detect(since_ms, view, &policy),
            Phase::Executing => counted(view, Sweep::Nothing, until),
            Phase::Draining { until_ms }
                if view.now.0 >= until_ms && view.n_unfinished != Some(0) =>
            {
                group.phase = Phase::Stopping;
                Step::Keep
            }
            Phase::Draining { until_ms } => counted(view, Sweep::Waiting, Timestamp(until_ms)),
            Phase::Stopping => counted(view, Sweep::All, view.now + Millis::from_secs(1)),
        }
    }

    fn detect(&mut self, since_ms: Option<i64>, view: &View<'_>, policy: &Policy) -> Step {
        let Some(group) = &self.group else { return Step::Wait(None) };
        let Some(since_ms) = since_ms else {
            self.choose(view);
            return Step::Keep;
        };
        let worker = group.worker.clone();
        let until = Timestamp(group.until_ms);
        let deadline = (Timestamp(since_ms) + policy.detect_timeout).min(until);
        let kind = view.types.get(&group.kind);
        let is_there = kind.is_some_and(|kind| kind.detectors.iter().any(|d| d.worker == worker));
        if !is_there {
            self.fail(&format!("worker `{worker}` was lost"));
            Step::Keep
        } else if view.now >= deadline {
            let length = crate::shown_length(policy.detect_timeout);
            self.fail(&format!("worker `{worker}` did not look to the end within {length}"));
            Step::Keep
        } else if view.is_told {
            Step::Wait(Some(deadline))
        } else {
            Step::Tell(worker)
        }
    }

    /// The worker looked to the end.
    pub fn detected(&mut self) {
        if let Some(group) = &mut self.group
            && matches!(group.phase, Phase::Detecting { .. })
        {
            group.phase = Phase::Executing;
            group.error.clear();
        }
    }

    /// The worker did not look to the end: the next is tried.
    pub fn fail(&mut self, error: &str) {
        let Some(group) = &mut self.group else { return };
        let Phase::Detecting { since_ms, tried } = &mut group.phase else { return };
        tried.insert(group.worker.clone());
        *since_ms = None;
        error.clone_into(&mut group.error);
    }

    /// What came of the proposals so far.
    pub fn count(&mut self, sieve: &Sieve) {
        if let Some(group) = &mut self.group {
            group.n_proposed = sieve.n_proposed();
            group.n_taken = sieve.n_taken();
            group.refused = sieve.refused();
        }
    }

    /// Somebody calls the run off: no more of its jobs start, and what runs is stopped.
    pub fn cancel(&mut self) -> bool {
        let Some(group) = &mut self.group else { return false };
        if group.phase == Phase::Stopping {
            return false;
        }
        "somebody called it off".clone_into(&mut group.error);
        group.phase = Phase::Stopping;
        true
    }

    /// The group is over; what is remembered of it.
    pub fn finish(&mut self, now: Timestamp, ends: Ends) -> Option<Run> {
        let group = self.group.take()?;
        let status = match (group.is_out_of_time, group.error.is_empty()) {
            (true, _) => Status::OutOfTime,
            (false, true) => Status::Succeeded,
            (false, false) => Status::Failed,
        };
        if status == Status::Succeeded {
            self.succeeded_ms.insert(group.kind.clone(), group.started_ms);
        }
        Some(Run {
            run: group.run,
            kind: group.kind,
            status,
            started_ms: group.started_ms,
            ended_ms: now.0,
            is_asked: group.is_asked,
            worker: group.worker,
            error: group.error,
            n_proposed: group.n_proposed,
            n_taken: group.n_taken,
            refused: group.refused,
            ends,
        })
    }

    /// Forgets what is known of types that are not there any more.
    pub fn forget_others(&mut self, types: &BTreeMap<String, Type>) {
        self.began_ms.retain(|kind, _| types.contains_key(kind));
        self.succeeded_ms.retain(|kind, _| types.contains_key(kind));
        self.detectors.retain(|kind, _| types.contains_key(kind));
        self.asked.retain(|kind| types.contains_key(kind));
    }
}

fn counted(view: &View<'_>, sweep: Sweep, until: Timestamp) -> Step {
    match view.n_unfinished {
        None => Step::Look(sweep),
        Some(0) => Step::Finish,
        Some(_) => Step::Wait(Some(until)),
    }
}

pub(crate) fn policy_of(view: &View<'_>, kind: &str) -> Policy {
    view.types.get(kind).map(|kind| kind.policy.clone()).unwrap_or_default()
}
