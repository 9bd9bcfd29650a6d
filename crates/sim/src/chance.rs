//! Chance that is the same everywhere: whole numbers from a seed, and pure functions of them.

/// One number of `SplitMix64`.
pub(crate) const fn split_mix(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Draws, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    seed: u64,
    n_drawn: u64,
}

impl Chance {
    /// Draws of their own for each `stream` of a seed.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self { seed: split_mix(seed ^ split_mix(stream)), n_drawn: 0 }
    }

    /// Any number.
    pub(crate) const fn draw(&mut self) -> u64 {
        self.n_drawn += 1;
        split_mix(self.seed.wrapping_add(self.n_drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Above 0, up to 1.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) const fn part(&mut self) -> f64 {
        ((self.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// How long until something happens that happens once in `mean` on average.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.part()) * mean
    }

    /// Around zero; two of three are within one.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.part()));
        radius * libm::cos(std::f64::consts::TAU * self.part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means_and_streams_differ() {
        let mut chance = Chance::new(1, 0);
        let n_draws = 20_000_u32;
        let mean = |draw: &mut dyn FnMut() -> f64| {
            (0..n_draws).map(|_| draw()).sum::<f64>() / f64::from(n_draws)
        };
        assert!((mean(&mut || chance.exponential(5.0)) - 5.0).abs() < 0.15);
        assert!(mean(&mut || chance.normal()).abs() < 0.03);
        assert_ne!(Chance::new(1, 0).draw(), Chance::new(1, 1).draw());
    }
}
