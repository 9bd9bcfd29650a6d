//! Sets of small numbers, one bit each.

/// A set of worker positions. Operations cost one step for each 64 positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

const WIDTH: usize = 64;

impl Bits {
    /// The empty set that will hold numbers below `bound`.
    pub(crate) fn below(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(WIDTH)] }
    }

    pub(crate) fn set(&mut self, at: usize, is_in: bool) {
        let (word, bit) = (at / WIDTH, 1 << (at % WIDTH));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if is_in {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.words.get(at / WIDTH).is_some_and(|word| word & (1 << (at % WIDTH)) != 0)
    }

    /// The numbers in the set, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.and(self)
    }

    /// The numbers that are in both sets, in order.
    pub(crate) fn and<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = usize> + 'a {
        let mut words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).enumerate();
        let (mut start, mut word) = (0, 0_u64);
        std::iter::from_fn(move || {
            if word == 0 {
                let at;
                (at, word) = words.find(|(_, word)| *word != 0)?;
                start = at * WIDTH;
            }
            let bit = usize::try_from(word.trailing_zeros()).expect("a usize holds 64");
            word &= word - 1;
            Some(start + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_out_in_order_and_only_common_ones_from_two_sets() {
        let mut one = Bits::below(200);
        let mut two = Bits::below(200);
        for at in [0, 63, 64, 65, 199] {
            one.set(at, true);
        }
        for at in [63, 65, 100, 199] {
            two.set(at, true);
        }
        two.set(199, false);
        assert_eq!(one.iter().collect::<Vec<_>>(), [0, 63, 64, 65, 199]);
        assert_eq!(one.and(&two).collect::<Vec<_>>(), [63, 65]);
        assert!(one.has(199) && !two.has(199) && !one.has(5_000));
    }
}
