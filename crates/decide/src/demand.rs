//! Who competes: tenants that ask for more than their share.
//!
//! What tenants ask for is the work that came lately, and the work that waits. Slots are dealt out
//! in thought: nobody gets more than it asks for, and what one leaves is for the others, by weight.
//! Whoever gets nearly all it asks for is content. Its jobs stand in the common order, where age
//! protects them: to let them go first would delay many short jobs of others and hardly help. The
//! others compete, and turns go by their shares, until none of their jobs waits.

use model::policy::{ASKED_SHARE, ASKED_SPAN, LENGTH_UNKNOWN, Turn};
use model::{Job, Millis, Recent};

use crate::table::TenantIx;
use crate::tenants::{Backlog, Sharer};
use crate::world::World;

/// A world that is younger than this is taken to be so old, or its first job would be a flood.
const AGE_MIN: Millis = Millis::from_secs(30);

/// What tenants ask for is counted over so many times the length of what runs, and no less than
/// [`ASKED_SPAN`]: who submits a job of a day asks for little if that happens once a week.
const LENGTHS: i128 = 12;

/// A job's length counts up to this, and what is asked for is counted over no more than this.
pub(crate) const ASKED_SPAN_MAX: Millis = Millis(ASKED_SPAN.0 << 10);

/// What of a job's length counts.
pub(crate) fn within_reach(length: Option<Millis>) -> Option<Millis> {
    length.map(|length| length.min(ASKED_SPAN_MAX))
}

/// Slots that are taken, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupied {
    work: Backlog,
    slots: i128,
}

impl Occupied {
    pub(crate) fn add(&mut self, slots: u32, length: Option<Millis>) {
        self.work.add(slots, within_reach(length));
        self.slots += i128::from(slots);
    }

    pub(crate) fn subtract(&mut self, slots: u32, length: Option<Millis>) {
        self.work.subtract(slots, within_reach(length));
        self.slots -= i128::from(slots);
    }

    /// How long what runs is expected to run, as a mean over slots; `None` if nothing runs.
    pub(crate) fn length(&self) -> Option<Millis> {
        let mean = self.work.work(LENGTH_UNKNOWN).checked_div(self.slots)?;
        i64::try_from(mean).ok().map(Millis)
    }

    /// Over which time to count what is asked for: doubled until it is long enough, so that it
    /// seldom changes.
    fn span(&self) -> Millis {
        let is_enough = |span: &Millis| {
            i128::from(span.0) * self.slots >= self.work.work(LENGTH_UNKNOWN) * LENGTHS
                || *span >= ASKED_SPAN_MAX
        };
        let mut spans = std::iter::successors(Some(ASKED_SPAN), |span| Some(Millis(span.0 * 2)));
        spans.find(is_enough).unwrap_or(ASKED_SPAN_MAX)
    }
}

impl World {
    /// Counts what a job's tenant asks for with it.
    pub(crate) fn count_asked(&mut self, tenant: TenantIx, job: &Job) {
        let length = within_reach(job.estimate).unwrap_or(LENGTH_UNKNOWN).0;
        let work = length.saturating_mul(i64::from(job.slots));
        let span = self.asked_span;
        self.tenants.ask(tenant, |sharer| {
            let asked = sharer.tenant.asked.get_or_insert_default();
            asked.add(job.ready, work, span);
        });
    }

    /// Finds those who compete from now on.
    pub(crate) fn review_demand(&mut self) {
        if self.policy.turn != Turn::Guaranteed || self.tenants.n_waiting < 2 {
            return;
        }
        self.asked_span = self.occupied.span();
        let all = self.tenants.asking();
        let all = all.map(|(ix, sharer)| (ix, self.asks(sharer), sharer.share()));
        let (mut asks, quiet): (Vec<_>, Vec<_>) = all.partition(|(_, asked, _)| *asked > 0);
        let quiet: Vec<TenantIx> = quiet.into_iter().map(|(ix, ..)| ix).collect();
        self.tenants.forget_asking(&quiet);
        // Who asks for least, for its weight, is satisfied first.
        asks.sort_by(|one, two| (one.1 * two.2).cmp(&(two.1 * one.2)).then(one.0.cmp(&two.0)));
        let mut left = i128::from(self.fleet.slots) * i128::from(self.asked_span.0);
        let mut shares: i128 = asks.iter().map(|(_, _, share)| share).sum();
        let enough = i128::from(ASKED_SHARE.in_thousandths());
        let n_content = asks.iter().take_while(|(_, asked, share)| {
            let is_content = asked * shares * 1_000 < enough * left * share;
            if is_content {
                left -= asked;
                shares -= share;
            }
            is_content
        });
        let n_content = n_content.count();
        for (ix, _, _) in asks.split_off(n_content) {
            self.tenants.change(ix, |sharer| sharer.tenant.competes |= sharer.n_queued > 0);
        }
    }

    /// What a tenant asks for in the time that is counted, in slot-milliseconds.
    fn asks(&self, sharer: &Sharer) -> i128 {
        let span = self.asked_span;
        let age = self.began.map_or(Millis::ZERO, |began| self.now.since(began));
        let counted = i128::from(age.0.clamp(AGE_MIN.0, span.0));
        let lately = |asked: &Recent| i128::from(asked.sum(self.now, span));
        let came = sharer.tenant.asked.as_ref().map_or(0, lately);
        came * i128::from(span.0) / counted + sharer.backlog.work(LENGTH_UNKNOWN)
    }
}
