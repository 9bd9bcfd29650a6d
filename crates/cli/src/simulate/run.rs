//! One replay, with a bar for who watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::preset::{self, Preset};
use sim::{Baseline, Conditions, Fleet, Measures, Replay, Scheduler, Workload};

use super::{Options, estimates, failure, window, wrong};
use crate::print::{self, Failure};

/// What became of a workload under a policy.
pub(super) struct Outcome {
    pub(super) policy: String,
    pub(super) replay: Replay,
    pub(super) measures: Measures,
    /// How long the replay took here.
    pub(super) took_s: f64,
}

/// Replays the workload under the policy of that name.
pub(super) fn run(
    options: &Options,
    name: &str,
    workload: &Workload,
    fleet: &Fleet,
) -> Result<Outcome, Failure> {
    let mut scheduler = scheduler(options, name, workload, fleet)?;
    let bar = bar(name, workload);
    let mut watch = |n_ended| bar.set_position(u64::try_from(n_ended).unwrap_or(u64::MAX));
    let tick = options.tick.map(model::Millis);
    let conditions = Conditions { tick, ..Conditions::default() };
    let replay = sim::replay(workload, fleet, &mut *scheduler, &conditions, &mut watch);
    let replay = replay.map_err(failure)?;
    let took_s = bar.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let measures = Measures::new(workload, fleet, &replay);
    Ok(Outcome { policy: name.to_owned(), replay, measures, took_s })
}

fn scheduler<'a>(
    options: &Options,
    name: &str,
    workload: &'a Workload,
    fleet: &'a Fleet,
) -> Result<Box<dyn Scheduler + 'a>, Failure> {
    if let Some(baseline) = Baseline::from_name(name) {
        let scheduler = baseline.scheduler(workload, fleet, window(options, true));
        return scheduler.map_err(failure);
    }
    let policy = snapshot::policy(name).map_err(|error| {
        let hint = error.hint().map(ToOwned::to_owned);
        let baselines = Baseline::ALL.map(Baseline::name).join(", ");
        wrong(error.to_string(), hint.or(Some(format!("baselines are {baselines}"))))
    })?;
    let how = preset::Options {
        estimates: estimates(options)?,
        seed: options.seed,
        window: window(options, false),
        budget: None,
    };
    Ok(Box::new(Preset::new(workload, fleet, policy, how)))
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
