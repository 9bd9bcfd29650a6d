//! Families of random workloads. Numbers are chosen on them, and judged on other seeds and traces.

use super::backlogged::{self, Backlogged};
use super::plan::Plan;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// A family fixes one property of its workloads. The seed draws all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Nothing is fixed.
    Mixed,
    /// Arrivals without memory.
    Poisson,
    /// Bursts, of all tenants or of one.
    Bursts,
    /// More jobs by day than by night.
    Daily,
    /// All jobs have one length.
    Constant,
    /// Lengths by an exponential law.
    Exponential,
    /// Lengths by a lognormal law.
    Lognormal,
    /// Lengths by a bounded Pareto law.
    Pareto,
    /// Short jobs, and a few long ones.
    Bimodal,
    /// Six to eight tenants.
    Tenants,
    /// Three or four kinds of workers, of which some have one or two workers.
    Rare,
    /// Jobs of up to eight slots.
    Wide,
    /// Load from 1.2 to 2.5.
    Overload,
    /// All tenants are backlogged from the start: see [`Backlogged`].
    Backlogged,
}

/// A workload of a family, with its fleet.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its jobs.
    pub workload: Workload,
    /// Its workers.
    pub fleet: Fleet,
    /// What was drawn, in one sentence.
    pub summary: String,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Mixed,
        Self::Poisson,
        Self::Bursts,
        Self::Daily,
        Self::Constant,
        Self::Exponential,
        Self::Lognormal,
        Self::Pareto,
        Self::Bimodal,
        Self::Tenants,
        Self::Rare,
        Self::Wide,
        Self::Overload,
        Self::Backlogged,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Poisson => "poisson",
            Self::Bursts => "bursts",
            Self::Daily => "daily",
            Self::Constant => "constant",
            Self::Exponential => "exponential",
            Self::Lognormal => "lognormal",
            Self::Pareto => "pareto",
            Self::Bimodal => "bimodal",
            Self::Tenants => "tenants",
            Self::Rare => "rare",
            Self::Wide => "wide",
            Self::Overload => "overload",
            Self::Backlogged => "backlogged",
        }
    }

    /// The family called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// The workload of a seed.
    pub fn instance(self, seed: u64) -> Instance {
        if self == Self::Backlogged {
            let case = Backlogged::new(seed);
            let summary = backlogged::summary(&case);
            return Instance { workload: case.workload, fleet: case.fleet, summary };
        }
        Plan::new(self, seed).instance()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::number::{count, float, ratio};

    #[test]
    fn same_seed_makes_same_workload_and_another_seed_another() {
        for family in Family::ALL {
            assert_eq!(Family::from_name(family.name()), Some(family));
            let made = family.instance(3);
            assert_eq!(made.workload, family.instance(3).workload, "{family:?}");
            assert_ne!(made.workload, family.instance(4).workload, "{family:?}");
            assert!(!made.summary.is_empty());
        }
    }

    #[test]
    fn each_job_of_each_family_fits_a_worker() {
        for family in Family::ALL {
            for seed in 0..12 {
                let Instance { mut workload, mut fleet, .. } = family.instance(seed);
                let n_jobs = workload.jobs.len();
                fleet.sift(&mut workload, 0).expect("no job is left out");
                assert_eq!(workload.jobs.len(), n_jobs);
                let n_tenants = workload.tenants.len();
                assert!((1..=8).contains(&n_tenants), "{family:?} {seed}");
                assert!(workload.tenants.iter().all(|own| (1..=5).contains(&own.weight)));
                assert!(workload.jobs.iter().all(|job| (1..=8).contains(&job.slots)));
            }
        }
    }

    #[test]
    fn load_is_within_limits() {
        for family in Family::ALL.into_iter().filter(|own| *own != Family::Backlogged) {
            for seed in 0..8 {
                let Instance { workload, fleet, .. } = family.instance(seed);
                let span = i128::from(workload.last_arrival().0) * i128::from(fleet.slots());
                let load = ratio(workload.area().into(), span);
                let least = if family == Family::Overload { 1.19 } else { 0.59 };
                assert!((least..=2.51).contains(&load), "{family:?} {seed}: {load}");
            }
        }
    }

    /// How much of the variance of the logarithm of lengths is between keys, not within them.
    fn known(workload: &Workload) -> f64 {
        let mut by_key: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for job in &workload.jobs {
            let key = (job.tenant, job.fit, job.history_key);
            let length = libm::log(float(job.duration.0.into()));
            by_key.entry(key).or_default().push(length);
        }
        let groups: Vec<&Vec<f64>> = by_key.values().filter(|own| own.len() >= 5).collect();
        let mean = |own: &[f64]| own.iter().sum::<f64>() / count(own.len()).max(1.0);
        let all: Vec<f64> = groups.iter().flat_map(|own| own.iter().copied()).collect();
        let around = |own: &[f64], middle: f64| {
            own.iter().map(|one| (one - middle) * (one - middle)).sum::<f64>()
        };
        let within: f64 = groups.iter().map(|own| around(own, mean(own))).sum();
        1.0 - within / around(&all, mean(&all)).max(f64::MIN_POSITIVE)
    }

    #[test]
    fn keys_tell_little_of_lengths_in_some_workloads_and_much_in_others() {
        let known: Vec<f64> =
            (0..30).map(|seed| known(&Family::Lognormal.instance(seed).workload)).collect();
        assert!(known.iter().any(|part| *part < 0.15), "{known:?}");
        assert!(known.iter().any(|part| *part > 0.7), "{known:?}");
        let tenths: BTreeSet<i64> =
            known.iter().map(|part| crate::number::whole(part * 10.0)).collect();
        assert!(tenths.len() > 5, "{known:?}");
    }
}
