//! Who shares the fleet, and what each is due.

use crate::{Fixed, Name, Recent, TenantId};

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
    /// Slot-seconds on its account where shares are live: those of attempts that ended, and what it
    /// was lifted by when it came back after it had nothing to do, so that it is due nothing for
    /// that time.
    pub lift: Fixed,
    /// Slot-milliseconds that it asked for lately; `None` means that nobody counted.
    pub asked: Option<Recent>,
    /// Whether its share is counted: it asked for more than its due, and still has jobs waiting.
    pub competes: bool,
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
            lift: Fixed::ZERO,
            asked: None,
            competes: false,
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
