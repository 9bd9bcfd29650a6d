//! What a replay is under: limits of tenants, workers that fail, inputs, several schedulers.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::{Fixed, Millis};
use sim::sharers::{self, Due};
use sim::{Conditions, Failures, Transfer, Workload, read};

use super::{failure, wrong};
use crate::print::{self, Failure};

/// What a replay is under.
#[derive(Args)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct Under {
    /// Decide only at multiples of so many milliseconds.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1..))]
    tick: Option<i64>,
    /// Slots of a tenant, at least and at most: `acme=8:32`, `acme=:32`; for presets.
    #[arg(long, value_delimiter = ',', value_name = "TENANT=MIN:MAX")]
    quota: Vec<String>,
    /// Slot-seconds that a tenant may use within the window; `all=…` for all together; for presets.
    #[arg(long, value_delimiter = ',', value_name = "TENANT=N")]
    budget: Vec<String>,
    /// Weights, quotas and budgets: `[tenants.NAME]` with `weight`, `min`, `max`, `budget`.
    #[arg(long, value_name = "FILE.toml")]
    tenants: Option<PathBuf>,
    /// Workers last so long on average, then are gone for so long: `6h:5m`.
    #[arg(long, value_name = "LASTS:REPAIR")]
    failures: Option<String>,
    /// The inputs behind each label of locality have so many megabytes; without it, none are
    /// fetched.
    #[arg(long, value_name = "MB")]
    input_mb: Option<u32>,
    /// A worker fetches so many megabytes a second.
    #[arg(long, default_value_t = 100, value_name = "MB", requires = "input_mb")]
    fetch_mb_s: u32,
    /// A worker keeps the inputs of so many labels.
    #[arg(long, default_value_t = 4, value_name = "N", requires = "input_mb")]
    inputs_kept: usize,
    /// So many schedulers, each with its own workers; for presets.
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    schedulers: u16,
    /// How old each scheduler's view of the queue is.
    #[arg(long, default_value = "0ms", value_name = "TIME")]
    view_age: humantime::Duration,
    /// No job shall wait longer than so many seconds; those that do are counted.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    bound: Option<i64>,
    /// What draws come from; a recipe of `--generate` has a seed of its own.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// The name under which all tenants together have a budget.
const ALL: &str = "all";

impl Under {
    /// What draws come from.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The longest wait that is asked for.
    pub(crate) fn bound(&self) -> Option<Millis> {
        self.bound.map(Millis::from_secs)
    }

    /// How many schedulers there are, and how old their views are.
    pub(crate) fn schedulers(&self) -> (u16, Millis) {
        (self.schedulers, millis(*self.view_age))
    }

    /// What the engine needs to know.
    pub(crate) fn conditions(&self) -> Result<Conditions, Failure> {
        let transfer = self.input_mb.map(|megabytes| Transfer {
            megabytes,
            megabytes_per_s: self.fetch_mb_s.max(1),
            kept_max: self.inputs_kept,
        });
        Ok(Conditions {
            tick: self.tick.map(Millis),
            failures: self.failures()?,
            transfer,
            until: None,
        })
    }

    fn failures(&self) -> Result<Option<Failures>, Failure> {
        let Some(text) = &self.failures else { return Ok(None) };
        let lengths = text.split_once(':').and_then(|(lasts, repair)| {
            let length = |text: &str| humantime::parse_duration(text).ok().map(millis);
            Some((length(lasts)?, length(repair)?)).filter(|(lasts, _)| lasts.0 > 0)
        });
        let Some((lasts, repair)) = lengths else {
            let error = format!("`--failures` is `{text}`");
            let hint = "how long a worker lasts and for how long it is gone: `6h:5m`";
            return Err(wrong(error, Some(hint.to_owned())));
        };
        Ok(Some(Failures { lasts, repair, seed: self.seed }))
    }

    /// What all tenants together may use within the window.
    pub(crate) fn budget_of_all(&self) -> Result<Option<Fixed>, Failure> {
        let all = self.budgets()?.into_iter().find(|(tenant, _)| tenant == ALL);
        Ok(all.and_then(|(_, due)| Fixed::from_f64(due.budget?)))
    }

    fn budgets(&self) -> Result<Vec<(String, Due)>, Failure> {
        let read = |text: &String| {
            let error = || wrong(format!("`--budget` is `{text}`"), Some(BUDGET.to_owned()));
            sharers::parse_budget(text).ok_or_else(error)
        };
        self.budget.iter().map(read).collect()
    }

    /// Gives the tenants of a workload what was said about them.
    pub(crate) fn endow(&self, workload: &mut Workload) -> Result<(), Failure> {
        let mut dues = Vec::new();
        if let Some(path) = &self.tenants {
            dues.extend(read::dues(path).map_err(failure)?);
        }
        for text in &self.quota {
            let error = || wrong(format!("`--quota` is `{text}`"), Some(QUOTA.to_owned()));
            dues.push(sharers::parse_quota(text).ok_or_else(error)?);
        }
        dues.extend(self.budgets()?.into_iter().filter(|(tenant, _)| tenant != ALL));
        for (tenant, due) in &dues {
            workload.set_due(tenant, due).map_err(failure)?;
        }
        Ok(())
    }

    /// Says what was asked for and means nothing for this workload.
    pub(crate) fn tell_idle(&self, workload: &Workload) {
        if self.input_mb.is_some() && workload.labels.is_empty() {
            print::note("`--input-mb` changes nothing: no job has a label of locality");
        }
    }

    /// What baselines know nothing of, if any of it was asked for.
    pub(crate) fn for_presets(&self) -> bool {
        let has_limits = !self.quota.is_empty() || !self.budget.is_empty();
        has_limits || self.tenants.is_some() || self.schedulers > 1
    }
}

const QUOTA: &str = "slots of a tenant, at least and at most: `acme=8:32`, `acme=8:`, `acme=:32`";
const BUDGET: &str = "slot-seconds within the window: `acme=36000`, or `all=100000`";

fn millis(length: Duration) -> Millis {
    Millis(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}
