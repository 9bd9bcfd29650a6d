//! How long jobs run.

use serde::Deserialize;

use crate::chance::Chance;

/// A law by which sizes are drawn, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Size {
    /// All the same.
    Fixed {
        /// How long.
        seconds: f64,
    },
    /// Without memory: many short, few long.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// The logarithm is normal: the wider, the heavier the tail.
    Lognormal {
        /// The mean.
        mean: f64,
        /// The width of the logarithm.
        sigma: f64,
    },
    /// A heavy tail without end.
    Pareto {
        /// The shortest.
        min: f64,
        /// How fast the tail falls; with 1 or less there is no mean.
        alpha: f64,
    },
    /// A heavy tail that ends.
    BoundedPareto {
        /// The shortest.
        min: f64,
        /// The longest.
        max: f64,
        /// How fast the tail falls.
        alpha: f64,
    },
}

/// No job is longer than a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

impl Size {
    pub(super) fn check(self) -> Result<(), String> {
        let numbers = match self {
            Self::Fixed { seconds } => vec![seconds],
            Self::Exponential { mean } => vec![mean],
            Self::Lognormal { mean, sigma } => vec![mean, sigma],
            Self::Pareto { min, alpha } => vec![min, alpha],
            Self::BoundedPareto { min, max, alpha } => vec![min, max, alpha, max - min],
        };
        let is_fine = numbers.iter().all(|number| *number > 0.0 && number.is_finite());
        let problem = || format!("has a `size` {self:?}: all are above 0, and `min` below `max`");
        is_fine.then_some(()).ok_or_else(problem)
    }

    pub(super) fn draw(self, chance: &mut Chance) -> f64 {
        let seconds = match self {
            Self::Fixed { seconds } => seconds,
            Self::Exponential { mean } => chance.exponential(mean),
            Self::Lognormal { mean, sigma } => {
                libm::exp(libm::log(mean) - sigma * sigma / 2.0 + sigma * chance.normal())
            }
            Self::Pareto { min, alpha } => min / libm::pow(chance.part(), 1.0 / alpha),
            Self::BoundedPareto { min, max, alpha } => {
                let ratio = libm::pow(min / max, alpha);
                let left = 1.0 - (1.0 - chance.part()) * (1.0 - ratio);
                min / libm::pow(left, 1.0 / alpha)
            }
        };
        seconds.min(SECONDS_MAX)
    }
}
