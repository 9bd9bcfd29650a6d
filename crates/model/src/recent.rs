//! Recent arrivals.

use crate::{Millis, Timestamp};

/// The arrivals in the current span of time and in the one before it. Spans start at multiples of
/// their length, so the order of the calls does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// When the current span began.
    pub since: Timestamp,
    /// The arrivals in it.
    pub amount: i64,
    /// The arrivals in the span before it.
    pub before: i64,
}

impl Recent {
    /// Counts arrivals at `at`. Arrivals before both spans are ignored.
    pub fn add(&mut self, at: Timestamp, amount: i64, span: Millis) {
        let since = beginning(at, span);
        if since > self.since {
            let is_next = since <= self.since + span;
            self.before = if is_next { self.amount } else { 0 };
            (self.since, self.amount) = (since, 0);
        }
        if at >= self.since {
            self.amount = self.amount.saturating_add(amount);
        } else if since + span >= self.since {
            self.before = self.before.saturating_add(amount);
        }
    }

    /// A counter with one arrival at `at`.
    pub fn one(at: Timestamp, span: Millis) -> Self {
        Self { since: beginning(at, span), amount: 1, before: 0 }
    }

    /// Adds the counts of `other`, which has spans of the same length.
    pub fn merge(&mut self, other: &Self, span: Millis) {
        self.add(other.since, other.amount, span);
        self.add(other.since - span, other.before, span);
    }

    /// The approximate arrivals in the last `span` before `now`. The span before counts by the part
    /// of it that is in reach.
    pub fn sum(&self, now: Timestamp, span: Millis) -> i64 {
        let since = beginning(now, span);
        let left = |amount: i64| scale(amount, span.0 - now.since(since).0, span.0);
        if since <= self.since {
            self.amount.saturating_add(left(self.before))
        } else if since <= self.since + span {
            left(self.amount)
        } else {
            0
        }
    }
}

fn beginning(at: Timestamp, span: Millis) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(span.0))
}

fn scale(amount: i64, numerator: i64, denominator: i64) -> i64 {
    let scaled = i128::from(amount) * i128::from(numerator) / i128::from(denominator);
    i64::try_from(scaled).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Millis = Millis(100);

    fn recent(arrivals: &[(i64, i64)]) -> Recent {
        let mut recent = Recent::default();
        for (at, amount) in arrivals {
            recent.add(Timestamp(*at), *amount, SPAN);
        }
        recent
    }

    #[test]
    fn the_order_of_arrivals_does_not_matter() {
        let one = recent(&[(50, 7), (120, 1), (230, 2), (199, 4)]);
        let two = recent(&[(230, 2), (199, 4), (50, 7), (120, 1)]);
        assert_eq!(one, two);
        assert_eq!(one, Recent { since: Timestamp(200), amount: 2, before: 5 });
    }

    #[test]
    fn old_arrivals_fade() {
        let recent = recent(&[(110, 10)]);
        let sums = [110, 200, 250, 299, 300].map(|now| recent.sum(Timestamp(now), SPAN));
        assert_eq!(sums, [10, 10, 5, 0, 0]);
    }
}
