//! What tenants used lately.

use std::collections::{BTreeSet, VecDeque};

use model::{Fixed, Millis, Timestamp};

/// What tenants used lately.
pub(crate) struct Usage {
    window: Millis,
    ended: VecDeque<(Timestamp, usize, Fixed)>,
    by_tenant: Vec<(Fixed, u64)>,
    counted: Timestamp,
}

/// So often usage that is old enough is forgiven, as by a scheduler.
const FORGET_EVERY: Millis = Millis::from_secs(30);

impl Usage {
    pub(crate) fn new(n_tenants: usize, window: Millis) -> Self {
        let by_tenant = vec![(Fixed::ZERO, 0); n_tenants];
        Self { window, ended: VecDeque::new(), by_tenant, counted: Timestamp(0) }
    }

    pub(crate) fn add(&mut self, now: Timestamp, tenant: usize, cost: Fixed) {
        self.ended.push_back((now, tenant, cost));
        let (used, completed) = &mut self.by_tenant[tenant];
        *used += cost;
        *completed += 1;
    }

    /// What a tenant used, and how many jobs it completed.
    pub(crate) fn of(&self, tenant: usize) -> (Fixed, u64) {
        self.by_tenant[tenant]
    }

    /// What all tenants used.
    pub(crate) fn all(&self) -> Fixed {
        self.by_tenant.iter().map(|(used, _)| *used).sum()
    }

    /// When to look next for something to forgive; `None` if there is nothing.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let (ended, ..) = self.ended.front()?;
        Some((*ended + self.window).max(self.counted + FORGET_EVERY))
    }

    /// The tenants whose usage is less than it was, now and then.
    pub(crate) fn forget(&mut self, now: Timestamp) -> BTreeSet<usize> {
        let mut changed = BTreeSet::new();
        if now.since(self.counted) < FORGET_EVERY {
            return changed;
        }
        self.counted = now;
        while let Some((ended, tenant, cost)) = self.ended.front().copied()
            && ended <= now - self.window
        {
            self.ended.pop_front();
            let (used, completed) = &mut self.by_tenant[tenant];
            *used -= cost;
            *completed -= 1;
            changed.insert(tenant);
        }
        changed
    }
}
