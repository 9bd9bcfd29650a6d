//! Leads and notes.

use model::Timestamp;

use super::World;
use crate::{Lead, Note, NotePage, Noted};

/// A note, and whether it may be deleted when it is old.
pub(super) struct Kept {
    topic: String,
    noted: Noted,
    ages: bool,
}

impl World {
    pub(super) fn lead(
        &mut self,
        name: String,
        holder: String,
        (now, until): (Timestamp, Timestamp),
    ) -> Option<Lead> {
        let lead = self.leads.entry(name.clone()).or_insert_with(|| Lead {
            name,
            holder: holder.clone(),
            token: 1,
            until: now,
            document: String::new(),
        });
        if lead.holder != holder {
            if lead.until > now {
                return None;
            }
            lead.token += 1;
            lead.holder = holder;
        }
        lead.until = until;
        Some(lead.clone())
    }

    pub(super) fn keep(&mut self, name: &str, token: u64, document: String) -> bool {
        match self.leads.get_mut(name) {
            Some(lead) if lead.token == token => {
                lead.document = document;
                true
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn write_down(&mut self, note: Note, now: Timestamp) {
        let Note { topic, kind, key, document, n_max, ages } = note;
        let is_same = |kept: &Kept| kept.topic == topic && kept.noted.key == key;
        if !key.is_empty() && self.notes.values().any(is_same) {
            return;
        }
        self.n_notes += 1;
        let number = self.n_notes;
        let noted = Noted { number, kind: kind.clone(), key, at: now, document };
        self.notes.insert(number, Kept { topic: topic.clone(), noted, ages });
        let alike = self.notes.iter().rev();
        let alike = alike.filter(|(_, kept)| kept.topic == topic && kept.noted.kind == kind);
        let old: Vec<u64> = alike.skip(n_max).map(|(number, _)| *number).collect();
        for number in old {
            self.notes.remove(&number);
        }
    }

    pub(super) fn notes(&self, page: &NotePage) -> Vec<Noted> {
        let notes = self.notes.range(..page.before.unwrap_or(u64::MAX)).rev();
        let is_asked = |kept: &&Kept| {
            let is_kind = page.kind.as_ref().is_none_or(|kind| kept.noted.kind == *kind);
            kept.topic == page.topic && is_kind
        };
        let notes = notes.map(|(_, kept)| kept).filter(is_asked);
        notes.take(page.max).map(|kept| kept.noted.clone()).collect()
    }

    pub(super) fn forget_notes(&mut self, before: Timestamp) {
        self.notes.retain(|_, kept| !kept.ages || kept.noted.at >= before);
    }
}
