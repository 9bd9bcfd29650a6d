//! Tenants and their shares.

use crate::{Fixed, Name, TenantId, Timestamp};

/// The tenant of jobs that name none.
pub const TENANT_DEFAULT: &str = "default";

/// A user, team or customer that shares the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// The size of its share, relative to the weights of the other tenants.
    pub weight: Fixed,
    /// Whether its jobs may start.
    pub active: bool,
    /// Cost settled within the window.
    pub used: Fixed,
    /// Jobs completed within the window.
    pub completed: u64,
    /// Its account, where tenants share slot time.
    pub account: Account,
    /// The limit of cost within the window. `None` means no limit.
    pub budget: Option<Fixed>,
    /// The limit of live attempts. `None` means no limit.
    pub jobs_max: Option<u32>,
    /// Unnamed exclusive locks, one for each job that asks for any. `None` means none.
    pub workspaces: Option<u32>,
    /// Slots in each pool. A pool without an entry has min 0 and no max.
    pub quotas: Vec<Quota>,
}

impl Tenant {
    /// A tenant of weight 1, without limits.
    pub fn new(id: TenantId) -> Self {
        Self {
            id,
            weight: Fixed::ONE,
            active: true,
            used: Fixed::ZERO,
            completed: 0,
            account: Account::default(),
            budget: None,
            jobs_max: None,
            workspaces: None,
            quotas: Vec::new(),
        }
    }

    /// Its quota in `pool`.
    pub fn quota(&self, pool: &Name) -> Quota {
        let own = self.quotas.iter().find(|quota| quota.pool == *pool);
        own.cloned().unwrap_or_else(|| Quota { pool: pool.clone(), min: 0, max: None })
    }
}

/// The slot time of a tenant. All of it is measured, and none depends on expected run times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Slot-milliseconds for each unit of weight that it is ahead of its share. Negative if behind.
    pub ahead: Fixed,
    /// Whether its share is measured now: it has waiting jobs that no limit of its own holds back.
    pub competes: bool,
    /// Slot-milliseconds of its ended attempts.
    pub served: i64,
    /// The largest amount of waiting work, which determines its starvation bound.
    pub queue: Peak,
    /// The skill of the predictions of its run times.
    pub trust: Trust,
}

/// The largest amount of a tenant's waiting work since its queue was last empty, in
/// slot-milliseconds of expected run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The largest amount in the current span. A span ends when its tenant was served that much.
    pub now: i64,
    /// The largest amount in the span before it.
    pub before: i64,
    /// The tenant's served slot time at the start of the current span.
    pub since: i64,
    /// Times with the tenant's served slot time, oldest first.
    pub marks: Vec<(Timestamp, i64)>,
}

/// The skill of predictions that were made before the runs. Run times are logarithms to the base of
/// 2, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The number of judged runs. Old ones count less.
    pub runs: Fixed,
    /// The sum of their run times.
    pub sum: i64,
    /// The sum of the squares of their run times.
    pub squares: i64,
    /// The sum of the squares of the errors of their predictions.
    pub errors: i64,
}

/// Slots of a tenant in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The pool.
    pub pool: Name,
    /// Guaranteed slots: below this number its jobs go first.
    pub min: u32,
    /// The limit of slots. `None` means no limit.
    pub max: Option<u32>,
}

/// Cost that all tenants together may use within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The limit.
    pub limit: Fixed,
    /// The settled cost.
    pub used: Fixed,
}
