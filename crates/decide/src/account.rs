//! Measurements of a tenant: how long its queue was, and how well lengths of its jobs were known.
//!
//! The starvation bound uses both. Shorter jobs of a tenant may go before an older one for a while.
//! Count the slot time that the tenant was served since the older job came. When that reaches the
//! most work that waited at once, times the skill of lengths, the older job goes first. Only jobs
//! that are older still go before it, and these are at most that work once more. So a job waits for
//! at most twice the longest queue of its tenant. In the order of arrival it would wait for at most
//! the longest queue. Without skill it waits for an eighth more than that.
//!
//! All of this counts slot time that the tenant itself was served, so no other tenant changes it.

use model::tenant::{Peak, Trust};
use model::{Fixed, Millis, Timestamp};

/// A full skill, in thousandths.
pub(crate) const SKILL_FULL: i64 = 1_000;

/// Where lengths are not known, so much of the longest queue may still go before an older job: jobs
/// of a higher class of priority, and interactive ones. A wait is then to be at most a quarter
/// longer than in the order of arrival. This is half of that. The rest is for the longest jobs.
const LEAST: i64 = SKILL_FULL / 8;

/// The bound is kept to within this part of the most work that waited.
const MARKS: i64 = 16;

/// A judged run counts 1/e after so many more runs.
const MEMORY: i64 = 64;

/// Numbers that follow from the account of a tenant. They are the same for all of a decision,
/// because no slot time passes in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// How well its lengths were known, in thousandths: among its own jobs …
    pub(crate) skill: i64,
    /// … and among the jobs of all tenants that have jobs or are not even.
    pub(crate) skill_among_all: i64,
    /// Its jobs that became ready by then are overdue. `None` means that none is.
    pub(crate) overdue_until: Option<Timestamp>,
}

/// Slot time of attempts that were placed while another tenant competed for their slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contested {
    /// Slots in use, and the sum of when each of them was taken.
    slots: i128,
    taken_at: i128,
    /// Slot-milliseconds of attempts that ended.
    pub(crate) ended: i128,
    /// The part that is on the account.
    settled: i128,
}

impl Contested {
    pub(crate) fn start(&mut self, attempt: Option<(u32, Timestamp)>) {
        let Some((slots, at)) = attempt else { return };
        self.slots += i128::from(slots);
        self.taken_at += i128::from(slots) * i128::from(at.0);
    }

    pub(crate) fn end(&mut self, attempt: Option<(u32, Timestamp)>) {
        let Some((slots, at)) = attempt else { return };
        self.slots -= i128::from(slots);
        self.taken_at -= i128::from(slots) * i128::from(at.0);
    }

    /// The slot time that was taken by `now` and not settled before.
    pub(crate) fn settle(&mut self, now: Timestamp) -> i128 {
        let all = self.ended + self.slots * i128::from(now.0) - self.taken_at;
        all - std::mem::replace(&mut self.settled, all)
    }
}

/// Takes in how much work waits, after a tenant was served so much.
pub(crate) fn observe(queue: &mut Peak, work: i64, served: i64, now: Timestamp) {
    if work == 0 {
        *queue = Peak::default();
        return;
    }
    if queue.marks.is_empty() {
        queue.since = served;
    }
    queue.now = queue.now.max(work);
    if served.saturating_sub(queue.since) > queue.now {
        (queue.before, queue.now, queue.since) = (queue.now, work, served);
    }
    let step = most(queue) / MARKS;
    if queue.marks.last().is_none_or(|(_, last)| served.saturating_sub(*last) > step) {
        queue.marks.push((now, served));
    }
    // Of those out of reach, the latest tells who is overdue.
    let reach = served.saturating_sub(most(queue).saturating_mul(2));
    let n_past = queue.marks.iter().take_while(|(_, mark)| *mark <= reach).count();
    queue.marks.drain(..n_past.saturating_sub(1));
}

fn most(queue: &Peak) -> i64 {
    queue.now.max(queue.before)
}

/// Jobs that became ready by this moment are overdue: since then their tenant, which has been
/// served so much by now and whose lengths have this skill, was served what the bound says.
pub(crate) fn overdue_until(queue: &Peak, skill: i64, served: i64) -> Option<Timestamp> {
    let reach = i128::from(most(queue)) * i128::from(skill.max(LEAST)) / i128::from(SKILL_FULL);
    let past = i128::from(served) - reach.max(1);
    let mut marks = queue.marks.iter().rev();
    marks.find(|(_, mark)| i128::from(*mark) <= past).map(|(at, _)| *at)
}

