//! Laws of lengths of which a part can be known before a job runs.
//!
//! A length is the quantile of a normal number. That number is a sum: parts that the jobs of one
//! type, tenant or key share, and a part of the job alone. So lengths follow the law, and the key
//! tells as much of them as its part of the variance.

use crate::chance::Chance;

/// A law of lengths with a mean, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Law {
    Constant,
    Exponential,
    /// The width of the logarithm.
    Lognormal {
        sigma: f64,
    },
    /// How fast the tail falls. The longest is [`LONGEST`] times the shortest.
    Pareto {
        alpha: f64,
    },
    /// The part of the jobs that are long, and how many times as long as the others they are.
    Bimodal {
        part: f64,
        times: f64,
    },
}

/// The longest job of a Pareto law over the shortest.
const LONGEST: f64 = 2_000.0;

impl Law {
    pub(super) const N: u64 = 5;

    /// The law of a number from 0 to 4, with parameters by chance.
    pub(super) fn draw(number: u64, chance: &mut Chance) -> Self {
        let within = |(least, most): (f64, f64), part: f64| least + (most - least) * part;
        let parts = [chance.part(), chance.part()];
        match number {
            0 => Self::Constant,
            1 => Self::Exponential,
            2 => Self::Lognormal { sigma: within((0.7, 2.2), parts[0]) },
            3 => Self::Pareto { alpha: within((1.1, 1.9), parts[0]) },
            _ => Self::Bimodal {
                part: within((0.05, 0.3), parts[0]),
                times: 10.0 * libm::pow(20.0, parts[1]),
            },
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Constant => "constant".to_owned(),
            Self::Exponential => "exponential".to_owned(),
            Self::Lognormal { sigma } => format!("lognormal, sigma {sigma:.1}"),
            Self::Pareto { alpha } => format!("Pareto, alpha {alpha:.1}"),
            Self::Bimodal { part, times } => {
                format!("bimodal, {:.0} % are {times:.0} times as long", part * 100.0)
            }
        }
    }

    /// The length for a normal number.
    pub(super) fn quantile(self, mean_s: f64, normal: f64) -> f64 {
        // The part of the jobs that are longer.
        let above = 0.5 * libm::erfc(normal / std::f64::consts::SQRT_2);
        match self {
            Self::Constant => mean_s,
            Self::Exponential => -mean_s * libm::log(above.max(f64::MIN_POSITIVE)),
            Self::Lognormal { sigma } => mean_s * libm::exp(sigma * normal - sigma * sigma / 2.0),
            Self::Pareto { alpha } => {
                let shortest = mean_s / mean_of_pareto(alpha);
                let rest = libm::pow(LONGEST, -alpha);
                shortest / libm::pow(rest + above * (1.0 - rest), 1.0 / alpha)
            }
            Self::Bimodal { part, times } => {
                let short = mean_s / (1.0 + part * (times - 1.0));
                if above < part { short * times } else { short }
            }
        }
    }
}

/// The mean over the shortest.
fn mean_of_pareto(alpha: f64) -> f64 {
    let ends = 1.0 - libm::pow(LONGEST, 1.0 - alpha);
    alpha / (alpha - 1.0) * ends / (1.0 - libm::pow(LONGEST, -alpha))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_mean_of_their_law() {
        let mut chance = Chance::new(1, 0);
        let laws = [
            Law::Constant,
            Law::Exponential,
            Law::Lognormal { sigma: 1.0 },
            Law::Pareto { alpha: 1.9 },
            Law::Bimodal { part: 0.2, times: 30.0 },
        ];
        for law in laws {
            let n_draws = 100_000_u32;
            let sum: f64 = (0..n_draws).map(|_| law.quantile(7.0, chance.normal())).sum();
            let mean = sum / f64::from(n_draws);
            assert!((mean / 7.0 - 1.0).abs() < 0.05, "{law:?}: {mean}");
        }
    }
}
