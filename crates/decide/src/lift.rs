//! Shares count from the moment a tenant has something to do.
//!
//! A tenant's account is what it used, and its lift. Without the lift, a tenant that comes back
//! after an hour of nothing would be due that hour, and the whole fleet until it has caught up. So
//! between two decisions, whoever had nothing to do at the first and has at the second is lifted to
//! where the others are by then: to no deficit. Nobody is lowered: to go away and come back is no
//! way to make up for being ahead.
//!
//! **Invariant:** in which order tenants come back between two decisions does not matter.

use model::{Fixed, Tenant};

use crate::table::TenantIx;
use crate::tenants::{Sharer, Sums, Tenants};

/// Once accounts reach so much for each unit of weight, all are lowered alike: they grow for as
/// long as there is something to do, and only their differences matter.
const LEVEL_MAX: i64 = 1_000_000_000;

impl Tenants {
    /// Lifts the tenants that came back since the last decision began.
    pub(crate) fn lift_returning(&mut self) {
        let returning = self.take_returning();
        if returning.is_empty() {
            return;
        }
        let (mut others, mut rivals) = (self.counted.clone(), self.contending.clone());
        for ix in &returning {
            let sharer = &self.table[*ix];
            others.subtract(sharer);
            if sharer.contends() {
                rivals.subtract(sharer);
            }
        }
        if others.count == 0 {
            return self.start_anew();
        }
        // Whom its own limits keep below its share says nothing about where shares are.
        let level = Level(if rivals.count > 0 { rivals } else { others });
        for ix in returning {
            if let Some(due) = level.due(self.table[ix].tenant.weight) {
                self.change(ix, |sharer| sharer.raise(due));
            }
        }
        self.lower_all(level.whole());
    }

    /// Those that came back since the last decision began. From here on they were here.
    pub(crate) fn take_returning(&mut self) -> Vec<TenantIx> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let returning = changed.filter(|ix| {
            let sharer = &mut self.table[*ix];
            let is_counted = sharer.counts();
            let was_counted = std::mem::replace(&mut sharer.was_counted, is_counted);
            is_counted && !was_counted
        });
        returning.collect()
    }

    /// Nobody had anything to do, so nobody is ahead or behind.
    fn start_anew(&mut self) {
        for ix in self.table.indices() {
            self.change(ix, |sharer| sharer.tenant.lift = -sharer.tenant.used);
        }
    }

    /// Lowers all accounts by so much for each unit of weight, if it is much. Those who have
    /// nothing to do are lifted when they come back, so they need not go below nothing.
    fn lower_all(&mut self, level: i64) {
        if level < LEVEL_MAX {
            return;
        }
        for ix in self.table.indices() {
            self.change(ix, |sharer| {
                sharer.tenant.lift -= sharer.tenant.weight.scale(level, 1);
                if !sharer.counts() {
                    sharer.raise(Fixed::ZERO);
                }
            });
        }
    }

    /// A tenant was set anew. Usage that left the window gives nobody a new due, and a new weight
    /// counts from now on, so its account stays where it is among the others.
    pub(crate) fn keep_account(&mut self, ix: TenantIx, before: &Tenant) {
        let weight = self.table[ix].tenant.weight;
        self.change(ix, |sharer| {
            sharer.tenant.lift += (before.used - sharer.tenant.used).max(Fixed::ZERO);
            if weight != before.weight && before.weight > Fixed::ZERO {
                let (weight, weight_before) =
                    (weight.in_thousandths(), before.weight.in_thousandths());
                let account = sharer.account();
                sharer.tenant.lift += account.scale(weight, weight_before) - account;
            }
        });
        if weight > Fixed::ZERO && before.weight == Fixed::ZERO {
            // It was due nothing, so it is as if it had not been there.
            self.table[ix].was_counted = false;
            self.changed.insert(ix);
        }
        self.lower_all(Level(self.counted.clone()).whole());
    }
}

impl Sharer {
    fn raise(&mut self, account: Fixed) {
        self.tenant.lift = self.tenant.lift.max(account - self.usage());
    }
}

/// Where shares are: what tenants have on their accounts, and their weights.
struct Level(Sums);

impl Level {
    fn account(&self) -> Fixed {
        self.0.usage + self.0.lift
    }

    /// The account of a tenant of this weight that is neither ahead nor behind; `None` if there is
    /// none, because it has a weight and the others have not.
    fn due(&self, weight: Fixed) -> Option<Fixed> {
        let wide = |number: Fixed| i128::from(number.in_thousandths());
        let account = wide(self.account());
        let due = match (self.0.weight == Fixed::ZERO, weight == Fixed::ZERO) {
            (true, true) => account.checked_div(self.0.count.into())?,
            (true, false) => return None,
            (false, _) => (account * wide(weight)).checked_div(wide(self.0.weight))?,
        };
        Some(Fixed::thousandths(i64::try_from(due).unwrap_or(i64::MAX)))
    }

    /// What there is for each unit of weight.
    fn whole(&self) -> i64 {
        self.due(Fixed::ONE).map_or(0, |due| due.in_thousandths() / 1_000)
    }
}
