//! When jobs arrive, and whose they are.

use serde::Deserialize;

use super::picked;
use crate::chance::Chance;

/// How jobs arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(tag = "process", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// At any time as likely as at any other.
    #[default]
    Poisson,
    /// Now many, now few: times of both kinds follow each other, of lengths by chance.
    OnOff {
        /// The mean length of a time with many.
        on_s: f64,
        /// The mean length of a time with few.
        off_s: f64,
        /// Few are so many times as many as many; 0 is none at all.
        #[serde(default)]
        off_part: f64,
    },
    /// More by day than by night.
    Daily {
        /// From 0, all the same, to 1, none at the darkest.
        amplitude: f64,
    },
}

/// A tenant submits many times as much for a while, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// From the start of one to the start of the next.
    pub every_s: f64,
    /// How long one is.
    pub for_s: f64,
    /// So many times as much.
    pub factor: f64,
}

impl Burst {
    pub(super) fn check(self) -> Result<(), String> {
        let Self { every_s, for_s, factor } = self;
        let is_fine = for_s > 0.0 && every_s > for_s && factor >= 1.0 && factor.is_finite();
        let problem = "has a `burst` that is not: 0 < `for_s` < `every_s`, `factor` from 1";
        is_fine.then_some(()).ok_or_else(|| problem.to_owned())
    }

    fn factor(self, at_s: f64) -> f64 {
        // The first comes after a while: a workload does not begin with one.
        let since = (at_s + self.for_s) % self.every_s;
        if since < self.for_s && at_s >= self.for_s { self.factor } else { 1.0 }
    }
}

impl Arrivals {
    pub(super) fn check(self) -> Result<(), String> {
        let is_fine = match self {
            Self::Poisson => true,
            Self::OnOff { on_s, off_s, off_part } => {
                on_s > 0.0 && off_s > 0.0 && (0.0..=1.0).contains(&off_part)
            }
            Self::Daily { amplitude } => (0.0..=1.0).contains(&amplitude),
        };
        let problem = "has `arrivals` beyond their limits: lengths above 0, parts from 0 to 1";
        is_fine.then_some(()).ok_or_else(|| problem.to_owned())
    }

    /// How many times the mean the rate is at most.
    fn peak(self) -> f64 {
        match self {
            Self::Poisson => 1.0,
            Self::OnOff { on_s, off_s, off_part } => (on_s + off_s) / (on_s + off_s * off_part),
            Self::Daily { amplitude } => 1.0 + amplitude,
        }
    }
}

const DAY_S: f64 = 86_400.0;

/// Goes from arrival to arrival: at the highest rate there is, of which only some come true.
pub(super) struct Clock<'a> {
    chance: Chance,
    arrivals: Arrivals,
    tenants: &'a [(f64, Option<Burst>)],
    now_s: f64,
    /// The mean time between two at the highest rate.
    gap_s: f64,
    /// How many times the mean is submitted if all have bursts at once.
    bursts: f64,
    /// When many become few or few many, and whether it is many now.
    turn_s: f64,
    is_on: bool,
}

impl<'a> Clock<'a> {
    /// Arrivals at a mean rate in a second, from a seed.
    pub(super) fn new(
        arrivals: Arrivals,
        (rate_per_s, seed): (f64, u64),
        tenants: &'a [(f64, Option<Burst>)],
    ) -> Self {
        let most = tenants.iter().map(|(share, burst)| share * burst.map_or(1.0, |own| own.factor));
        let shares: f64 = tenants.iter().map(|(share, _)| share).sum();
        let bursts = most.sum::<f64>() / shares;
        let peak = arrivals.peak() * bursts;
        Self {
            chance: Chance::new(seed, 0),
            arrivals,
            tenants,
            now_s: 0.0,
            gap_s: 1.0 / (rate_per_s * peak),
            bursts,
            turn_s: 0.0,
            is_on: false,
        }
    }

    /// The next arrival, and whose it is.
    pub(super) fn next(&mut self) -> (f64, usize) {
        loop {
            self.now_s += self.chance.exponential(self.gap_s);
            let now_s = self.now_s;
            let share = |(share, burst): &(f64, Option<Burst>)| {
                share * burst.map_or(1.0, |own| own.factor(now_s))
            };
            let shares = self.tenants.iter().map(share);
            let all: f64 = self.tenants.iter().map(|(share, _)| share).sum();
            let bursts = shares.clone().sum::<f64>() / all;
            let part = self.part() * bursts / self.bursts;
            if self.chance.part() <= part {
                return (now_s, picked(&mut self.chance, shares));
            }
        }
    }

    /// The rate now, as a part of the highest.
    fn part(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Poisson => 1.0,
            Arrivals::Daily { amplitude } => {
                let wave = libm::sin(std::f64::consts::TAU * (self.now_s / DAY_S));
                (1.0 + amplitude * wave) / (1.0 + amplitude)
            }
            Arrivals::OnOff { on_s, off_s, off_part } => {
                while self.now_s >= self.turn_s {
                    self.is_on = !self.is_on;
                    let mean = if self.is_on { on_s } else { off_s };
                    self.turn_s += self.chance.exponential(mean);
                }
                if self.is_on { 1.0 } else { off_part }
            }
        }
    }
}
