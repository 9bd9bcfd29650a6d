//! A histogram of wait times that can be added to another and has few buckets.
//!
//! Eight buckets for each power of two: a percentile is at most an eighth too long.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Shorter waits have a bucket for each millisecond.
const EXACT: u64 = 16;
/// Longer waits count as this long (2^40 ms are 34 years).
const LONGEST: u64 = (1 << 40) - 1;

/// How many waits were in which bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Waits(BTreeMap<u32, u64>);

impl Waits {
    /// One more wait.
    pub(super) fn add(&mut self, wait_ms: u64) {
        *self.0.entry(bucket(wait_ms)).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, n) in &other.0 {
            *self.0.entry(*bucket).or_default() += n;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The wait that `percent` of 100 did not exceed. `None`: there are no waits.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let n_all: u64 = self.0.values().sum();
        let rank = n_all.saturating_mul(percent).div_ceil(100);
        let mut n_seen = 0;
        let mut reached = self.0.iter().filter(|(_, n)| {
            n_seen += **n;
            n_seen >= rank.max(1)
        });
        reached.next().map(|(bucket, _)| longest_of(*bucket))
    }
}

fn bucket(wait_ms: u64) -> u32 {
    let wait_ms = wait_ms.min(LONGEST);
    if wait_ms < EXACT {
        return u32::try_from(wait_ms).unwrap_or(u32::MAX);
    }
    let power = wait_ms.ilog2();
    let eighth = u32::try_from((wait_ms >> (power - 3)) & 7).unwrap_or(7);
    16 + (power - 4) * 8 + eighth
}

/// The longest wait of a bucket.
fn longest_of(bucket: u32) -> u64 {
    let Some(above) = bucket.checked_sub(16) else { return u64::from(bucket) };
    let (power, eighth) = ((above / 8).min(35) + 4, u64::from(above % 8));
    ((8 + eighth + 1) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_at_most_an_eighth_too_long() {
        for wait in (0..200).chain([1_000, 59_999, 86_400_000, LONGEST]) {
            let told = longest_of(bucket(wait));
            assert!(told >= wait && told - wait <= wait / 8, "{wait}: {told}");
        }
        assert_eq!(longest_of(bucket(u64::MAX)), LONGEST);
    }

    #[test]
    fn merged_waits_have_the_percentiles_of_all() {
        let (mut some, mut more) = (Waits::default(), Waits::default());
        assert_eq!(some.percentile(50), None);
        (0..5).for_each(|wait| some.add(wait));
        (5..10).for_each(|wait| more.add(wait));
        some.merge(&more);
        let percentiles = [1, 50, 90, 100].map(|percent| some.percentile(percent));
        assert_eq!(percentiles, [Some(0), Some(4), Some(8), Some(9)]);
    }
}
