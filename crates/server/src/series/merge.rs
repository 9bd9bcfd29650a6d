//! Minutes of several schedulers, put together into steps of a chart.
//!
//! Gauges (waiting jobs, attempts under way, slots, dues) have the mean of the known minutes of a
//! step. Counters (started, ended, failed) are summed up.

use std::collections::BTreeMap;

use model::{Millis, Reason, Timestamp};

use super::document::{Document, Entry, List};
use super::{MINUTE, NAMES_MAX};

/// The dimension by which a chart is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Tenant,
    Type,
    Pool,
    Reason,
}

/// Thousandths by step. `None` is unknown.
pub(crate) type Means = Vec<Option<i64>>;
/// Whole numbers by step. `None` is unknown.
pub(crate) type Wholes = Vec<Option<u64>>;

/// Counts by step, over everything.
#[derive(Debug)]
pub(crate) struct Total {
    pub(crate) queued: Means,
    pub(crate) running: Means,
    pub(crate) started: Wholes,
    pub(crate) ended: Wholes,
    pub(crate) failed: Wholes,
    /// The waits that 50, 90 and 99 of 100 attempts did not exceed that began in the step.
    pub(crate) waits_ms: [Wholes; 3],
    pub(crate) oldest_ms: Wholes,
}

/// Counts by step, of one tenant, type, pool or reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) queued: Means,
    pub(crate) running: Means,
    pub(crate) slots: Means,
    /// A minute in which the tenant does not compete counts as 0, so that slots and dues are means
    /// of the same minutes. `None`: it competes in no minute.
    pub(crate) due: Means,
    /// Thousandths of the known minutes in which the tenant competes.
    pub(crate) competes: Means,
}

/// The steps of a chart.
#[derive(Debug)]
pub(crate) struct Steps {
    from: Timestamp,
    length: Millis,
    by: By,
    all: Vec<Step>,
}

#[derive(Clone, Debug, Default)]
struct Step {
    n_known: u64,
    sum: Document,
    named: BTreeMap<String, Sum>,
    /// Counts of names that a full list leaves out, and the number of minutes with a full list.
    other: Entry,
    n_others: u64,
}

/// Counts of one name in one step.
#[derive(Clone, Debug, Default)]
struct Sum {
    entry: Entry,
    /// Minutes with a full list that names it.
    n_listed: u64,
    /// Minutes in which it competes.
    n_due: u64,
}

impl Steps {
    /// So many steps without any minute.
    pub(crate) fn new(from: Timestamp, length: Millis, n_steps: usize, by: By) -> Self {
        debug_assert!(length >= MINUTE, "a step has a minute at least");
        Self { from, length, by, all: vec![Step::default(); n_steps] }
    }

    /// Takes in what the schedulers counted in one minute. With a tenant, its counts alone.
    pub(crate) fn add(&mut self, at: Timestamp, counted: Vec<Document>, tenant: Option<&str>) {
        let place = at.since(self.from).0.div_euclid(self.length.0);
        let Some(step) = usize::try_from(place).ok().and_then(|at| self.all.get_mut(at)) else {
            return;
        };
        let Some(minute) = merged(counted) else { return };
        let minute = match tenant {
            None => minute,
            Some(tenant) => match only(minute, tenant) {
                Some(own) => own,
                // The list is full, and leaves the tenant out.
                None => return,
            },
        };
        step.add(minute, self.by);
    }

    /// Counts of everything.
    pub(crate) fn total(&self) -> Total {
        let means = |of: fn(&Document) -> u64| self.each(|step| step.mean(of(&step.sum)));
        let sums =
            |of: fn(&Document) -> u64| self.each(|step| (step.n_known > 0).then(|| of(&step.sum)));
        let waits = |percent| self.each(|step| step.sum.waits.percentile(percent));
        Total {
            queued: means(Document::queued),
            running: means(|sum| sum.running),
            started: sums(|sum| sum.started),
            ended: sums(|sum| sum.ended),
            failed: sums(|sum| sum.failed),
            waits_ms: [50, 90, 99].map(waits),
            oldest_ms: self.each(|step| step.sum.oldest_ms),
        }
    }

    /// Counts by name, the largest first (reasons in the order of [`Reason`]), and counts of all
    /// other names. `None`: there are no other names.
    pub(crate) fn series(&self) -> (Vec<Named>, Option<Named>) {
        if self.by == By::Reason {
            return (self.reasons(), None);
        }
        let mut sums: BTreeMap<&String, (u64, u64)> = BTreeMap::new();
        for (name, sum) in self.all.iter().flat_map(|step| &step.named) {
            let all = sums.entry(name).or_default();
            *all = (all.0 + sum.entry.slots, all.1 + sum.entry.queued);
        }
        let mut names: Vec<(&String, (u64, u64))> = sums.into_iter().collect();
        names.sort_by(|(_, one), (_, other)| other.cmp(one));
        let rest = names.split_off(NAMES_MAX.min(names.len()));
        let rest: Vec<&String> = rest.into_iter().map(|(name, _)| name).collect();
        let has_others = !rest.is_empty() || self.all.iter().any(|step| step.n_others > 0);
        let named = names.into_iter().map(|(name, _)| self.named(name)).collect();
        (named, has_others.then(|| self.others(&rest)))
    }

