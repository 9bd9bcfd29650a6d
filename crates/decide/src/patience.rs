//! How long anybody waits while shorter jobs go first.
//!
//! Shortest first is best for most and worst for the longest. So whoever has waited for longer than
//! its patience goes before all others, oldest first. Patience lasts for as long as the fleet would
//! need for all who wait, more or less: then nobody waits for much longer than if all had been
//! served as they came. In a crowd it lasts longer, for otherwise all would lose it and the short
//! jobs would wait for the long ones again.

use model::policy::Order;
use model::{Millis, Timestamp};

use crate::world::World;

/// However large the crowd, patience lasts no longer than so many thousandths of the time that the
/// fleet needs for it, beyond what it lasts anyway.
const CROWD_MAX: i128 = 4_000;

impl World {
    /// Takes in how long everybody is patient in this round.
    pub(crate) fn set_patience(&mut self) {
        self.patience = (self.policy.order == Order::Shortest).then(|| {
            let shortest = &self.policy.shortest;
            let slots = i128::from(self.fleet.slots.max(1));
            let n_waiting = i128::from(self.queue.crowd.all);
            let crowd = i128::from(shortest.patience_crowd.in_thousandths().max(1));
            let drain = self.queue.backlog.work() / slots;
            let part = i128::from(shortest.patience_drain.in_thousandths())
                + (n_waiting * 1_000_000 / (crowd * slots)).min(CROWD_MAX);
            let more = drain * part / 1_000;
            let min = shortest.patience_min.0;
            Millis(min.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)))
        });
    }

    /// How long everybody was patient in the last round; `None` where nobody needs to be.
    pub const fn patience(&self) -> Option<Millis> {
        self.patience
    }

    /// Jobs that became ready before this have lost their patience; `None` if nobody does.
    pub(crate) fn impatient_before(&self) -> Option<Timestamp> {
        self.patience.map(|patience| self.now - patience)
    }

    /// Whether a job that became ready then has waited for twice its patience: no slot is kept
    /// from it for rare work, and it goes before all others, whatever the shares of tenants.
    pub(crate) fn is_desperate(&self, ready: Timestamp) -> bool {
        let waited = self.now.since(ready);
        self.patience.is_none_or(|patience| waited.0 / 2 >= patience.0)
    }
}
