//! Workloads and fleets for the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Millis, Timestamp};
use sim::read::{self, Options, Reading};
use sim::{Baseline, Conditions, Fleet, Measures, Replay, Scheduler, Start, Workload, replay};

/// A workload and the fleet that it runs on.
pub(crate) struct Bench {
    pub(crate) workload: Workload,
    pub(crate) fleet: Fleet,
    /// What `seed3` remembers.
    pub(crate) window: Millis,
}

/// `het90` or `hetovl`: ours, beside this crate.
pub(crate) fn het(name: &str) -> Bench {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let options = Options { reading: Reading::Plain, weights: vec![1, 2, 5], bad_max: 0 };
    let jobs = folder.join(format!("{name}_jobs.csv.gz"));
    Bench {
        workload: read::workload(&jobs, &options).expect("our workload is well formed"),
        fleet: read::fleet(&folder.join("het_slots.csv")).expect("our fleet is well formed"),
        window: Millis::from_secs(3_600),
    }
}

/// The log of KTH: not ours, so it is where it is, or it is not.
pub(crate) fn kth_m() -> Option<Bench> {
    let options = Options { reading: Reading::KthM, weights: vec![1, 2, 5], bad_max: 0 };
    let jobs = shared("kth_sp2_1996.swf.gz")?;
    Some(Bench {
        workload: read::workload(&jobs, &options).expect("the log is well formed"),
        fleet: Fleet::of_size(1, 100),
        window: Millis::from_secs(24 * 3_600),
    })
}

/// A trace that is not ours; says so if it is not there.
#[expect(clippy::print_stdout, reason = "what was not checked is told")]
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let path = root.join("../shared/traces").join(name);
    if path.is_file() {
        return Some(path);
    }
    println!("not checked: there is no ../shared/traces/{name} beside the repository");
    None
}

impl Bench {
    /// The first so many jobs.
    pub(crate) fn first(mut self, n_jobs: usize) -> Self {
        self.workload.jobs.truncate(n_jobs);
        self
    }

    /// Where and when jobs start under a baseline. Every start is checked.
    pub(crate) fn starts(&self, name: &str, tick: Option<Millis>) -> Vec<Start> {
        let baseline = Baseline::from_name(name).expect("there is such a baseline");
        let scheduler = baseline.scheduler(&self.workload, &self.fleet, self.window);
        self.replay(&mut *scheduler.expect("the baseline is for such a fleet"), tick)
    }

    /// Where and when jobs start under a scheduler. Every start is checked.
    pub(crate) fn replay(&self, scheduler: &mut dyn Scheduler, tick: Option<Millis>) -> Vec<Start> {
        self.replay_under(scheduler, &Conditions { tick, ..Conditions::default() }).starts
    }

    /// What happens under a scheduler and conditions. Every attempt is checked.
    pub(crate) fn replay_under(
        &self,
        scheduler: &mut dyn Scheduler,
        conditions: &Conditions,
    ) -> Replay {
        let replay = replay(&self.workload, &self.fleet, scheduler, conditions, &mut |_| {});
        let replay = replay.expect("every job starts");
        self.check(&replay);
        replay
    }

    pub(crate) fn measures(&self, name: &str) -> Measures {
        let starts = self.starts(name, None);
        Measures::new(&self.workload, &self.fleet, &Replay { starts, ..Replay::default() })
    }

    /// Nobody starts before it arrives or where it does not fit, and no slot is taken twice.
    pub(crate) fn check(&self, replay: &Replay) {
        let mut changes: BTreeMap<(Timestamp, bool, usize), i64> = BTreeMap::new();
        for (job, start) in replay.attempts() {
            let job = &self.workload.jobs[job];
            let worker = &self.fleet.workers[start.worker];
            assert!(start.at >= job.arrival, "{} starts before it arrives", job.id);
            assert!(self.fleet.fits(worker, &self.workload.fits[job.fit]), "{}", job.id);
            let slots = i64::from(job.slots);
            *changes.entry((start.at, true, start.worker)).or_default() += slots;
            *changes.entry((start.end, false, start.worker)).or_default() -= slots;
        }
        let mut used = vec![0; self.fleet.workers.len()];
        for ((_, _, worker), change) in changes {
            used[worker] += change;
            assert!(used[worker] <= i64::from(self.fleet.workers[worker].slots));
        }
    }
}
