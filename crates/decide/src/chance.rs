//! Draws from a seed: the only chance there is.

use std::collections::BTreeMap;

/// A stream of numbers that is the same on every machine and for ever: `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The seed that goes on where this stream is.
    pub(crate) const fn seed(&self) -> u64 {
        self.state
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is above zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `count` different numbers below `bound`, or all of them if there are no more, in order; each
    /// set is equally likely. It costs as much as is drawn, not as much as there is.
    pub(crate) fn sample(&mut self, bound: usize, count: usize) -> Vec<usize> {
        if bound <= count {
            return (0..bound).collect();
        }
        // A shuffle of all numbers that stops after `count`; only those that moved are kept.
        let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
        let mut drawn = Vec::with_capacity(count);
        for at in 0..count {
            let left = u64::try_from(bound - at).expect("a u64 holds a usize");
            let pick = at + usize::try_from(self.below(left)).expect("it is below a usize");
            let here = moved.get(&at).copied().unwrap_or(at);
            drawn.push(moved.insert(pick, here).unwrap_or(pick));
        }
        drawn.sort_unstable();
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut chance = Chance::new(1_234_567);
        let drawn: Vec<u64> = (0..3).map(|_| chance.next()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }

    #[test]
    fn a_sample_has_no_item_twice() {
        let drawn = Chance::new(7).sample(100, 50);
        assert_eq!(drawn.len(), 50);
        assert!(drawn.is_sorted_by(|one, two| one < two) && drawn[49] < 100);
    }

    #[test]
    fn a_sample_is_the_front_of_a_shuffle() {
        let mut all: Vec<usize> = (0..40).collect();
        let mut chance = Chance::new(9);
        for at in 0..30_usize {
            let left = u64::try_from(40 - at).expect("a small number");
            all.swap(at, at + usize::try_from(chance.below(left)).expect("a small number"));
        }
        all.truncate(30);
        all.sort_unstable();
        assert_eq!(Chance::new(9).sample(40, 30), all);
    }

    #[test]
    fn a_sample_of_no_fewer_than_there_are_is_all_and_draws_nothing() {
        let mut chance = Chance::new(9);
        assert_eq!(chance.sample(3, 3), [0, 1, 2]);
        assert_eq!(chance.seed(), 9);
    }
}
