//! One replay, with a bar for who watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::Millis;
use sim::preset::{self, Preset};
use sim::{Baseline, Estimates, Fleet, Many, Measures, Promise, Replay, Scheduler, Workload};

use super::{Options, estimates, failure, window, wrong};
use crate::print::{self, Failure};

/// What became of a workload under a policy.
pub(super) struct Outcome {
    pub(super) policy: String,
    pub(super) replay: Replay,
    pub(super) measures: Measures,
    /// The longest wait that was promised or asked for, and how that was kept.
    pub(super) promise: Option<Promise>,
    /// How long the replay took here.
    pub(super) took_s: f64,
}

/// A policy, and what it is called in what is told.
pub(super) struct Called<'a> {
    name: &'a str,
    policy: Policy,
}

impl<'a> Called<'a> {
    /// `name={…}` is called by its name; all others are called what they are.
    pub(super) fn new(text: &'a str) -> Result<Self, Failure> {
        let named = text.split_once('=').filter(|(_, policy)| policy.starts_with('{'));
        let (name, text) = named.unwrap_or((text, text));
        Ok(Self { name, policy: policy(text)? })
    }
}

/// Replays the workload under a policy.
pub(super) fn run(
    options: &Options,
    Called { name, policy }: Called<'_>,
    workload: &Workload,
    fleet: &Fleet,
) -> Result<Outcome, Failure> {
    let mut scheduler = scheduler(options, &policy, workload, fleet)?;
    let conditions = options.under.conditions()?;
    let bar = bar(name, workload);
    let mut watch = |n_ended| bar.set_position(u64::try_from(n_ended).unwrap_or(u64::MAX));
    let replay = sim::replay(workload, fleet, &mut *scheduler, &conditions, &mut watch);
    let replay = replay.map_err(failure)?;
    let took_s = bar.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let promise = match options.under.bound() {
        Some(bound) => Some(Promise::new(workload, &replay, bound)),
        None if options.under.has_obstacles() => None,
        None => Promise::stated(workload, fleet, &replay),
    };
    let measures = Measures::new(workload, fleet, &replay);
    Ok(Outcome { policy: name.to_owned(), replay, measures, promise, took_s })
}

/// What decides.
enum Policy {
    Baseline(Baseline),
    /// With what it believes about lengths, if its name says so.
    Preset(Box<model::Policy>, Option<Estimates>),
}

fn policy(name: &str) -> Result<Policy, Failure> {
    if let Some(baseline) = Baseline::from_name(name) {
        return Ok(Policy::Baseline(baseline));
    }
    let with_source = name.split_once(':').and_then(|(preset, source)| {
        Some((model::Preset::from_name(preset)?.policy(), Estimates::parse(source)?))
    });
    if let Some((policy, estimates)) = with_source {
        return Ok(Policy::Preset(Box::new(policy), Some(estimates)));
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
    workload: &'a Workload,
    fleet: &'a Fleet,
) -> Result<Box<dyn Scheduler + 'a>, Failure> {
    let (policy, source) = match policy {
        Policy::Baseline(baseline) => {
            if options.under.for_presets() {
                let name = baseline.name();
                print::note(&format!("{name} knows no quotas, budgets or other schedulers"));
            }
            let scheduler = baseline.scheduler(workload, fleet, window(options, true));
            return scheduler.map_err(|error| failure(error.of(baseline.name())));
        }
        Policy::Preset(policy, source) => (policy, *source),
    };
    let how = preset::Options {
        estimates: source.map_or_else(|| estimates(options), Ok)?,
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
