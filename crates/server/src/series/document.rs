//! The counts of one scheduler in one minute, as they are stored. Field names are short: a store
//! has 10,080 minutes of each scheduler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::waits::Waits;

/// The counts of one minute. A field that a newer version adds is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Document {
    /// The scheduler has no part of the queue for itself: it counted jobs that its peers count too.
    #[serde(rename = "w", skip_serializing_if = "is_false")]
    pub(super) is_watcher: bool,
    /// Jobs that wait at the end of the minute, by reason.
    #[serde(rename = "q", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) reasons: BTreeMap<String, u64>,
    /// Attempts under way at the end of the minute.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub(super) running: u64,
    /// Attempts that began.
    #[serde(rename = "s", skip_serializing_if = "is_zero")]
    pub(super) started: u64,
    /// Attempts that ended.
    #[serde(rename = "e", skip_serializing_if = "is_zero")]
    pub(super) ended: u64,
    /// Attempts of these that failed.
    #[serde(rename = "f", skip_serializing_if = "is_zero")]
    pub(super) failed: u64,
    /// How long the attempts that began had waited.
    #[serde(rename = "p", skip_serializing_if = "Waits::is_empty")]
    pub(super) waits: Waits,
    /// How long the job that waits longest has waited, in milliseconds. `None`: no job waits.
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    pub(super) oldest_ms: Option<u64>,
    #[serde(rename = "t", skip_serializing_if = "List::is_empty")]
    pub(super) tenants: List,
    #[serde(rename = "k", skip_serializing_if = "List::is_empty")]
    pub(super) types: List,
    #[serde(rename = "l", skip_serializing_if = "List::is_empty")]
    pub(super) pools: List,
}

/// Counts by name: the largest by their names, and the rest together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct List {
    #[serde(rename = "n")]
    pub(super) named: BTreeMap<String, Entry>,
    /// `None` means that all names are in the list: a name that is not has nothing.
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    pub(super) other: Option<Entry>,
}

/// Counts of one tenant, type or pool at the end of the minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    /// Jobs that wait.
    #[serde(rename = "q", skip_serializing_if = "is_zero")]
    pub(super) queued: u64,
    /// Attempts under way.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub(super) running: u64,
    /// Slots that these use.
    #[serde(rename = "s", skip_serializing_if = "is_zero")]
    pub(super) slots: u64,
    /// Thousandths of slots that are due to a tenant. `None`: it does not compete.
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<i64>,
    /// Jobs of a tenant that wait, by reason.
    #[serde(rename = "w", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) reasons: BTreeMap<String, u64>,
}

impl Document {
    pub(super) fn queued(&self) -> u64 {
        self.reasons.values().sum()
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("numbers and names can be written")
    }

    /// Adds what a peer counted in the same minute.
    pub(super) fn add(&mut self, other: &Self) {
        add_counts(&mut self.reasons, &other.reasons);
        self.running += other.running;
        self.started += other.started;
        self.ended += other.ended;
        self.failed += other.failed;
        self.waits.merge(&other.waits);
        self.oldest_ms = self.oldest_ms.max(other.oldest_ms);
        self.tenants.add(&other.tenants);
        self.types.add(&other.types);
        self.pools.add(&other.pools);
    }

    /// Leaves out jobs that wait, because its peers count them.
    pub(super) fn drop_queue(&mut self) {
        self.reasons.clear();
        self.oldest_ms = None;
        for list in [&mut self.tenants, &mut self.types, &mut self.pools] {
            for entry in list.named.values_mut().chain(&mut list.other) {
                entry.queued = 0;
                entry.reasons.clear();
            }
        }
    }
}

impl List {
    /// The largest of `all` by name, by slots in use and then by jobs that wait.
    pub(super) fn largest(all: BTreeMap<String, Entry>, max: usize) -> Self {
        let mut sorted: Vec<(String, Entry)> = all.into_iter().collect();
        sorted.sort_by(|(_, one), (_, other)| {
            (other.slots, other.queued).cmp(&(one.slots, one.queued))
        });
        let rest = sorted.split_off(max.min(sorted.len()));
        let sum = rest.into_iter().map(|(_, entry)| entry).reduce(|mut sum, entry| {
            sum.add(&entry);
            sum
        });
        Self { named: sorted.into_iter().collect(), other: sum }
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.other.is_none()
    }

    fn add(&mut self, other: &Self) {
        for (name, entry) in &other.named {
            self.named.entry(name.clone()).or_default().add(entry);
        }
        if let Some(rest) = &other.other {
            self.other.get_or_insert_default().add(rest);
        }
    }
}

impl Entry {
    pub(super) fn add(&mut self, other: &Self) {
        self.queued += other.queued;
        self.running += other.running;
        self.slots += other.slots;
        self.due = match (self.due, other.due) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        add_counts(&mut self.reasons, &other.reasons);
    }
}

pub(super) fn add_counts(sum: &mut BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) {
    for (name, n) in counts {
        *sum.entry(name.clone()).or_default() += n;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slots: u64, queued: u64) -> Entry {
        Entry { queued, slots, ..Entry::default() }
    }

    #[test]
    fn the_largest_keep_their_names_and_the_rest_is_counted_together() {
        let all = [("a", entry(1, 9)), ("b", entry(2, 0)), ("c", entry(0, 5)), ("d", entry(0, 6))];
        let all: BTreeMap<String, Entry> =
            all.into_iter().map(|(name, entry)| (name.to_owned(), entry)).collect();
        let list = List::largest(all.clone(), 2);
        assert_eq!(list.named.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(list.other, Some(entry(0, 11)));
        assert_eq!(List::largest(all, 4).other, None);
    }

    #[test]
    fn a_document_is_read_as_it_was_written_and_an_idle_minute_is_short() {
        let mut document = Document { running: 3, oldest_ms: Some(7), ..Document::default() };
        document.waits.add(40);
        document.reasons.insert("workers-full".to_owned(), 2);
        let named = BTreeMap::from([("acme".to_owned(), entry(3, 2))]);
        document.tenants = List { named, other: None };
        assert_eq!(Document::read(&document.write()), Some(document));
        assert_eq!(Document::default().write(), "{}");
        assert_eq!(Document::read("{\"later\": 1}"), Some(Document::default()));
        assert_eq!(Document::read("nonsense"), None);
    }
}
