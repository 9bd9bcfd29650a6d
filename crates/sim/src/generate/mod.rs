//! Workloads that are made up: arrivals, sizes, types, tenants with bursts, all from one seed.

mod arrivals;
mod sizes;
mod family;
mod plan;
mod law;
mod backlogged;

use model::job::Needs;
use model::{JobId, Millis, Name, TenantId, Timestamp};
use serde::Deserialize;

use crate::chance::Chance;
use crate::error::Error;
use crate::number::whole;
use crate::workload::{Bad, Fit, Job, Sharer, Workload};

pub use arrivals::{Arrivals, Burst};
pub use backlogged::Backlogged;
pub use family::{Family, Instance};
pub use sizes::Size;

use arrivals::Clock;

/// A workload has at most so many jobs.
const JOBS_MAX: usize = 100_000_000;

/// What a workload is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// How many jobs.
    pub jobs: usize,
    /// How many arrive in a second, on average.
    pub rate_per_s: f64,
    /// What draws come from.
    #[serde(default)]
    pub seed: u64,
    /// How they arrive.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The lowest and the highest priority; all between are as likely.
    #[serde(default)]
    pub priorities: (i32, i32),
    /// The types of jobs.
    #[serde(rename = "type")]
    pub types: Vec<Type>,
    /// Who submits them; one tenant if there are none.
    #[serde(default, rename = "tenant")]
    pub tenants: Vec<Submitter>,
}

/// A type of jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Type {
    /// Its name; without one, any worker will do.
    pub name: Option<String>,
    /// How many of the jobs are of it, in proportion to the others.
    #[serde(default = "one")]
    pub share: f64,
    /// Slots that a job takes.
    #[serde(default = "one_slot")]
    pub slots: u32,
    /// For which part of the jobs a person waits.
    #[serde(default)]
    pub on_demand: f64,
    /// How long a job runs, in seconds.
    pub size: Size,
    /// Submitters ask for up to so many times as long as a job runs; without it, for nothing.
    pub requested: Option<f64>,
    /// So many labels of inputs, all as likely; none without it.
    #[serde(default)]
    pub labels: u32,
}

/// Who submits jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submitter {
    /// Its name.
    pub name: String,
    /// Its due, in proportion to the others'.
    #[serde(default = "one_slot")]
    pub weight: u32,
    /// How many of the jobs are its own, in proportion to the others.
    #[serde(default = "one")]
    pub share: f64,
    /// It has bursts.
    pub burst: Option<Burst>,
}

const fn one() -> f64 {
    1.0
}

const fn one_slot() -> u32 {
    1
}

impl Recipe {
    /// A recipe as TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let recipe: Self =
            toml::from_str(text).map_err(|error| Error::form(name, error.to_string()))?;
        recipe.check().map_err(|problem| Error::form(name, problem))?;
        Ok(recipe)
    }

    fn check(&self) -> Result<(), String> {
        let positive = |field: &str, number: f64| {
            let is_fine = number > 0.0 && number.is_finite();
            is_fine.then_some(()).ok_or(format!("has `{field}` {number}; it is more than 0"))
        };
        if self.jobs == 0 || self.jobs > JOBS_MAX {
            return Err(format!("has `jobs` {}; 1 to {JOBS_MAX}", self.jobs));
        }
        if self.types.is_empty() {
            return Err("has no `[[type]]`".to_owned());
        }
        if self.priorities.0 > self.priorities.1 {
            return Err("has `priorities` with the higher first".to_owned());
        }
        positive("rate_per_s", self.rate_per_s)?;
        for kind in &self.types {
            positive("share", kind.share)?;
            kind.size.check()?;
            if !(0.0..=1.0).contains(&kind.on_demand) || kind.slots == 0 {
                return Err("has `on_demand` beyond 0 to 1, or `slots` 0".to_owned());
            }
        }
        for tenant in &self.tenants {
            positive("share", tenant.share)?;
            positive("weight", f64::from(tenant.weight))?;
            tenant.burst.map_or(Ok(()), Burst::check)?;
        }
        let mut names: Vec<&str> = self.tenants.iter().map(|own| own.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(format!("has tenant `{}` twice", two[0])),
            None => self.arrivals.check(),
        }
    }

    /// The workload. The same recipe makes the same one everywhere.
    pub fn workload(&self) -> Workload {
        let mut parts = Parts::new(self);
        let tenants: Vec<(f64, Option<Burst>)> =
            parts.submitters.iter().map(|own| (own.share, own.burst)).collect();
        let mut clock = Clock::new(self.arrivals, (self.rate_per_s, self.seed), &tenants);
        let mut chance = Chance::new(self.seed, 1);
        let mut jobs = Vec::with_capacity(self.jobs);
        for rank in (0_u32..).take(self.jobs) {
            let (at_s, tenant) = clock.next();
            let arrival = Timestamp(whole(at_s * 1_000.0));
            jobs.push(parts.job(&mut chance, rank, arrival, tenant));
        }
        Workload {
            jobs,
            tenants: parts.sharers(),
            fits: parts.fits,
            history_keys: Vec::new(),
            labels: parts.labels,
            bad: Bad::default(),
        }
    }
}

