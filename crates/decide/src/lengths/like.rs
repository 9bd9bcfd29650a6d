//! What jobs have in common.

use std::collections::BTreeMap;

use model::{Millis, Name, TenantId};

use super::memory::Way;

/// More labels than this tell nothing.
const LABELS_MAX: usize = 4;

/// What of a job tells how long it runs: all that is known when it is submitted.
#[derive(Clone, Copy, Debug)]
pub struct Like<'a> {
    /// Its type.
    pub kind: Option<&'a Name>,
    /// Whose it is.
    pub tenant: &'a TenantId,
    /// What its submitter calls jobs like this one; empty if they have no name.
    pub key: &'a str,
    /// What it runs; empty if that is not known.
    pub command: &'a str,
    /// What its submitter wrote on it, names with values; empty without.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// What its inputs are called.
    pub inputs: Option<&'a Name>,
    /// How long its submitter says that it runs.
    pub claim: Option<Millis>,
    /// How long it may run at most.
    pub limit: Option<Millis>,
}

/// A class that a job is in.
pub(super) struct Step {
    pub(super) class: Way,
    /// Whose trust in classes of this level counts …
    pub(super) owner: Way,
    /// … and whose trust lends a little to that.
    pub(super) lender: Option<Way>,
    /// What the class goes by.
    pub(super) level: Way,
    pub(super) cut: Cut,
}

/// How a class lies among those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It is a part of them: its jobs are as long as its mean, whatever was said before.
    Within,
    /// It cuts across others: its jobs are longer than those of their tenant and type by so much,
    /// and others may say the same, or the opposite.
    Across,
}

impl Cut {
    /// What its mean is compared with: what was said before, or something as wide as its own.
    pub(super) const fn than(self, before: i64, as_wide: i64) -> i64 {
        match self {
            Self::Within => before,
            Self::Across => as_wide,
        }
    }
}

impl Like<'_> {
    /// Jobs of its tenant and type.
    pub(super) fn own(&self) -> Way {
        Way::of(&("tenant", self.kind, self.tenant))
    }

    pub(super) const fn claimed(&self) -> [Option<Millis>; 2] {
        [self.claim, self.limit]
    }

    /// The classes that it is in, the widest first.
    pub(super) fn steps(&self) -> Vec<Step> {
        let Self { kind, key, command, labels, inputs, .. } = self;
        let (all, of_type, own) = (Way::of(&"all"), Way::of(&("type", kind)), self.own());
        let level = |name: &str| Way::of(&name);
        let narrow = |class: Way, level: Way, cut: Cut| Step {
            class: class.and(&level),
            owner: own,
            lender: Some(of_type),
            level,
            cut,
        };
        let wide = |class: Way, (owner, lender), name| Step {
            class,
            owner,
            lender,
            level: level(name),
            cut: Cut::Within,
        };
        let mut steps =
            vec![wide(of_type, (all, None), "type"), wide(own, (of_type, Some(all)), "tenant")];
        if !command.is_empty() {
            steps.push(narrow(own.and(command), level("command"), Cut::Across));
        }
        for (name, value) in labels.iter().flat_map(|labels| labels.iter()).take(LABELS_MAX) {
            steps.push(narrow(own.and(&(name, value)), level("label").and(name), Cut::Across));
        }
        if let Some(inputs) = inputs {
            steps.push(narrow(of_type.and(inputs), level("inputs"), Cut::Across));
        }
        if !key.is_empty() {
            steps.push(narrow(of_type.and(key), level("key of any tenant"), Cut::Within));
            steps.push(narrow(own.and(key), level("key"), Cut::Within));
            if let Some(inputs) = inputs {
                let fed = of_type.and(&(inputs, key));
                steps.push(narrow(fed, level("inputs and key"), Cut::Within));
            }
        }
        // Who asks for the same again runs the same again, more or less.
        if self.claim.or(self.limit).is_some() {
            let again = own.and(&(key, command)).and(&self.claimed());
            steps.push(narrow(again, level("same again"), Cut::Within));
        }
        steps
    }
}
