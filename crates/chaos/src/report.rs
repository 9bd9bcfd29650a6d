//! The report of a run, for users.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use checker::{History, Outcome, Recovery, Violation, recovery};

/// The limit of listed violations.
const LISTED_MAX: usize = 30;

/// The report of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The value of `--seed` for a repetition.
    pub seed: u64,
    /// The total duration.
    pub took: Duration,
    /// The number of faults of each kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// All jobs, deleted ones included.
    pub n_jobs: usize,
    /// The number of jobs in each state.
    pub states: BTreeMap<String, usize>,
    /// The number of attempts with each ending.
    pub endings: BTreeMap<String, usize>,
    /// The outcomes of requests: succeeded, failed, unknown at first.
    pub answers: [usize; 3],
    /// Recorded runs.
    pub n_runs: usize,
    /// Comparisons of counters with their rows during the faults.
    pub n_looks: usize,
    /// Stored output chunks, and progress reports.
    pub n_said: [usize; 2],
    /// Changes of jobs in the journal.
    pub n_steps: usize,
    /// The duration of the recovery.
    pub recovery: Recovery,
    /// The time from the last recovery to the end of the last job.
    pub rest: Duration,
    /// The violations.
    pub violations: Vec<Violation>,
}

/// The state of jobs that succeeded and left no trace.
pub const FORGOTTEN: &str = "succeeded and forgotten";

impl Report {
    /// The number of faults.
    pub fn n_faults(&self) -> usize {
        self.faults.values().sum()
    }

    pub(crate) fn add(&mut self, history: &History) {
        let n = |outcome| history.said.iter().filter(|said| said.outcome == outcome).count();
        self.answers = [Outcome::Ok, Outcome::Fail, Outcome::Unknown].map(n);
        self.n_jobs = history.jobs.len();
        for job in &history.jobs {
            let state = if job.is_forgotten { FORGOTTEN } else { &job.state };
            *self.states.entry(state.to_owned()).or_default() += 1;
        }
        for attempt in &history.attempts {
            *self.endings.entry(attempt.ending.clone()).or_default() += 1;
        }
        self.n_runs = history.marks.iter().filter(|mark| mark.what == "start").count();
        self.n_steps = history.steps.len();
        self.recovery = recovery(history).unwrap_or_default();
        self.n_said = [history.output.len(), history.notes.len()];
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: &BTreeMap<String, usize>| {
            let each = counts.iter().map(|(name, n)| format!("{n} {name}"));
            each.collect::<Vec<String>>().join(", ")
        };
        let [done, refused, unknown] = self.answers;
        let [pieces, notes] = self.n_said;
        let seconds =
            |ms: i64| format!("{:.1} s", Duration::from_millis(ms.unsigned_abs()).as_secs_f64());
        let Recovery { n_orphans, orphan_ms, wait_ms } = self.recovery;
        let orphans = format!("{n_orphans}, {}", seconds(orphan_ms));
        let rows = [
            ("jobs", format!("{}: {}", self.n_jobs, list(&self.states))),
            ("attempts", list(&self.endings)),
            ("runs that workers wrote down", self.n_runs.to_string()),
            ("pieces of output, reports of progress", format!("{pieces}, {notes}")),
            ("changes that the database wrote down", self.n_steps.to_string()),
            ("answers", format!("{done} done, {refused} refused, {unknown} unknown at first")),
            ("looks at what is counted", self.n_looks.to_string()),
            ("all jobs final after the last fault in", format!("{:.1} s", self.rest.as_secs_f64())),
            ("attempts that nobody ran then, and how long they took to be let go", orphans),
            ("the longest wait then beside a slot that was free", seconds(wait_ms)),
            ("faults", self.n_faults().to_string()),
        ];
        writeln!(f, "seed {}, {:.0} s\n\n| | |", self.seed, self.took.as_secs_f64())?;
        writeln!(f, "| --- | ---: |")?;
        for (name, value) in rows {
            writeln!(f, "| {name} | {value} |")?;
        }
        for (name, n) in &self.faults {
            writeln!(f, "| – {name} | {n} |")?;
        }
        write!(f, "| violations | {} |", self.violations.len())?;
        let listed = self.violations.iter().take(LISTED_MAX);
        listed.into_iter().try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}
