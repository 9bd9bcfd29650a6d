//! Lines whose resource is not to be had stand aside, so that no decision looks at them.
//!
//! However many jobs wait for resources that are held, they cost a decision nothing: a line comes
//! back when its resource is free.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::LineKey;
use crate::table::{LineIx, NameIx, TenantIx};
use crate::waiting::AskIx;

/// Who may hold a resource now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OpenTo {
    #[default]
    Anybody,
    Tenant(TenantIx),
    /// Somebody holds it.
    Nobody,
}

/// Named resources that lines ask for, or that not everybody may hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    by_name: BTreeMap<NameIx, Asking>,
}

#[derive(Clone, Debug, Default)]
struct Asking {
    open_to: OpenTo,
    /// All lines whose jobs ask for it, whether they stand aside or not.
    lines: BTreeSet<LineIx>,
}

impl Asked {
    /// Takes in who may hold the resource, and returns the lines that this may concern.
    pub(crate) fn set(&mut self, name: NameIx, open_to: OpenTo) -> Vec<LineIx> {
        let asking = self.by_name.entry(name).or_default();
        let is_new = std::mem::replace(&mut asking.open_to, open_to) != open_to;
        let lines = if is_new { asking.lines.iter().copied().collect() } else { Vec::new() };
        self.forget_if_plain(name);
        lines
    }

    pub(crate) fn add(&mut self, key: &LineKey, line: LineIx) {
        if let Some(AskIx::Named(name)) = key.ask {
            self.by_name.entry(name).or_default().lines.insert(line);
        }
    }

    pub(crate) fn remove(&mut self, key: &LineKey, line: LineIx) {
        let Some(AskIx::Named(name)) = key.ask else { return };
        if let Some(asking) = self.by_name.get_mut(&name) {
            asking.lines.remove(&line);
        }
        self.forget_if_plain(name);
    }

    /// Whether a line of this key has to stand aside.
    pub(crate) fn parks(&self, key: &LineKey) -> bool {
        let Some(AskIx::Named(name)) = key.ask else { return false };
        match self.by_name.get(&name).map(|asking| asking.open_to) {
            None | Some(OpenTo::Anybody) => false,
            Some(OpenTo::Tenant(tenant)) => tenant != key.tenant,
            Some(OpenTo::Nobody) => true,
        }
    }

    /// A resource that anybody may hold and nobody asks for need not be remembered.
    fn forget_if_plain(&mut self, name: NameIx) {
        let asking = self.by_name.get(&name);
        if asking.is_some_and(|own| own.open_to == OpenTo::Anybody && own.lines.is_empty()) {
            self.by_name.remove(&name);
        }
    }
}
