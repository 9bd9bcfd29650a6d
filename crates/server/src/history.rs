//! What earlier runs of the same key used, as a prediction for the next.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use decide::{Lengths, Like, Said, Skill};
use model::{Fixed, History, JobId, Measured, Millis, Name, Spec, TenantId};
use store::Run;

use crate::command;

/// Runs of one key that predictions are drawn from.
const RUNS_MAX: usize = 200;
/// Keys that are remembered; beyond, the one that was used longest ago is forgotten.
const KEYS_MAX: usize = 10_000;

/// Of so many jobs is remembered what was said of their lengths when they were seen first, and of
/// as many before them. One of which it was forgotten is not judged.
const SAID_MAX: usize = 10_000;

/// Type, tenant and the submitter's key, as a hash: that two have the same is not to be expected,
/// and would cost no more than a bad guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn of(kind: &Name, tenant: &TenantId, key: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (kind, tenant, key).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The last runs of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histories {
    by_key: BTreeMap<Key, Runs>,
    clock: u64,
    lengths: Lengths,
    /// What was said of lengths: lately, and before that.
    said: [BTreeMap<JobId, Option<Said>>; 2],
}

#[derive(Clone, Debug)]
struct Runs {
    kind: Name,
    /// What each used, and how long it took.
    last: VecDeque<(Measured, Millis)>,
    /// What they added up to when they were last summed up.
    summary: Option<History>,
    /// Runs since then.
    n_new: usize,
    touched: u64,
}

impl Runs {
    const fn of(kind: Name) -> Self {
        Self { kind, last: VecDeque::new(), summary: None, n_new: 0, touched: 0 }
    }
}

impl Histories {
    /// A job waits: what is said of its length now is judged once it has run.
    pub(crate) fn submitted(&mut self, job: &JobId, spec: &Spec) {
        let [young, old] = &mut self.said;
        if young.contains_key(job) || old.contains_key(job) {
            return;
        }
        if young.len() >= SAID_MAX {
            *old = std::mem::take(young);
        }
        let said = asked(spec, |like| self.lengths.say(like));
        young.insert(job.clone(), said);
    }

    /// One more run, of this job.
    pub(crate) fn ended(&mut self, run: &Run, job: &JobId, spec: &Spec) {
        let [young, old] = &mut self.said;
        let said = young.remove(job).or_else(|| old.remove(job)).flatten();
        asked(spec, |like| self.lengths.learn_of(like, run.duration, said.as_ref()));
        self.learn(run);
    }

    /// One more run, of which no more is known than the store keeps: whose it was, its type and
    /// key.
    pub(crate) fn remember(&mut self, run: &Run) {
        let mut spec = Spec::new(run.tenant.clone(), run.kind.clone());
        spec.history_key.clone_from(&run.history_key);
        asked(&spec, |like| self.lengths.learn(like, run.duration));
        self.learn(run);
    }

    /// How well lengths of each type were predicted.
    pub(crate) fn skills(&self) -> impl Iterator<Item = (&Name, Skill)> {
        self.lengths.skills()
    }

    fn learn(&mut self, run: &Run) {
        self.clock += 1;
        let Run { kind, tenant, history_key, duration, .. } = run;
        let key = Key::of(kind, tenant, history_key);
        if self.by_key.len() >= KEYS_MAX && !self.by_key.contains_key(&key) {
            self.forget_oldest();
        }
        let known = self.by_key.entry(key).or_insert_with(|| Runs::of(kind.clone()));
        known.touched = self.clock;
        known.last.push_back((run.measured, *duration));
        while known.last.len() > RUNS_MAX {
            known.last.pop_front();
        }
        known.n_new += 1;
        // One run in two hundred changes little: sums are made anew when a twentieth is new.
        if known.n_new * 20 >= known.last.len() {
            known.summary = Some(summary(&known.last));
            known.n_new = 0;
        }
    }

    /// What runs like this job's were like; `None` if there were none.
    pub(crate) fn of(&self, spec: &Spec) -> Option<History> {
        self.by_key.get(&Key::of(&spec.kind, &spec.tenant, &spec.history_key))?.summary
    }