    fn named(&self, name: &str) -> Named {
        let means = |of: fn(&Entry) -> u64| self.each(|step| step.mean_of(name, of));
        let due = |step: &Step| {
            let due = step.named.get(name)?.entry.due?;
            due.checked_div(i64::try_from(step.n_known_of(name)).ok()?)
        };
        let competes = |step: &Step| {
            let n_due = step.named.get(name).map_or(0, |sum| sum.n_due);
            mean(n_due, step.n_known_of(name))
        };
        Named {
            name: name.to_owned(),
            queued: means(|entry| entry.queued),
            running: means(|entry| entry.running),
            slots: means(|entry| entry.slots),
            due: self.each(due),
            competes: self.each(competes),
        }
    }

    fn others(&self, rest: &[&String]) -> Named {
        let means = |of: fn(&Entry) -> u64| {
            self.each(|step| {
                let more = rest.iter().filter_map(|name| step.named.get(*name));
                step.mean(of(&step.other) + more.map(|sum| of(&sum.entry)).sum::<u64>())
            })
        };
        Named {
            queued: means(|entry| entry.queued),
            running: means(|entry| entry.running),
            slots: means(|entry| entry.slots),
            ..Named::default()
        }
    }

    fn reasons(&self) -> Vec<Named> {
        let is_there = |name: &&str| {
            self.all.iter().any(|step| step.sum.reasons.get(*name).is_some_and(|n| *n > 0))
        };
        let queued = |name: &str| {
            self.each(|step| step.mean(step.sum.reasons.get(name).copied().unwrap_or(0)))
        };
        let names = Reason::ALL.into_iter().map(Reason::name).filter(is_there);
        let named =
            |name: &str| Named { name: name.to_owned(), queued: queued(name), ..Named::default() };
        names.map(named).collect()
    }

    fn each<T>(&self, of: impl Fn(&Step) -> Option<T>) -> Vec<Option<T>> {
        self.all.iter().map(of).collect()
    }
}

impl Step {
    fn add(&mut self, minute: Document, by: By) {
        self.n_known += 1;
        let list = match by {
            By::Tenant => &minute.tenants,
            By::Type => &minute.types,
            By::Pool => &minute.pools,
            By::Reason => &List::default(),
        };
        let is_short = list.other.is_some();
        for (name, entry) in &list.named {
            let sum = self.named.entry(name.clone()).or_default();
            sum.entry.add(entry);
            sum.n_listed += u64::from(is_short);
            sum.n_due += u64::from(entry.due.is_some());
        }
        if let Some(other) = &list.other {
            self.other.add(other);
            self.n_others += 1;
        }
        self.sum.add(&Document {
            tenants: List::default(),
            types: List::default(),
            pools: List::default(),
            ..minute
        });
    }

    /// Thousandths of the mean over the known minutes.
    fn mean(&self, sum: u64) -> Option<i64> {
        mean(sum, self.n_known)
    }

    /// The same of one name.
    fn mean_of(&self, name: &str, of: fn(&Entry) -> u64) -> Option<i64> {
        mean(self.named.get(name).map_or(0, |sum| of(&sum.entry)), self.n_known_of(name))
    }

    /// Minutes in which the counts of a name are known. A full list leaves out other names: these
    /// are unknown.
    fn n_known_of(&self, name: &str) -> u64 {
        let n_listed = self.named.get(name).map_or(0, |sum| sum.n_listed);
        debug_assert!(n_listed <= self.n_others, "a minute lists a name at most once");
        self.n_known - (self.n_others - n_listed)
    }
}

fn mean(sum: u64, n: u64) -> Option<i64> {
    let thousandths = (u128::from(sum) * 1_000).checked_div(u128::from(n))?;
    i64::try_from(thousandths).ok()
}

/// The counts of all schedulers in one minute. `None`: no scheduler counted.
///
/// A scheduler without a part of the queue sees jobs that its peers count. Its view of the queue
/// counts only if no scheduler has a part.
fn merged(mut counted: Vec<Document>) -> Option<Document> {
    let is_dealt = counted.iter().any(|document| !document.is_watcher);
    for (place, document) in counted.iter_mut().enumerate() {
        if document.is_watcher && (is_dealt || place > 0) {
            document.drop_queue();
        }
    }
    counted.into_iter().reduce(|mut sum, document| {
        sum.add(&document);
        sum
    })
}

/// The counts of one tenant. `None`: the list is full, and leaves the tenant out.
fn only(minute: Document, tenant: &str) -> Option<Document> {
    let mut tenants = minute.tenants;
    let entry = match tenants.named.remove(tenant) {
        Some(entry) => entry,
        None if tenants.other.is_none() => Entry::default(),
        None => return None,
    };
    Some(Document {
        reasons: entry.reasons.clone(),
        running: entry.running,
        tenants: List { named: BTreeMap::from([(tenant.to_owned(), entry)]), other: None },
        ..Document::default()
    })
}

#[cfg(test)]
mod tests;
