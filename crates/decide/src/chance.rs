//! Draws from a seed: the only chance there is.

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

    /// `count` of the `items`, or all of them if there are no more, each set equally likely.
    pub(crate) fn sample<T: Copy>(&mut self, items: &mut Vec<T>, count: usize) {
        if items.len() <= count {
            return;
        }
        for at in 0..count {
            let left = u64::try_from(items.len() - at).expect("a u64 holds a usize");
            let pick = usize::try_from(self.below(left)).expect("it is below a usize");
            items.swap(at, at + pick);
        }
        items.truncate(count);
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
        let mut items: Vec<u32> = (0..100).collect();
        Chance::new(7).sample(&mut items, 50);
        items.sort_unstable();
        items.dedup();
        assert_eq!(items.len(), 50);
    }
}
