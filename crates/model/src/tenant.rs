//! Who shares the fleet, and what each is due.

use crate::{Fixed, Name, TenantId, Timestamp};

/// The tenant of jobs that name none.
pub const TENANT_DEFAULT: &str = "default";

/// Who shares the fleet with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its due, in proportion to the others' weights.
    pub weight: Fixed,
    /// Whether its jobs may start.
    pub active: bool,
    /// Cost settled within the window.
    pub used: Fixed,
    /// Jobs completed within the window.
    pub completed: u64,
    /// What its share is measured by where slot time is shared.
    pub account: Account,
    /// The most cost within the window; `None` means no limit.
    pub budget: Option<Fixed>,
    /// The most jobs at once; `None` means no limit.
    pub jobs_max: Option<u32>,
    /// Workspaces without a name, one for each job that asks for any; `None` means none.
    pub workspaces: Option<u32>,
    /// Slots in each pool; a pool that is not here has min 0 and no max.
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

/// What a tenant has had of the slots that tenants share. All of it is measured: nothing rests on
/// how long jobs are expected to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Slot-milliseconds for each unit of weight that it is ahead of its share; below zero, behind.
    pub ahead: Fixed,
    /// Whether its share is measured now: it has jobs that wait, and no limit of its own holds
    /// them back.
    pub competes: bool,
    /// Slot-milliseconds of its attempts that ended.
    pub served: i64,
    /// The most work that waited at once, and what its starvation bound goes by.
    pub queue: Peak,
    /// How well its jobs' lengths were known.
    pub trust: Trust,
}

/// The most work of a tenant that waited at once since its queue was last empty, in
/// slot-milliseconds of expected length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The most in the current span. A span ends when its tenant was served that much.
    pub now: i64,
    /// The most in the span before it.
    pub before: i64,
    /// What its tenant had been served when the current span began.
    pub since: i64,
    /// When its tenant had been served how much, oldest first.
    pub marks: Vec<(Timestamp, i64)>,
}

/// How well lengths were known, judged by what was said before a job ran. Lengths are logarithms to
/// the base of 2, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// How many runs were judged; old ones count less.
    pub runs: Fixed,
    /// The sum of their lengths, and of the squares.
    pub sum: i64,
    /// The sum of the squares of their lengths.
    pub squares: i64,
    /// The sum of the squares of what was said wrong.
    pub errors: i64,
}

/// Slots of a tenant in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The pool.
    pub pool: Name,
    /// Slots that it paid for: below this its jobs come first.
    pub min: u32,
    /// Slots that it never exceeds; `None` means no limit.
    pub max: Option<u32>,
}

/// Cost that all tenants together may use within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most.
    pub limit: Fixed,
    /// Settled already.
    pub used: Fixed,
}