/// What jobs are put together from.
struct Parts<'a> {
    recipe: &'a Recipe,
    /// By name.
    submitters: Vec<Submitter>,
    /// In order.
    fits: Vec<Fit>,
    /// The fit of each type.
    fit_of: Vec<usize>,
    labels: Vec<Name>,
    /// The first label of each type.
    label_of: Vec<usize>,
}

impl<'a> Parts<'a> {
    fn new(recipe: &'a Recipe) -> Self {
        let alone = Submitter {
            name: model::tenant::TENANT_DEFAULT.to_owned(),
            weight: 1,
            share: 1.0,
            burst: None,
        };
        let mut submitters = recipe.tenants.clone();
        if submitters.is_empty() {
            submitters.push(alone);
        }
        submitters.sort_by_key(|own| TenantId::new(&own.name));
        let fit =
            |kind: &Type| Fit { kind: kind.name.as_deref().map(Name::new), needs: Needs::new() };
        let mut fits: Vec<Fit> = recipe.types.iter().map(fit).collect();
        fits.sort_unstable();
        fits.dedup();
        let place = |kind: &Type| fits.binary_search(&fit(kind)).unwrap_or(0);
        let fit_of = recipe.types.iter().map(place).collect();
        let (mut labels, mut label_of) = (Vec::new(), Vec::new());
        for kind in &recipe.types {
            label_of.push(labels.len());
            let next = u64::try_from(labels.len()).unwrap_or(u64::MAX);
            labels.extend((next..).take(kind.labels.try_into().unwrap_or(0)).map(Name::number));
        }
        Self { recipe, submitters, fits, fit_of, labels, label_of }
    }

    fn sharers(&self) -> Vec<Sharer> {
        let sharer = |own: &Submitter| Sharer::new(TenantId::new(&own.name), own.weight);
        self.submitters.iter().map(sharer).collect()
    }

    fn job(&mut self, chance: &mut Chance, rank: u32, arrival: Timestamp, tenant: usize) -> Job {
        let types = &self.recipe.types;
        let at = picked(chance, types.iter().map(|kind| kind.share));
        let kind = &types[at];
        let size = kind.size.draw(chance);
        let duration = Millis(whole(size * 1_000.0).max(1));
        let requested = kind.requested.map(|most| {
            let times = 1.0 + (most.max(1.0) - 1.0) * chance.part();
            Millis(whole(size * times * 1_000.0).max(duration.0))
        });
        let (lowest, highest) = self.recipe.priorities;
        let steps = u64::from(highest.abs_diff(lowest)) + 1;
        let above = i32::try_from(chance.draw() % steps).unwrap_or(0);
        let label = usize::try_from(chance.draw() % u64::from(kind.labels.max(1))).unwrap_or(0);
        Job {
            id: JobId::number(rank.into()),
            rank,
            arrival,
            duration,
            requested,
            tenant,
            fit: self.fit_of[at],
            slots: kind.slots,
            priority: lowest.saturating_add(above),
            on_demand: chance.part() <= kind.on_demand,
            history_key: None,
            label: (kind.labels > 0).then(|| self.label_of[at] + label),
        }
    }
}

/// The place of one of several, each as likely as its share says.
fn picked(chance: &mut Chance, shares: impl Iterator<Item = f64> + Clone) -> usize {
    let mut left = chance.part() * shares.clone().sum::<f64>();
    let mut last = 0;
    for (at, share) in shares.enumerate() {
        if left <= share {
            return at;
        }
        left -= share;
        last = at;
    }
    last
}

#[cfg(test)]
mod tests;
