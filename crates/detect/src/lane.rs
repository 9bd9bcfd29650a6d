//! A lane: the runs of its types go one after the other, each with its detection and all its jobs.
//!
//! **Invariant:** one run at a time, and one detector of it at a time. A run asks no worker twice.
//!
//! **Invariant:** the caller persists each change of a step before it takes the next step.

use std::collections::{BTreeMap, BTreeSet};

use model::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Ends, Policy, Run, Sieve, Status};

/// The persisted state of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lane {
    /// When the last run of each type began. The next is due an interval later.
    pub began_ms: BTreeMap<String, i64>,
    /// When the last successful run of each type began.
    pub succeeded_ms: BTreeMap<String, i64>,
    /// The type of the last run. The next pass starts after it, so that a slow type early in the
    /// order does not always delay the rest.
    pub last: String,
    /// The last detector of each type, which is preferred as long as it is healthy.
    pub detectors: BTreeMap<String, String>,
    /// Types with a requested run.
    pub asked: BTreeSet<String>,
    /// The number of runs, from which run names are made.
    pub n_runs: u64,
    /// The current run.
    pub group: Option<Group>,
}

/// The current run of a type: its detection and all its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The type.
    pub kind: String,
    /// The name of the run.
    pub run: String,
    /// When it began.
    pub started_ms: i64,
    /// When its time runs out.
    pub until_ms: i64,
    /// A user requested it.
    pub is_asked: bool,
    /// Its phase.
    pub phase: Phase,
    /// The current or last detector.
    pub worker: String,
    /// The error messages so far.
    pub error: String,
    /// Its time ran out.
    pub is_out_of_time: bool,
    /// Received proposals.
    pub n_proposed: u32,
    /// Jobs that were made of them.
    pub n_taken: u32,
    /// Rejected proposals by reason.
    pub refused: BTreeMap<String, u32>,
}

/// The phase of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A worker detects.
    Detecting {
        /// When it began. `None` while no worker is selected.
        since_ms: Option<i64>,
        /// Workers that were asked and did not complete a detection.
        tried: BTreeSet<String>,
    },
    /// Its jobs run. They are in the queue like all others.
    Executing,
    /// No more of its jobs start, and running ones may end.
    Draining {
        /// The end of that time.
        until_ms: i64,
    },
    /// Its running jobs are being stopped.
    Stopping,
}

/// A worker that can detect work of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detector {
    /// Its name.
    pub worker: String,
    /// Whether it could start now.
    pub has_room: bool,
}

/// The current state of a type of the lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Type {
    /// Its policy.
    pub policy: Policy,
    /// Its healthy detectors, by name.
    pub detectors: Vec<Detector>,
    /// A peer scheduler has a detector that could start now.
    pub is_elsewhere: bool,
}

/// The input of a step.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Timestamp,
    /// The types of this lane.
    pub types: &'a BTreeMap<String, Type>,
    /// The selected worker has received its request.
    pub is_told: bool,
    /// Unfinished jobs of the run. `None` if not known any more.
    pub n_unfinished: Option<usize>,
}

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time, unless an event occurs.
    Wait(Option<Timestamp>),
    /// The lane changed: persist it, then take the next step.
    Keep,
    /// Ask this worker to detect work of the run's type.
    Tell(String),
    /// Count the unfinished jobs of the run, and cancel some.
    Look(Sweep),
    /// The run is over: count the endings of its jobs, and call [`Lane::finish`].
    Finish,
    /// Release the lead: this scheduler has nothing to do in the lane.
    LetGo(Turn),
}

/// The next type of a lane without a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This type, on this scheduler.
    Begin(String),
    /// A type that only a peer scheduler can begin.
    Elsewhere,
    /// No type before this time, as far as this scheduler knows.
    Wait(Option<Timestamp>),
}

/// The jobs of a run to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// None.
    Nothing,
    /// Waiting jobs.
    Waiting,
    /// Waiting and running jobs.
    All,
}

impl Lane {
    /// When the next run of a type is due.
    pub fn due_at(&self, kind: &str, policy: &Policy) -> Option<Timestamp> {
        let began = self.began_ms.get(kind)?;
        Some(Timestamp(*began) + policy.interval)
    }

    /// Requests a run of this type.
    pub fn ask(&mut self, kind: &str) {
        self.asked.insert(kind.to_owned());
    }

    /// Takes over the lane of a scheduler that stopped. Its running detection cannot end any more,
    /// so the type is due again. Its jobs continue.
    pub fn inherit(&mut self) {
        let Some(group) = &mut self.group else { return };
        if matches!(group.phase, Phase::Detecting { .. }) {
            "the scheduler that led the lane went away".clone_into(&mut group.error);
            group.phase = Phase::Executing;
            self.began_ms.remove(&group.kind);
        }
    }

    /// The next action. Called again after every event.
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

    /// The worker completed its detection.
    pub fn detected(&mut self) {
        if let Some(group) = &mut self.group
            && matches!(group.phase, Phase::Detecting { .. })
        {
            group.phase = Phase::Executing;
            group.error.clear();
        }
    }

    /// The worker did not complete its detection: the next one is tried.
    pub fn fail(&mut self, error: &str) {
        let Some(group) = &mut self.group else { return };
        let Phase::Detecting { since_ms, tried } = &mut group.phase else { return };
        tried.insert(group.worker.clone());
        *since_ms = None;
        error.clone_into(&mut group.error);
    }

    /// Records the counts of proposals so far.
    pub fn count(&mut self, sieve: &Sieve) {
        if let Some(group) = &mut self.group {
            group.n_proposed = sieve.n_proposed();
            group.n_taken = sieve.n_taken();
            group.refused = sieve.refused();
        }
    }

    /// Cancels the run: no more of its jobs start, and running ones are stopped.
    pub fn cancel(&mut self) -> bool {
        let Some(group) = &mut self.group else { return false };
        if group.phase == Phase::Stopping {
            return false;
        }
        "somebody called it off".clone_into(&mut group.error);
        group.phase = Phase::Stopping;
        true
    }

    /// Ends the run, and returns its record.
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

    /// Removes the state of types that do not exist any more.
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
