//! Recent arrivals.

use model::Timestamp;

use super::number::{Moment, Quantity};
use super::or;

record! {
    /// The arrivals in the current span of time and in the one before it.
    Recent {
        /// When the current span began, in milliseconds.
        since_ms: Option<Moment>,
        /// The arrivals in it. 0 if left out.
        amount: Option<Quantity>,
        /// The arrivals in the span before it. 0 if left out.
        before: Option<Quantity>,
    }
}

impl Recent {
    pub(crate) fn read(self) -> model::Recent {
        let whole = |given| i64::try_from(or(given, 0_u64)).unwrap_or(i64::MAX);
        model::Recent {
            since: or(self.since_ms, Timestamp::default()),
            amount: whole(self.amount),
            before: whole(self.before),
        }
    }

    pub(crate) fn write(recent: model::Recent) -> Self {
        let whole = |amount: i64| u64::try_from(amount).ok().filter(|amount| *amount > 0);
        Self {
            since_ms: Some(recent.since.into()),
            amount: whole(recent.amount).map(Quantity),
            before: whole(recent.before).map(Quantity),
        }
    }
}