    /// How long this job will run, as far as has proved to tell. What its submitter says is one
    /// more thing that may tell, and no truth; what limits it is both.
    pub(crate) fn length(&self, spec: &Spec) -> Option<Millis> {
        let length = asked(spec, |like| self.lengths.predict(like))?.length;
        // What may not run longer does not run longer.
        Some(spec.run_timeout.map_or(length, |limit| length.min(limit)))
    }

    /// What runs of each type were like, over all tenants and keys.
    pub(crate) fn by_kind(&self) -> BTreeMap<Name, History> {
        let mut kinds: BTreeMap<Name, History> = BTreeMap::new();
        for runs in self.by_key.values() {
            let Some(summary) = runs.summary else { continue };
            let known = kinds.entry(runs.kind.clone()).or_default();
            known.duration = weighted(known, &summary);
            known.ram_peak_mb = known.ram_peak_mb.max(summary.ram_peak_mb);
            known.samples = known.samples.saturating_add(summary.samples);
        }
        kinds
    }

    fn forget_oldest(&mut self) {
        let oldest = self.by_key.iter().min_by_key(|(_, runs)| runs.touched);
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.by_key.remove(&key);
        }
    }
}

/// Asks about all that is known of a job when it is submitted.
fn asked<T>(spec: &Spec, ask: impl FnOnce(Like<'_>) -> T) -> T {
    let command = command::program(spec).unwrap_or_default();
    ask(Like {
        kind: Some(&spec.kind),
        tenant: &spec.tenant,
        key: &spec.history_key,
        command: &command,
        labels: Some(&spec.labels),
        inputs: spec.hint.as_ref(),
        claim: spec.estimate,
        limit: spec.run_timeout,
    })
}

/// The mean of two means.
fn weighted(one: &History, other: &History) -> Option<Millis> {
    let total = |history: &History| {
        history.duration.map(|mean| i128::from(mean.0) * i128::from(history.samples))
    };
    let (Some(first), Some(second)) = (total(one), total(other)) else {
        return one.duration.or(other.duration);
    };
    let n = i128::from(one.samples) + i128::from(other.samples);
    i64::try_from((first + second).checked_div(n)?).ok().map(Millis)
}

fn summary(runs: &VecDeque<(Measured, Millis)>) -> History {
    let measured = || runs.iter().map(|(measured, _)| measured);
    let n_oom = measured().filter(|measured| measured.out_of_memory).count();
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    History {
        samples: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        ram_peak_mb: p95(measured().filter_map(|measured| measured.ram_peak_mb).collect()),
        cpu_ms: mean(measured().filter_map(|measured| measured.cpu_ms)),
        disk_bytes: mean(measured().filter_map(|measured| measured.disk_bytes)),
        duration: mean(runs.iter().map(|(_, duration)| duration.0.unsigned_abs()))
            .map(|ms| Millis(i64::try_from(ms).unwrap_or(i64::MAX))),
        oom_rate: Some(Fixed::ONE.scale(count(n_oom), count(runs.len()).max(1))),
    }
}

/// The smallest value that at least 95 of 100 do not exceed.
fn p95(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() * 95).div_ceil(100);
    values.get(rank.checked_sub(1)?).copied()
}

