//! The account of a tenant.

use model::{Fixed, Timestamp, maxima};

use super::list::{List, Object};
use super::number::{Moment, Natural, Number, SignedNumber};
use super::{or, unless};

record! {
    /// The slot time of a tenant.
    #[derive(Default)]
    Account {
        /// Slot-milliseconds for each unit of weight that it is ahead of its share. Negative if
        /// behind. 0 if left out.
        ahead: Option<SignedNumber>,
        /// Whether its share is measured now. False if left out.
        competes: Option<bool>,
        /// Slot-milliseconds of its ended attempts. 0 if left out.
        served: Option<Natural>,
        /// The largest amount of waiting work in the current span, in slot-milliseconds.
        queue_max: Option<Natural>,
        /// The same in the span before it.
        queue_max_before: Option<Natural>,
        /// Its served slot time at the start of the current span.
        queue_since: Option<Natural>,
        /// Times with its served slot time, oldest first.
        marks: Option<List<Object<Mark>, { maxima::KEYS_MAX }>>,
        /// The number of runs with a judged prediction. 0 if left out.
        judged: Option<Number>,
        /// The sum of the logarithms of their run times to the base of 2, in thousandths.
        judged_sum: Option<Natural>,
        /// The sum of the squares of these.
        judged_squares: Option<Natural>,
        /// The sum of the squares of the errors of their predictions.
        judged_errors: Option<Natural>,
    }
}

record! {
    /// A time, and the tenant's served slot time until then.
    Mark {
        /// The time, in milliseconds.
        at_ms: Moment,
        /// Slot-milliseconds.
        served: Natural,
    }
}

impl Account {
    pub(super) fn read(self) -> model::tenant::Account {
        let marks = self.marks.into_iter().flat_map(|list| list.0);
        let marks =
            marks.map(|Object(mark)| (Timestamp::from(mark.at_ms), whole(Some(mark.served))));
        model::tenant::Account {
            ahead: or(self.ahead, Fixed::ZERO),
            competes: or(self.competes, false),
            served: whole(self.served),
            queue: model::tenant::Peak {
                now: whole(self.queue_max),
                before: whole(self.queue_max_before),
                since: whole(self.queue_since),
                marks: marks.collect(),
            },
            trust: model::tenant::Trust {
                runs: or(self.judged, Fixed::ZERO),
                sum: whole(self.judged_sum),
                squares: whole(self.judged_squares),
                errors: whole(self.judged_errors),
            },
        }
    }

    pub(super) fn write(account: &model::tenant::Account) -> Self {
        let (queue, trust) = (&account.queue, &account.trust);
        let marks = queue.marks.iter().map(|(at, served)| {
            let served = Natural(u64::try_from(*served).unwrap_or(0));
            Object(Mark { at_ms: (*at).into(), served })
        });
        let most = Fixed::whole(maxima::NUMBER_MAX);
        let ahead = account.ahead.max(Fixed::ZERO - most).min(most);
        Self {
            ahead: unless(ahead, &Fixed::ZERO).map(SignedNumber),
            competes: unless(account.competes, &false),
            served: natural(account.served),
            queue_max: natural(queue.now),
            queue_max_before: natural(queue.before),
            queue_since: natural(queue.since),
            marks: (!queue.marks.is_empty()).then(|| List(marks.collect())),
            judged: unless(trust.runs, &Fixed::ZERO).map(Number),
            judged_sum: natural(trust.sum),
            judged_squares: natural(trust.squares),
            judged_errors: natural(trust.errors),
        }
    }
}

fn whole(given: Option<Natural>) -> i64 {
    given.map_or(0, |Natural(number)| i64::try_from(number).unwrap_or(i64::MAX))
}

fn natural(number: i64) -> Option<Natural> {
    u64::try_from(number).ok().filter(|number| *number > 0).map(Natural)
}
