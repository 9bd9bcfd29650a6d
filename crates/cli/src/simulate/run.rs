//! One replay, with a bar for who watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::Millis;
use sim::preset::{self, Preset};
use sim::{Baseline, Estimates, Fleet, Many, Measures, Promise, Replay, Scheduler, Workload};

use super::{HISTORY, Options, estimates, failure, window, wrong};
use crate::print::{self, Failure};

/// What became of a workload under a policy.
pub(super) struct Outcome {
    /// The name as it was given.
    pub(super) policy: String,
    /// Where estimates came from; `None` for a baseline.
    pub(super) estimates: Option<String>,
    pub(super) replay: Replay,
    pub(super) measures: Measures,
    /// The longest wait that was promised or asked for, and how that was kept.
    pub(super) promise: Option<Promise>,
    /// How long the replay took here.
    pub(super) took_s: f64,
}

impl Outcome {
    /// The policy with its source of estimates, `balanced:history`.
    pub(super) fn title(&self) -> String {
        self.estimates
            .as_ref()
            .map_or_else(|| self.policy.clone(), |source| titled(&self.policy, source))
    }
}

fn titled(name: &str, source: &str) -> String {
    let suffix = format!(":{source}");
    if name.ends_with(&suffix) { name.to_owned() } else { format!("{name}{suffix}") }
}

/// A policy with its name in tables.
pub(super) struct Called {
    name: String,
    policy: Policy,
}

impl Called {
    /// `name={…}` has that name. All others are named as they are written.
    pub(super) fn new(text: &str) -> Result<Self, Failure> {
        let named = text.split_once('=').filter(|(_, policy)| policy.starts_with('{'));
        let (name, text) = named.unwrap_or((text, text));
        Self::named(name, text)
    }

    /// A policy with another name than its own.
    pub(super) fn named(name: &str, text: &str) -> Result<Self, Failure> {
        let named = text.split_once('=').filter(|(_, policy)| policy.starts_with('{'));
        let text = named.map_or(text, |(_, policy)| policy);
        Ok(Self { name: name.to_owned(), policy: policy(text)? })
    }

    /// Whether it is a baseline, which has no use for estimates.
    pub(super) const fn is_baseline(&self) -> bool {
        matches!(self.policy, Policy::Baseline(_))
    }

    /// The source of estimates that its name says.
    pub(super) fn source(&self) -> Option<&str> {
        match &self.policy {
            Policy::Baseline(_) => None,
            Policy::Preset(_, source) => source.as_deref(),
        }
    }

    /// Its name with a source of estimates. Baselines have none.
    pub(super) fn with_source(&self, source: &str) -> String {
        if self.is_baseline() { self.name.clone() } else { titled(&self.name, source) }
    }

    /// Its scheduler, with these estimates.
    pub(super) fn scheduler<'a>(
        &self,
        options: &Options,
        on: (&'a Workload, &'a Fleet),
        estimates: Estimates,
    ) -> Result<Box<dyn Scheduler + 'a>, Failure> {
        scheduler(options, &self.policy, on, estimates)
    }
}

/// Replays the workload under a policy.
pub(super) fn run(
    options: &Options,
    called: &Called,
    workload: &Workload,
    fleet: &Fleet,
) -> Result<Outcome, Failure> {
    let Called { name, .. } = called;
    let asked = options.estimates.as_deref().unwrap_or(HISTORY);
    let source = called.source().unwrap_or(asked);
    let mut scheduler = called.scheduler(options, (workload, fleet), estimates(source)?)?;
    let conditions = options.under.conditions()?;
    let bar = bar(name, workload);
    let mut watch = |n_ended| bar.set_position(u64::try_from(n_ended).unwrap_or(u64::MAX));
    let replay = sim::replay(workload, fleet, &mut *scheduler, &conditions, &mut watch);
    let replay = replay.map_err(failure)?;
    let took_s = bar.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let promise = options.under.bound().map(|bound| Promise::new(workload, &replay, bound));
    let measures = Measures::new(workload, fleet, &replay);
    let source = (!called.is_baseline()).then(|| source.to_owned());
    let policy = name.clone();
    Ok(Outcome { policy, estimates: source, replay, measures, promise, took_s })
}

/// What decides.
enum Policy {
    Baseline(Baseline),
    /// With its source of estimates, if its name says one.
    Preset(Box<model::Policy>, Option<String>),
}

fn policy(name: &str) -> Result<Policy, Failure> {
    if let Some(baseline) = Baseline::from_name(name) {
        return Ok(Policy::Baseline(baseline));
    }
    let with_source = name.split_once(':').and_then(|(preset, source)| {
        Estimates::parse(source)?;
        Some((model::Preset::from_name(preset)?.policy(), source.to_owned()))
    });
    if let Some((policy, source)) = with_source {
        return Ok(Policy::Preset(Box::new(policy), Some(source)));
    }
    let policy = snapshot::policy(name).map_err(|error| {
        // Whoever wrote JSON did not mean a name.
        let names = (!name.starts_with('{'))
            .then(|| format!("baselines are {}", Baseline::ALL.map(Baseline::name).join(", ")));
        wrong(error.to_string(), error.hint().map(ToOwned::to_owned).or(names))
    })?;
    Ok(Policy::Preset(Box::new(policy), None))
}

fn scheduler<'a>(
    options: &Options,
    policy: &Policy,
    (workload, fleet): (&'a Workload, &'a Fleet),
    estimates: Estimates,
) -> Result<Box<dyn Scheduler + 'a>, Failure> {
    let policy = match policy {
        Policy::Baseline(baseline) => {
            if options.under.for_presets() {
                let name = baseline.name();
                print::note(&format!("{name} knows no quotas, budgets or other schedulers"));
            }
            let scheduler = baseline.scheduler(workload, fleet, window(options, true));
            return scheduler.map_err(|error| failure(error.of(baseline.name())));
        }
        Policy::Preset(policy, _) => policy,
    };
    let how = preset::Options {
        estimates,
        seed: options.under.seed(),
        window: window(options, false),
        budget: options.under.budget_of_all()?,
    };
    Ok(match options.under.schedulers() {
        (1, Millis::ZERO) => Box::new(Preset::new(workload, fleet, (**policy).clone(), how)),
        several => Box::new(Many::new(workload, fleet, policy, how, several)),
    })
}

fn bar(name: &str, workload: &Workload) -> ProgressBar {
    let n_jobs = u64::try_from(workload.jobs.len()).unwrap_or(u64::MAX);
    let target = if print::is_watched() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(n_jobs), target);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} jobs, {eta} left");
    bar.set_style(style.expect("the template is well formed"));
    bar.set_message(name.to_owned());
    bar
}
