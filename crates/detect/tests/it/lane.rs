//! Sequences of events, and the actions of a lane.

use std::collections::BTreeMap;

use detect::{Detector, Ends, Lane, Phase, Policy, Run, Status, Step, Sweep, Turn, Type, View};
use model::{Millis, Timestamp};
use proptest::prelude::*;

/// A lane and its surroundings.
pub(crate) struct Scene {
    pub(crate) lane: Lane,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) now: i64,
    is_told: bool,
    n_unfinished: Option<usize>,
    /// Types in the order in which their runs began, with the times.
    begun: Vec<(String, i64)>,
    /// The run and the worker of every requested detection.
    told: Vec<(String, String)>,
    runs: Vec<Run>,
}

impl Scene {
    pub(crate) fn new(kinds: &[&str], workers: &[&str]) -> Self {
        let detectors = |has_room| {
            let one = |worker: &&str| Detector { worker: (*worker).to_owned(), has_room };
            workers.iter().map(one).collect::<Vec<_>>()
        };
        let kind = || Type { policy: policy(), detectors: detectors(true), is_elsewhere: false };
        Self {
            lane: Lane::default(),
            types: kinds.iter().map(|name| ((*name).to_owned(), kind())).collect(),
            now: 1_000_000,
            is_told: false,
            n_unfinished: None,
            begun: Vec::new(),
            told: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn step(&mut self) -> Step {
        let was_idle = self.lane.group.is_none();
        let view = View {
            now: Timestamp(self.now),
            types: &self.types,
            is_told: self.is_told,
            n_unfinished: self.n_unfinished,
        };
        let step = self.lane.step("lane", &view);
        if let Some(group) = self.lane.group.as_ref().filter(|_| was_idle) {
            self.begun.push((group.kind.clone(), self.now));
        }
        step
    }

    /// Takes steps until there is nothing to do. `n_unfinished` sets the number of jobs.
    pub(crate) fn settle(&mut self, n_jobs: usize) -> Step {
        for _ in 0..100 {
            match self.step() {
                Step::Keep => self.is_told &= self.is_detecting(),
                Step::Tell(worker) => {
                    let run = self.lane.group.as_ref().unwrap().run.clone();
                    self.told.push((run, worker));
                    self.is_told = true;
                }
                Step::Look(_) => self.n_unfinished = Some(n_jobs),
                Step::Finish => {
                    let run = self.lane.finish(Timestamp(self.now), Ends::default()).unwrap();
                    self.runs.push(run);
                    (self.is_told, self.n_unfinished) = (false, None);
                }
                rest @ (Step::Wait(_) | Step::LetGo(_)) => return rest,
            }
        }
        panic!("it never comes to rest");
    }

    fn is_detecting(&self) -> bool {
        let group = self.lane.group.as_ref();
        group.is_some_and(|group| matches!(group.phase, Phase::Detecting { since_ms: Some(_), .. }))
    }

    pub(crate) fn kind(&self) -> &str {
        self.lane.group.as_ref().map_or("", |group| &group.kind)
    }

    /// Completes the detection and its jobs.
    fn complete(&mut self) {
        self.lane.detected();
        self.settle(0);
    }

    fn fail(&mut self, error: &str) {
        self.lane.fail(error);
        self.is_told = false;
        self.settle(0);
    }
}

fn policy() -> Policy {
    Policy {
        interval: Millis(10_000),
        detect_timeout: Millis(100),
        runtime_max: Millis(1_000),
        drain_grace: Millis(500),
        ..Policy::default()
    }
}

#[test]
fn types_run_one_after_the_other_by_name() {
    let mut scene = Scene::new(&["vacuum", "balance", "ec"], &["w"]);
    scene.settle(0);
    assert_eq!(scene.kind(), "balance");
    scene.complete();
    assert_eq!(scene.kind(), "ec");
    scene.complete();
    scene.complete();
    assert_eq!(scene.kind(), "", "none is due again before its interval is over");
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Wait(Some(Timestamp(1_010_000)))));
    let runs: Vec<&str> = scene.runs.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(runs, ["lane/1", "lane/2", "lane/3"]);
    assert!(scene.runs.iter().all(|run| run.status == Status::Succeeded));
}

#[test]
fn the_next_pass_starts_after_the_type_that_ran_last() {
    let mut scene = Scene::new(&["a", "b", "c"], &["w"]);
    scene.settle(0);
    scene.lane.detected();
    // The first type is slow: at the end of its run it is due again, like the others.
    scene.now += 900;
    scene.types.get_mut("a").unwrap().policy.interval = Millis(100);
    scene.complete();
    assert_eq!(scene.kind(), "b");
    scene.complete();
    assert_eq!(scene.kind(), "c");
    scene.complete();
    assert_eq!(scene.kind(), "a");
}

