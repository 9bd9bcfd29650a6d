//! The usage at each time, and the largest usage in any span of time.

/// Sums of usage, and the largest of each run of sums.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The times of changes, each once.
    at: Vec<i64>,
    /// `most[k][n]` is the largest of the `2^k` sums from index `n` on.
    most: Vec<Vec<u64>>,
}

impl Timeline {
    /// A timeline of spans of time, their last times included, and the usage of each.
    pub(super) fn of(spans: impl IntoIterator<Item = (i64, i64, u64)>) -> Self {
        let mut changes: Vec<(i64, i128)> = Vec::new();
        for (from, to, taken) in spans {
            changes.push((from, i128::from(taken)));
            changes.push((to.saturating_add(1), -i128::from(taken)));
        }
        changes.sort_unstable();
        let (mut at, mut sums, mut taken) = (Vec::new(), Vec::new(), 0_i128);
        for same in changes.chunk_by(|one, next| one.0 == next.0) {
            taken += same.iter().map(|(_, change)| change).sum::<i128>();
            at.extend(same.first().map(|(at, _)| at));
            sums.push(u64::try_from(taken.max(0)).unwrap_or(u64::MAX));
        }
        let mut most = vec![sums];
        for width in (0..usize::BITS).map(|k| 1 << k).take_while(|width| 2 * width <= at.len()) {
            let below: &[u64] = most.last().map_or(&[], Vec::as_slice);
            let pairs = below.iter().zip(below.iter().skip(width));
            let level = pairs.map(|(one, other)| *one.max(other)).collect();
            most.push(level);
        }
        Self { at, most }
    }

    /// The largest usage from the first to the last of these times.
    pub(super) fn most(&self, from: i64, to: i64) -> u64 {
        // The usage at the first time began before it.
        let start = self.at.partition_point(|at| *at <= from).saturating_sub(1);
        let end = self.at.partition_point(|at| *at <= to);
        let Some(level) = end.checked_sub(start).and_then(usize::checked_ilog2) else { return 0 };
        let level = usize::try_from(level).unwrap_or(usize::MAX);
        let Some(sums) = self.most.get(level) else { return 0 };
        let at = |place: usize| sums.get(place).copied().unwrap_or(0);
        at(start).max(at(end - (1 << level)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn timeline_maximum_equals_a_naive_sum(
            drawn in vec((0_i64..50, 0_i64..20, 0_u64..5), 0..40),
        ) {
            let spans = drawn.iter().map(|(from, length, taken)| (*from, from + length, *taken));
            let timeline = Timeline::of(spans.clone());
            let taken = |at: i64| -> u64 {
                let there = spans.clone().filter(|(from, to, _)| *from <= at && at <= *to);
                there.map(|(_, _, taken)| taken).sum()
            };
            for from in -1..75 {
                let mut most = 0;
                for to in from..75 {
                    most = most.max(taken(to));
                    prop_assert_eq!(timeline.most(from, to), most, "{} to {}", from, to);
                }
            }
        }
    }

    #[test]
    fn span_without_an_end_counts_to_the_end() {
        let timeline = Timeline::of([(5, i64::MAX, 3)]);
        assert_eq!((timeline.most(0, 4), timeline.most(0, 5)), (0, 3));
        assert_eq!(timeline.most(1_000, i64::MAX - 1), 3);
    }
}
