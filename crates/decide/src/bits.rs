//! Sets of small numbers, one bit each.

/// A set of worker positions. Operations cost one step for each 64 positions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// The same set without words that say nothing, so that equal sets are equal.
    pub(crate) fn trimmed(&self) -> Self {
        let n_words = self.words.iter().rposition(|word| *word != 0).map_or(0, |at| at + 1);
        Self { words: self.words[..n_words].to_vec() }
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

/// How many numbers are in all of these sets.
pub(crate) fn count_common(sets: &[&Bits]) -> usize {
    common(sets).map(n_ones).sum()
}

/// Of the numbers that are in all of these sets, in order, those at `places`, which are sorted.
pub(crate) fn pick_common(sets: &[&Bits], places: &[usize]) -> Vec<usize> {
    let mut picked = Vec::with_capacity(places.len());
    let mut places = places.iter().peekable();
    let mut n_before = 0;
    for (at, word) in common(sets).enumerate() {
        let n_until = n_before + n_ones(word);
        while let Some(place) = places.next_if(|place| **place < n_until) {
            picked.extend(ones(at, word).nth(place - n_before));
        }
        n_before = n_until;
    }
    picked
}

fn common(sets: &[&Bits]) -> impl Iterator<Item = u64> {
    let n_words = sets.iter().map(|set| set.words.len()).min().unwrap_or(0);
    (0..n_words).map(|at| sets.iter().fold(u64::MAX, |word, set| word & set.words[at]))
}

fn n_ones(word: u64) -> usize {
    usize::try_from(word.count_ones()).expect("a usize holds 64")
}

/// The numbers of the bits of `word`, the `at`th of a set.
fn ones(at: usize, mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = usize::try_from(word.trailing_zeros()).expect("a usize holds 64");
        word &= word - 1;
        Some(at * WIDTH + bit)
    })
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

    #[test]
    fn what_sets_have_in_common_is_counted_and_picked_without_listing_it() {
        let set = |step: usize| {
            let mut set = Bits::below(1_000);
            (0..1_000).step_by(step).for_each(|at| set.set(at, true));
            set
        };
        let (twos, threes, fives) = (set(2), set(3), set(5));
        let sets = [&twos, &threes, &fives];
        assert_eq!(count_common(&sets), 34);
        assert_eq!(pick_common(&sets, &[0, 1, 7, 33]), [0, 30, 210, 990]);
        assert_eq!(pick_common(&sets[..1], &[31, 32, 33]), [62, 64, 66]);
    }
}