#[test]
fn a_changed_interval_counts_at_once() {
    let mut scene = Scene::new(&["a"], &["w"]);
    scene.settle(0);
    scene.complete();
    scene.types.get_mut("a").unwrap().policy.interval = Millis(50);
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Wait(Some(Timestamp(1_000_050)))));
    scene.now += 50;
    scene.settle(0);
    assert_eq!(scene.kind(), "a");
    // A disabled type gets no new run, but its current run continues.
    scene.types.get_mut("a").unwrap().policy.is_enabled = false;
    scene.complete();
    scene.now += 5_000;
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Wait(None)));
}

#[test]
fn last_detector_is_preferred_while_healthy() {
    let mut scene = Scene::new(&["a"], &["u", "v", "w"]);
    scene.lane.detectors.insert("a".to_owned(), "v".to_owned());
    for _ in 0..3 {
        scene.settle(0);
        scene.complete();
        scene.now += 10_000;
    }
    scene.types.get_mut("a").unwrap().detectors.remove(1);
    scene.settle(0);
    scene.complete();
    let workers: Vec<&str> = scene.told.iter().map(|(_, worker)| worker.as_str()).collect();
    assert_eq!(workers, ["v", "v", "v", "w"]);
}

#[test]
fn a_run_tries_each_worker_once_and_then_has_failed() {
    let mut scene = Scene::new(&["a"], &["u", "v", "w"]);
    scene.settle(0);
    scene.fail("at capacity");
    // The second worker times out, and the third disconnects.
    scene.now += 100;
    scene.is_told = true;
    scene.settle(0);
    scene.types.get_mut("a").unwrap().detectors.truncate(2);
    scene.is_told = true;
    scene.settle(0);
    let workers: Vec<&str> = scene.told.iter().map(|(_, worker)| worker.as_str()).collect();
    assert_eq!(workers, ["u", "v", "w"]);
    assert_eq!(scene.runs[0].status, Status::Failed);
    assert_eq!(scene.runs[0].error, "worker `w` was lost");
    assert!(!scene.lane.succeeded_ms.contains_key("a"));
}

#[test]
fn run_out_of_time_cancels_waiting_jobs_and_drains_running_ones() {
    let mut scene = Scene::new(&["a", "b"], &["w"]);
    scene.settle(0);
    scene.lane.detected();
    assert_eq!(scene.settle(3), Step::Wait(Some(Timestamp(1_001_000))));
    scene.now += 1_000;
    assert_eq!(scene.step(), Step::Keep);
    scene.n_unfinished = None;
    assert_eq!(scene.step(), Step::Look(Sweep::Waiting));
    scene.n_unfinished = Some(1);
    assert_eq!(scene.step(), Step::Wait(Some(Timestamp(1_001_500))));
    scene.now += 500;
    assert_eq!(scene.step(), Step::Keep);
    scene.n_unfinished = None;
    assert_eq!(scene.step(), Step::Look(Sweep::All));
    scene.settle(0);
    assert_eq!(scene.runs[0].status, Status::OutOfTime);
    assert_eq!(scene.kind(), "b", "the lane goes on");
}

#[test]
fn detection_ends_with_its_run() {
    let mut scene = Scene::new(&["a"], &["w"]);
    scene.types.get_mut("a").unwrap().policy.detect_timeout = Millis(5_000);
    assert_eq!(scene.settle(0), Step::Wait(Some(Timestamp(1_001_000))));
    scene.now += 1_000;
    scene.settle(0);
    assert_eq!(scene.runs[0].status, Status::OutOfTime);
}

#[test]
fn new_leader_does_not_repeat_a_completed_detection() {
    let mut scene = Scene::new(&["a"], &["w"]);
    scene.settle(0);
    scene.lane.detected();
    scene.settle(5);
    let kept = serde_json::to_string(&scene.lane).unwrap();
    let mut next = Scene::new(&["a"], &["w"]);
    next.lane = serde_json::from_str(&kept).unwrap();
    next.lane.inherit();
    next.settle(5);
    assert_eq!((next.kind(), next.told.len()), ("a", 0));
    next.n_unfinished = Some(0);
    next.settle(0);
    assert_eq!((next.runs[0].status, next.told.len()), (Status::Succeeded, 0));
}

