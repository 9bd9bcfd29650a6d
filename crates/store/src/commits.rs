//! Sizes and durations of commits.

/// Requests in a commit.
const SIZES: &[u64] = &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];
/// Microseconds that a commit took.
const MICROS: &[u64] =
    &[50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000];

/// Statistics of the commits since the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commits {
    /// Requests in each commit.
    pub sizes: Histogram,
    /// Microseconds from the first change to its answer.
    pub micros: Histogram,
}

impl Default for Commits {
    fn default() -> Self {
        Self { sizes: Histogram::new(SIZES), micros: Histogram::new(MICROS) }
    }
}

/// Counts by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One more than the bounds: the last counts sizes above all of them.
    counts: Box<[u64]>,
    sum: u64,
}

impl Histogram {
    /// An empty histogram with these upper bounds, in rising order.
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1].into(), sum: 0 }
    }

    /// Counts one size.
    pub fn add(&mut self, size: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < size)] += 1;
        self.sum = self.sum.saturating_add(size);
    }

    /// Each upper bound, with the number of sizes above the bound before and up to this one. The
    /// last bucket has no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts.iter().copied())
    }

    /// The sum of all sizes.
    pub const fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_includes_its_upper_bound() {
        let mut histogram = Histogram::new(&[10, 20]);
        for size in [0, 10, 11, 20, 21, 1_000] {
            histogram.add(size);
        }
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!(buckets, [(Some(10), 2), (Some(20), 2), (None, 2)]);
        assert_eq!(histogram.sum(), 1_062);
    }
}