/// A job ran for so long after so long was expected.
pub(crate) fn judge(trust: &mut Trust, said: Millis, ran: Millis) {
    let (said, ran) = (log2(said), log2(ran));
    let faded = |sum: i64| sum - sum / MEMORY;
    trust.runs = Fixed::thousandths(faded(trust.runs.in_thousandths())) + Fixed::ONE;
    trust.sum = faded(trust.sum) + ran;
    trust.squares = faded(trust.squares) + ran * ran;
    trust.errors = faded(trust.errors) + (said - ran) * (said - ran);
}

/// The skill of a tenant's lengths, in thousandths: the part of the spread of lengths that expected
/// lengths explained, less one run's worth of doubt. The spread is that of the tenant, or `wider`.
pub(crate) fn skill(trust: &Trust, wider: Option<i64>) -> i64 {
    let spread = wider.unwrap_or_else(|| spread(trust));
    let Some(error) = mean(trust.errors, trust.runs) else { return 0 };
    if spread == 0 {
        return 0;
    }
    let doubt = SKILL_FULL * 1_000 / trust.runs.in_thousandths().max(1);
    let explained = SKILL_FULL - error.saturating_mul(1_000) / spread;
    (explained - doubt).clamp(0, SKILL_FULL)
}

/// The spread of lengths: their variance. Zero means that nothing ran.
pub(crate) fn spread(trust: &Trust) -> i64 {
    let Some(centre) = mean(trust.sum, trust.runs) else { return 0 };
    let squares = mean(trust.squares, trust.runs).unwrap_or(0);
    (squares - centre * centre).max(0)
}

fn mean(sum: i64, runs: Fixed) -> Option<i64> {
    match sum.checked_mul(1_000) {
        Some(sum) => sum.checked_div(runs.in_thousandths()),
        // More runs than any fleet has, and far more tenants: the quotient is what counts.
        None => sum.checked_div(runs.in_thousandths() / 1_000),
    }
}

/// Adds up what was judged of several tenants.
pub(crate) fn add(all: &mut Trust, own: &Trust) {
    all.runs += own.runs;
    all.sum += own.sum;
    all.squares += own.squares;
    all.errors += own.errors;
}

/// The logarithm of a length in milliseconds to the base of 2, in thousandths; exact to two.
pub(crate) fn log2(Millis(length): Millis) -> i64 {
    let length = length.max(1).unsigned_abs();
    let whole = i64::from(length.ilog2());
    // The length as a number from one to two, in parts of 2^32; squared, its logarithm doubles.
    let mut part = (u128::from(length) << 32) >> length.ilog2();
    let mut thousandths = 0;
    let mut worth = 512;
    for _ in 0..10 {
        part = (part * part) >> 32;
        if part >= 2 << 32 {
            part >>= 1;
            thousandths += worth;
        }
        worth /= 2;
    }
    whole * 1_000 + thousandths * 1_000 / 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_two_thousandths() {
        for length in [1_i64, 2, 3, 10, 1_000, 12_345, 1 << 40, (1 << 40) + 12_345_678_901] {
            #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a test")]
            let truth = (length as f64).log2() * 1_000.0;
            #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a test")]
            let error = (log2(Millis(length)) as f64 - truth).abs();
            assert!(error < 2.0, "log2 of {length} is off by {error}");
        }
    }

    /// A tenant whose jobs run for so many seconds after so much was said of them.
    fn trust(runs: impl IntoIterator<Item = (i64, i64)>) -> Trust {
        let mut trust = Trust::default();
        for (said, ran) in runs {
            judge(&mut trust, Millis::from_secs(said), Millis::from_secs(ran));
        }
        trust
    }

    #[test]
    fn what_was_said_right_has_skill_and_a_lie_has_none() {
        let lengths = || (0..100_i64).map(|at| 1 + at * 37 % 64);
        assert!(skill(&trust(lengths().map(|ran| (ran, ran))), None) > 950);
        assert_eq!(skill(&trust(lengths().map(|ran| (1, ran))), None), 0);
        assert_eq!(skill(&trust([]), None), 0);
        assert_eq!(skill(&trust([(5, 5)]), None), 0, "one run proves nothing");
    }

    #[test]
    fn a_job_is_overdue_once_its_tenant_was_served_its_longest_queue() {
        let mut queue = Peak::default();
        // 100 slot-seconds wait at first, and are served one by one.
        for at in 0..=100_i64 {
            let work = (100 - at).max(1) * 1_000;
            observe(&mut queue, work, at * 1_000, Timestamp(at * 1_000));
        }
        let until = overdue_until(&queue, 0, 100_000).expect("jobs are overdue");
        assert!((Timestamp(75_000)..=Timestamp(88_000)).contains(&until), "{until:?}");
        let until = overdue_until(&queue, SKILL_FULL, 100_000).expect("the first jobs are overdue");
        assert!(until <= Timestamp(7_000), "{until:?}");
        observe(&mut queue, 0, 300_000, Timestamp(300_000));
        assert_eq!(overdue_until(&queue, 0, 300_000), None);
    }
}
