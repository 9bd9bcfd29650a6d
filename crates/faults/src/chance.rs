//! Random numbers from a seed, so that a run can be repeated.

use std::env;

use crate::clock::now_ms;

/// The variable that sets the seed.
const SEED: &str = "MAITRE_FAULT_SEED";

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The same seed gives the same draws.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed of the environment, or a new one.
    pub fn seed() -> u64 {
        let asked = env::var(SEED).ok().and_then(|seed| seed.parse().ok());
        asked.unwrap_or_else(|| Self::new(now_ms().unsigned_abs()).draw() % 1_000_000)
    }

    /// An independent generator.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        Self::new(self.draw())
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.draw() % (most - least + 1)
    }

    /// `true` in one of `n` cases.
    pub fn is_one_in(&mut self, n: u64) -> bool {
        self.draw().is_multiple_of(n)
    }

    /// A random entry. `None` if there are none.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let n = u64::try_from(all.len()).ok().filter(|n| *n > 0)?;
        all.get(usize::try_from(self.draw() % n).ok()?)
    }
}
