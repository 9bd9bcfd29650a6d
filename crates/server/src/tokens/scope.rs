//! What a token allows.

/// One thing that a token can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Submit jobs.
    Submit,
    /// See jobs, their output and what becomes of them.
    Read,
    /// Change jobs: call them off, take them up again, hold and release them, give them another
    /// priority.
    Cancel,
    /// Be a worker, which gets jobs of every tenant.
    Work,
    /// All of that for jobs, and tokens for them.
    TenantAdmin,
    /// Everything.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Submit, Self::Read, Self::Cancel, Self::Work, Self::TenantAdmin, Self::Admin];

    /// Its permanent name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Read => "read",
            Self::Cancel => "cancel",
            Self::Work => "work",
            Self::TenantAdmin => "tenant-admin",
            Self::Admin => "admin",
        }
    }

    /// The scope of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// Whether whoever has this may do what needs `other`.
    pub const fn includes(self, other: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::TenantAdmin => {
                matches!(other, Self::Submit | Self::Read | Self::Cancel | Self::TenantAdmin)
            }
            Self::Submit => matches!(other, Self::Submit),
            Self::Read => matches!(other, Self::Read),
            Self::Cancel => matches!(other, Self::Cancel),
            Self::Work => matches!(other, Self::Work),
        }
    }

    /// Whether it can be had for one tenant alone: a worker gets everybody's jobs, and an admin
    /// sets what holds for all.
    pub const fn is_for_tenants(self) -> bool {
        match self {
            Self::Submit | Self::Read | Self::Cancel | Self::TenantAdmin => true,
            Self::Work | Self::Admin => false,
        }
    }
}
