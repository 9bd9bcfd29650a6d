//! Policies by name or as JSON.

use model::Millis;
use sim::preset::{Options, Preset};
use sim::{Baseline, Estimates, Fleet, Scheduler, Workload};

/// A policy, and its name in tables.
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// What decides.
pub(crate) enum Kind {
    Baseline(Baseline),
    Preset(Box<model::Policy>),
}

const DAY: Millis = Millis::from_secs(24 * 3_600);
const HOUR: Millis = Millis::from_secs(3_600);

impl Policy {
    /// `NAME={...}`, a JSON object, a preset or a baseline.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(_, policy)| policy.starts_with('{'));
        let (name, text) = named.unwrap_or((text, text));
        let kind = match Baseline::from_name(text) {
            Some(baseline) => Kind::Baseline(baseline),
            None => Kind::Preset(Box::new(snapshot::policy(text).map_err(|own| own.to_string())?)),
        };
        Ok(Self { name: name.to_owned(), kind })
    }

    /// A scheduler that decides by it. Baselines have no use for `estimates`.
    pub(crate) fn scheduler<'a>(
        &self,
        (workload, fleet): (&'a Workload, &'a Fleet),
        estimates: Estimates,
        seed: u64,
    ) -> Result<Box<dyn Scheduler + 'a>, String> {
        match &self.kind {
            Kind::Baseline(baseline) => {
                baseline.scheduler(workload, fleet, HOUR).map_err(|error| error.to_string())
            }
            Kind::Preset(policy) => {
                let options = Options { estimates, seed, window: DAY, budget: None };
                Ok(Box::new(Preset::new(workload, fleet, (**policy).clone(), options)))
            }
        }
    }
}
