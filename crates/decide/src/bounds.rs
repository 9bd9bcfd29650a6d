//! How many points a job can get at most on one worker, for a few multiplications.
//!
//! A rule is a straight line between two bounds, so its value is a product; here the products are
//! rounded so that no bound is ever too low. Rules that only take points away count as nothing.

use model::policy::Rule;
use model::{Fixed, Inputs, Timestamp, Trait, Traits};

use crate::rule::Asker;
use crate::rules::{self, dependents, missing_bytes, missing_paths, wait};

/// What of a job a bound depends on, small enough to be at hand for every job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    pub(crate) ready: Timestamp,
    pub(crate) dependents: u32,
    pub(crate) traits: Traits,
    pub(crate) has_history: bool,
}

/// Bounds for the jobs of one worker.
pub(crate) struct Bounds {
    now: Timestamp,
    bytes: Falling,
    paths: Falling,
    wait: Rising,
    dependents: Rising,
    prefer_local: i64,
    network: i64,
    /// Rules that read a job's history.
    history: i64,
    /// Rules about every job.
    any: i64,
}

/// Points that fall from `most` to nothing.
struct Falling {
    most: i64,
    slope: u64,
}

/// Points that rise from nothing to `most`.
struct Rising {
    most: i64,
    slope: u64,
}

/// Slopes are in thousandths of points for each unit, times two to this power.
const SLOPE_BITS: u32 = 32;

impl Falling {
    fn new(most: i64, none_at: i128) -> Self {
        let slope = (i128::from(most) << SLOPE_BITS).checked_div(none_at).unwrap_or(0);
        Self { most, slope: u64::try_from(slope).unwrap_or(0) }
    }

    fn at(&self, amount: u64) -> i64 {
        self.most.saturating_sub(product(amount, self.slope)).max(0)
    }
}

impl Rising {
    fn new(most: i64, all_at: i128) -> Self {
        let slope = (i128::from(most) << SLOPE_BITS).checked_div(all_at).map(|slope| slope + 1);
        Self { most, slope: slope.and_then(|slope| u64::try_from(slope).ok()).unwrap_or(u64::MAX) }
    }

    fn at(&self, amount: u64) -> i64 {
        product(amount, self.slope).saturating_add(1).min(self.most)
    }
}

fn product(amount: u64, slope: u64) -> i64 {
    let wide = (u128::from(amount) * u128::from(slope)) >> SLOPE_BITS;
    i64::try_from(wide).unwrap_or(i64::MAX)
}

impl Bounds {
    pub(crate) fn new(asker: &Asker<'_>) -> Self {
        let most = |rule: Rule| most_of(asker, rule);
        let special = [
            Rule::MissingBytes,
            Rule::MissingPaths,
            Rule::Wait,
            Rule::Dependents,
            Rule::PreferLocal,
            Rule::Network,
            Rule::ResourceFit,
            Rule::Disk,
        ];
        let others =
            rules::of(&asker.world.policy).filter(|(sheet, _)| !special.contains(&sheet.rule));
        Self {
            now: asker.now(),
            bytes: Falling::new(most(Rule::MissingBytes), missing_bytes::none_at(asker)),
            paths: Falling::new(most(Rule::MissingPaths), missing_paths::none_at(asker)),
            wait: Rising::new(most(Rule::Wait), wait::all_at(asker)),
            dependents: Rising::new(most(Rule::Dependents), dependents::all_at(asker)),
            prefer_local: most(Rule::PreferLocal),
            network: most(Rule::Network),
            history: most(Rule::ResourceFit) + most(Rule::Disk),
            any: others.map(|(sheet, _)| most(sheet.rule)).sum(),
        }
    }

    /// The most that the job can get.
    pub(crate) fn of(&self, sketch: &Sketch, inputs: Inputs) -> Fixed {
        let waited = u64::try_from(self.now.since(sketch.ready).0).unwrap_or(0);
        let counts = |does: bool, points: i64| if does { points } else { 0 };
        Fixed::thousandths(
            inputs.missing_bytes.map_or(0, |bytes| self.bytes.at(bytes))
                + inputs.missing_paths.map_or(0, |paths| self.paths.at(u64::from(paths)))
                + self.wait.at(waited)
                + self.dependents.at(u64::from(sketch.dependents))
                + counts(sketch.traits.has(Trait::PreferLocal), self.prefer_local)
                + counts(sketch.traits.has(Trait::Network), self.network)
                + counts(sketch.has_history, self.history)
                + self.any,
        )
    }

    /// The most that any job can get that became ready at `ready` or later, and of which the
    /// worker lacks `bytes` or more. `None` means that it did not say what it lacks.
    pub(crate) fn of_rest(&self, ready: Timestamp, bytes: Option<u64>) -> Fixed {
        let traits = [Trait::PreferLocal, Trait::Network].into_iter().collect();
        let sketch = Sketch { ready, dependents: u32::MAX, traits, has_history: true };
        let inputs = Inputs { missing_bytes: bytes, missing_paths: bytes.map(|_| 0) };
        self.of(&sketch, inputs)
    }
}

/// The most that a rule gives on this worker, weighed, and a little more: points are rounded before
/// and after they are weighed.
fn most_of(asker: &Asker<'_>, rule: Rule) -> i64 {
    let found = rules::of(&asker.world.policy).find(|(sheet, _)| sheet.rule == rule);
    let Some((sheet, weight)) = found else { return 0 };
    let most = sheet.most(asker).times(weight).in_thousandths();
    let slack = weight.in_thousandths() / 1_000 + 2;
    if most > 0 { most + slack } else { 0 }
}