#[test]
fn interrupted_detection_is_due_again() {
    let mut scene = Scene::new(&["a"], &["w"]);
    scene.settle(0);
    scene.lane.inherit();
    scene.is_told = false;
    scene.settle(0);
    assert_eq!((scene.runs.len(), scene.runs[0].status), (1, Status::Failed));
    assert_eq!((scene.kind(), scene.told.len()), ("a", 2));
}

#[test]
fn requested_run_waits_for_the_lane() {
    let mut scene = Scene::new(&["a", "b"], &["w"]);
    scene.settle(0);
    scene.complete();
    scene.complete();
    scene.lane.ask("b");
    scene.settle(0);
    assert_eq!(scene.kind(), "b");
    scene.lane.ask("a");
    assert_eq!(scene.kind(), "b", "one after the other");
    scene.complete();
    assert!(scene.runs[2].is_asked);
    assert_eq!(scene.kind(), "a");
}

#[derive(Clone, Debug)]
enum Happening {
    Pass(i64),
    Complete,
    Fail,
    Jobs(usize),
    Toggle(usize),
    Drop(usize),
    TakeOver,
    Cancel,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1..800_i64).prop_map(Happening::Pass),
        4 => Just(Happening::Complete),
        1 => Just(Happening::Fail),
        3 => (0..3_usize).prop_map(Happening::Jobs),
        1 => (0..3_usize).prop_map(Happening::Toggle),
        1 => (0..2_usize).prop_map(Happening::Drop),
        1 => Just(Happening::TakeOver),
        1 => Just(Happening::Cancel),
    ]
}

impl Scene {
    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Pass(ms) => self.now += ms,
            Happening::Complete => self.lane.detected(),
            Happening::Fail => {
                self.lane.fail("it failed");
                self.is_told = false;
            }
            Happening::Jobs(n) => self.n_unfinished = Some(*n),
            Happening::Toggle(at) => {
                let kind = self.types.values_mut().nth(*at).unwrap();
                kind.policy.is_enabled = !kind.policy.is_enabled;
            }
            Happening::Drop(at) => {
                for kind in self.types.values_mut() {
                    let detector = &mut kind.detectors[*at];
                    detector.has_room = !detector.has_room;
                }
            }
            Happening::TakeOver => {
                let kept = serde_json::to_string(&self.lane).unwrap();
                self.lane = serde_json::from_str(&kept).unwrap();
                if self.is_detecting() {
                    // The repeated run does not count as a second run within the interval.
                    let kind = self.kind().to_owned();
                    self.begun.retain(|(other, _)| *other != kind);
                }
                self.lane.inherit();
                (self.is_told, self.n_unfinished) = (false, None);
            }
            Happening::Cancel => drop(self.lane.cancel()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn lane_keeps_its_invariants_for_random_events(
        happenings in prop::collection::vec((happening(), 0..3_usize), 1..120)
    ) {
        let mut scene = Scene::new(&["a", "b", "c"], &["v", "w"]);
        for kind in scene.types.values_mut() {
            kind.policy.interval = Millis(2_000);
        }
        for (happening, n_jobs) in &happenings {
            scene.happen(happening);
            scene.settle(*n_jobs);
        }
        // No type begins twice within its interval.
        for kind in ["a", "b", "c"] {
            let begun = scene.begun.iter().filter(|(other, _)| other == kind);
            let moments: Vec<i64> = begun.map(|(_, at)| *at).collect();
            prop_assert!(moments.windows(2).all(|pair| pair[1] - pair[0] >= 2_000), "{moments:?}");
        }
        // No run asks a worker twice.
        let mut told = scene.told.clone();
        let n_told = told.len();
        told.sort();
        told.dedup();
        prop_assert_eq!(told.len(), n_told);
        // Every run ends once.
        let mut names: Vec<&str> = scene.runs.iter().map(|run| run.run.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), scene.runs.len());
    }

    #[test]
    fn every_due_type_runs_before_any_type_runs_twice(
        lengths in prop::collection::vec(1..999_i64, 40)
    ) {
        let mut scene = Scene::new(&["a", "b", "c", "d"], &["w"]);
        for kind in scene.types.values_mut() {
            kind.policy.interval = Millis(100);
        }
        for length in lengths {
            scene.settle(1);
            scene.lane.detected();
            // All types are due when one run ends.
            scene.now += length.max(101);
            scene.n_unfinished = Some(0);
            scene.settle(0);
        }
        let kinds: Vec<&str> = scene.begun.iter().map(|(kind, _)| kind.as_str()).collect();
        let in_turn = ["a", "b", "c", "d"].into_iter().cycle();
        let expected: Vec<&str> = in_turn.take(kinds.len()).collect();
        prop_assert_eq!(kinds, expected);
    }
}