fn mean(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (n, sum) =
        values.fold((0_u64, 0_u64), |(n, sum), value| (n + 1, sum.saturating_add(value)));
    sum.checked_div(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Ending, Measured, Timestamp};

    fn run(ram: u64, duration: i64) -> Run {
        Run {
            tenant: TenantId::new("a"),
            kind: Name::new("pdf"),
            history_key: String::new(),
            at: Timestamp(0),
            wait: Millis(0),
            duration: Millis(duration),
            ending: Ending::Succeeded,
            measured: Measured { ram_peak_mb: Some(ram), ..Measured::default() },
            fetched: None,
            n_dependents: 0,
        }
    }

    #[test]
    fn memory_is_predicted_by_the_95th_percentile_of_the_last_200_runs() {
        let mut histories = Histories::default();
        histories.remember(&run(1_000_000, 1));
        for ram in (1..=200).chain(1..=200) {
            histories.remember(&run(ram, 10));
        }
        let spec = Spec::new(TenantId::new("a"), Name::new("pdf"));
        let history = histories.of(&spec).unwrap();
        assert_eq!((history.samples, history.ram_peak_mb), (200, Some(190)));
        assert_eq!(history.duration, Some(Millis(10)));
        assert_eq!(history.cpu_ms, None);
    }

    #[test]
    fn a_job_is_predicted_by_its_like_and_never_beyond_what_it_may_run() {
        let mut histories = Histories::default();
        let new = Spec::new(TenantId::new("b"), Name::new("pdf"));
        assert_eq!(histories.length(&new), None);
        for _ in 0..8 {
            assert_eq!(histories.length(&new), None, "too little ran to tell");
            histories.remember(&run(1, 60_000));
        }
        assert_eq!(histories.length(&new), Some(Millis(60_000)), "as others of its type");
        let short = Spec { run_timeout: Some(Millis(5_000)), ..new.clone() };
        assert_eq!(histories.length(&short), Some(Millis(5_000)));
        let told = Spec { estimate: Some(Millis(7)), ..new };
        assert_eq!(histories.length(&told), Some(Millis(60_000)), "it may say so");
    }

    /// A job that was seen, and ran for so long.
    fn serve(histories: &mut Histories, n: u64, spec: &Spec, duration: Millis) {
        let job = JobId::number(n);
        histories.submitted(&job, spec);
        histories.submitted(&job, spec);
        histories.ended(&Run { duration, ..run(1, 0) }, &job, spec);
    }

    #[test]
    fn claims_commands_and_labels_tell_once_they_proved_to() {
        let mut histories = Histories::default();
        let of = |program: &str, stage: &str| Spec {
            payload: format!(r#"{{"argv": ["/usr/bin/{program}", "-j4"]}}"#).into_bytes(),
            labels: [("stage".to_owned(), stage.to_owned())].into(),
            ..Spec::new(TenantId::new("a"), Name::new("exec"))
        };
        let claiming = |ms| Spec { estimate: Some(Millis(ms)), ..of("sh", "x") };
        for n in 0..40 {
            serve(&mut histories, 6 * n, &of("make", "test"), Millis(8_000));
            serve(&mut histories, 6 * n + 1, &of("make", "build"), Millis(80_000));
            serve(&mut histories, 6 * n + 2, &of("cargo", "test"), Millis(80_000));
            serve(&mut histories, 6 * n + 3, &of("cargo", "build"), Millis(800_000));
            serve(&mut histories, 6 * n + 4, &claiming(1_000), Millis(2_000));
            serve(&mut histories, 6 * n + 5, &claiming(100_000), Millis(200_000));
        }
        let length = |spec| histories.length(&spec).expect("it is known").0;
        let parts = [of("make", "test"), of("make", "build"), of("cargo", "build")].map(length);
        assert!(parts.is_sorted_by(|one, two| 3 * one < *two), "{parts:?}");
        let claims = [claiming(1_000), claiming(100_000)].map(length);
        assert!(10 * claims[0] < claims[1], "{claims:?}");
        assert_eq!(histories.said.iter().map(BTreeMap::len).sum::<usize>(), 0);
        let (_, skill) = histories.skills().next().expect("there is a type");
        assert_eq!(skill.n_judged, 240 - 8);
        assert!(skill.skill > 800, "{skill:?}");
    }

    #[test]
    fn what_was_said_of_jobs_that_never_ran_is_forgotten() {
        let mut histories = Histories::default();
        let spec = Spec::new(TenantId::new("a"), Name::new("pdf"));
        for n in 0..3 * 10_000 {
            histories.submitted(&JobId::number(n), &spec);
        }
        assert!(histories.said.iter().map(BTreeMap::len).sum::<usize>() <= 2 * SAID_MAX);
    }

    #[test]
    fn the_key_that_was_used_longest_ago_is_forgotten_first() {
        let mut histories = Histories::default();
        for key in 0..=KEYS_MAX {
            histories.remember(&Run { history_key: key.to_string(), ..run(1, 1) });
        }
        let spec = |key: usize| Spec {
            history_key: key.to_string(),
            ..Spec::new(TenantId::new("a"), Name::new("pdf"))
        };
        assert_eq!(histories.of(&spec(0)), None);
        assert!(histories.of(&spec(1)).is_some());
        assert!(histories.of(&spec(KEYS_MAX)).is_some());
    }
}
