//! Shares count from the moment a tenant has jobs that wait.
//!
//! A tenant's account is the slot-time that it has had, and its lift. Without the lift, a tenant
//! that comes back after an hour of nothing would be due that hour, and the whole fleet until it
//! has caught up. So whoever had no job waiting at one decision and has at the next is lifted to
//! where the others are by then, but for a little that it may still be due. Nobody is lowered: to
//! go away and come back is no way to make up for being ahead.
//!
//! **Invariant:** in which order tenants come back between two decisions does not matter.

use model::{Fixed, Millis, Tenant, Timestamp};

use crate::table::TenantIx;
use crate::tenants::{Sharer, Tenants};

/// Who comes back may be due what the whole fleet does in this time.
const DUE_MAX: Millis = Millis::from_secs(40);

/// Once accounts reach so many slot-milliseconds for each unit of weight, all are lowered alike:
/// they grow for as long as there is something to do, and only their differences matter.
const ACCOUNT_MAX: i128 = 1_000_000_000_000;

impl Tenants {
    /// Lifts the tenants that came back since the last decision began.
    pub(crate) fn lift_returning(&mut self, now: Timestamp, slots: u64) {
        let returning = self.take_returning();
        if returning.is_empty() {
            return;
        }
        let is_other = |(ix, _): &(TenantIx, &Sharer)| !returning.contains(ix);
        let others = || self.busy().filter(is_other).map(|(_, sharer)| sharer);
        // Whom its own limits keep below its share says nothing about where shares are.
        let rivals = Level::of(others().filter(|own| own.n_queued > 0 && own.contends()), now);
        let level = rivals.or_else(|| Level::of(others(), now));
        let Some(level) = level else { return self.start_anew() };
        let due_max = i128::from(slots) * i128::from(DUE_MAX.0);
        for ix in returning {
            self.change(ix, |sharer| {
                let least = level.account(sharer.share()) - due_max;
                sharer.lift((least - sharer.account(now)).max(0));
            });
        }
        self.lower_all(level.account(1_000));
    }

    /// Those that came back since the last decision began. From here on they were here.
    pub(crate) fn take_returning(&mut self) -> Vec<TenantIx> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let returning = changed.filter(|ix| {
            let sharer = &mut self.table[*ix];
            let is_waiting = sharer.n_queued > 0;
            let was_waiting = std::mem::replace(&mut sharer.was_waiting, is_waiting);
            is_waiting && !was_waiting
        });
        returning.collect()
    }

    /// Nobody had anything to do, so nobody is ahead or behind.
    fn start_anew(&mut self) {
        for ix in self.table.indices() {
            self.change(ix, |sharer| sharer.tenant.lift = Fixed::ZERO);
        }
    }

    /// Lowers all accounts by so much for each unit of weight, if it is much. Those who have
    /// nothing to do are lifted when they come back, so it does not matter how low they are.
    fn lower_all(&mut self, account: i128) {
        if account < ACCOUNT_MAX {
            return;
        }
        for ix in self.table.indices() {
            self.change(ix, |sharer| sharer.lift(-account * sharer.share() / 1_000));
        }
    }

    /// A tenant was set anew. A new weight counts from now on, so its account stays where it is
    /// among the others.
    pub(crate) fn keep_account(&mut self, ix: TenantIx, before: &Tenant, now: Timestamp) {
        if self.table[ix].tenant.weight == before.weight {
            return;
        }
        let share_before = i128::from(before.weight.in_thousandths().max(1));
        self.change(ix, |sharer| {
            let account = sharer.account(now);
            sharer.lift(account * sharer.share() / share_before - account);
        });
    }
}

/// Where shares are: what tenants have on their accounts, and their weights.
struct Level {
    account: i128,
    shares: i128,
}

impl Level {
    /// `None` if there are none.
    fn of<'a>(sharers: impl Iterator<Item = &'a Sharer>, now: Timestamp) -> Option<Self> {
        let pairs = sharers.map(|own| (own.account(now), own.share()));
        let sum = |one: (i128, i128), two: (i128, i128)| (one.0 + two.0, one.1 + two.1);
        pairs.reduce(sum).map(|(account, shares)| Self { account, shares })
    }

    /// The account of a tenant of this share that is neither ahead nor behind.
    const fn account(&self, share: i128) -> i128 {
        self.account * share / self.shares
    }
}
