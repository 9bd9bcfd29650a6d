//! How many points a job can get at most on one worker, for a few multiplications.
//!
//! A rule is a straight line between two bounds, so its value is a product; here the products are
//! rounded so that no bound is ever too low. Rules that only take points away count as nothing.

use model::policy::Rule;
use model::{Fixed, Inputs, Timestamp, Trait, Traits};

use crate::rule::Asker;
use crate::rules::{self, dependents, light, missing_bytes, missing_paths, wait};

/// What of a job a bound depends on, small enough to be at hand for every job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    pub(crate) ready: Timestamp,
    pub(crate) dependents: u32,
    pub(crate) traits: Traits,
    pub(crate) has_history: bool,
}

/// How many waiting jobs have what gives points: a bonus that nobody can get is no bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    traits: [i64; Trait::ALL.len()],
    dependents: i64,
    history: i64,
}

impl Census {
    pub(crate) fn count(&mut self, sketch: &Sketch, by: i64) {
        for (count, fact) in self.traits.iter_mut().zip(Trait::ALL) {
            *count += if sketch.traits.has(fact) { by } else { 0 };
        }
        self.dependents += if sketch.dependents > 0 { by } else { 0 };
        self.history += if sketch.has_history { by } else { 0 };
    }

    /// A job that has everything that some job has.
    fn envelope(&self, ready: Timestamp) -> Sketch {
        let present = self.traits.iter().zip(Trait::ALL).filter(|(count, _)| **count > 0);
        Sketch {
            ready,
            dependents: if self.dependents > 0 { u32::MAX } else { 0 },
            traits: present.map(|(_, fact)| fact).collect(),
            has_history: self.history > 0,
        }
    }
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
    /// The rule `light`: for a build, and for a light job.
    build: i64,
    light: i64,
    /// Rules about every job.
    any: i64,
    /// A job that has everything that some waiting job has.
    envelope: Sketch,
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
        if amount == 0 { 0 } else { product(amount, self.slope).saturating_add(1).min(self.most) }
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
            Rule::Light,
        ];
        let weight = asker.world.policy.rules.get(&Rule::Light).copied().unwrap_or(Fixed::ZERO);
        let of_light = |traits: Traits| weighed_up(light::points(asker, traits), weight);
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
            build: of_light(Traits::default()),
            light: of_light(Traits::default().with(Trait::Light)),
            envelope: asker.world.queue.census.envelope(asker.now()),
            any: others.map(|(sheet, _)| most(sheet.rule)).sum(),
        }
    }

    /// The most that the job can get.
    pub(crate) fn of(&self, sketch: &Sketch, inputs: Inputs) -> Fixed {
        let light = if sketch.traits.has(Trait::Light) { self.light } else { self.build };
        Fixed::thousandths(self.without_light(sketch, inputs) + light)
    }

    /// The most that any job can get that became ready at `ready` or later, and of which the
    /// worker lacks `bytes` or more. `None` means that it did not say what it lacks.
    pub(crate) fn of_rest(&self, ready: Timestamp, bytes: Option<u64>) -> Fixed {
        let sketch = Sketch { ready, ..self.envelope };
        let inputs = Inputs { missing_bytes: bytes, missing_paths: bytes.map(|_| 0) };
        let light = if sketch.traits.has(Trait::Light) { self.light } else { 0 };
        Fixed::thousandths(self.without_light(&sketch, inputs) + light.max(self.build))
    }

    fn without_light(&self, sketch: &Sketch, inputs: Inputs) -> i64 {
        let waited = u64::try_from(self.now.since(sketch.ready).0).unwrap_or(0);
        let counts = |does: bool, points: i64| if does { points } else { 0 };
        inputs.missing_bytes.map_or(0, |bytes| self.bytes.at(bytes))
            + inputs.missing_paths.map_or(0, |paths| self.paths.at(u64::from(paths)))
            + self.wait.at(waited)
            + self.dependents.at(u64::from(sketch.dependents))
            + counts(sketch.traits.has(Trait::PreferLocal), self.prefer_local)
            + counts(sketch.traits.has(Trait::Network), self.network)
            + counts(sketch.has_history, self.history)
            + self.any
    }
}

/// The most that a rule gives on this worker, weighed.
fn most_of(asker: &Asker<'_>, rule: Rule) -> i64 {
    let found = rules::of(&asker.world.policy).find(|(sheet, _)| sheet.rule == rule);
    found.map_or(0, |(sheet, weight)| weighed_up(sheet.most(asker), weight))
}

/// Points times their weight; and a little more if they are weighed, because they are rounded
/// before and after.
fn weighed_up(points: Fixed, weight: Fixed) -> i64 {
    let slack = if weight == Fixed::ONE { 0 } else { weight.in_thousandths() / 1_000 + 2 };
    if points > Fixed::ZERO { points.times(weight).in_thousandths() + slack } else { 0 }
}
