//! Settings that others change too: whoever shares the store goes by the same.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use model::{Millis, Timestamp};
use sha2::{Digest as _, Sha256};
use store::{Setting, SettingKind};

use super::Sharing;
use crate::scheduler::{Answer, Scheduler};
use crate::settings::understand;
use crate::tokens::hexadecimal;

/// They are read this often, whatever is heard.
const READ_EVERY: Millis = Millis::from_secs(30);

/// What is known of settings.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Those that hold.
    named: BTreeSet<(SettingKind, String)>,
    /// What tells all of them together from others.
    pub(super) seal: String,
    /// They may have changed, and are to be read.
    pub(super) is_wanted: bool,
    /// They are being read.
    is_asked: bool,
    /// When they are read whatever is heard; `None`: at once.
    next: Option<Timestamp>,
}

impl Scheduler {
    /// They may have changed.
    pub(super) fn want_settings(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.settings.is_wanted = true;
        }
    }

    /// Reads them, if that is wanted or was not done for a while: what is told may get lost. One
    /// read at a time, so that none brings what is older than what is known.
    pub(crate) fn read_settings_if_wanted(&mut self, now: Timestamp) {
        let Some(Sharing { settings: known, .. }) = &mut self.sharing else { return };
        let is_time = known.is_wanted || known.next.is_none_or(|next| now >= next);
        if known.is_asked || !is_time {
            return;
        }
        known.is_wanted = false;
        known.is_asked = true;
        known.next = Some(now + READ_EVERY);
        self.call(|store| async move { Answer::Settings(store.settings().await) }.boxed());
    }

    /// These settings are there: should one be gone later, what it said holds no longer.
    pub(crate) fn note_settings(&mut self, settings: &[Setting]) {
        if let Some(sharing) = &mut self.sharing {
            sharing.settings.seal = seal(settings);
            let named = settings.iter().map(|setting| (setting.kind, setting.name.clone()));
            sharing.settings.named.extend(named.filter(|(kind, _)| *kind != SettingKind::Token));
        }
    }

    /// All settings were read: those that are there hold, and those that are gone do not.
    pub(crate) fn read_settings(&mut self, answer: Result<Vec<Setting>, store::Error>) {
        let answer = self.ok(answer);
        if let Some(sharing) = &mut self.sharing {
            sharing.settings.is_asked = false;
            sharing.settings.is_wanted |= answer.is_none();
        }
        let Some(mut settings) = answer else { return };
        // Doors look after tokens themselves.
        settings.retain(|setting| setting.kind != SettingKind::Token);
        let named = |setting: &Setting| (setting.kind, setting.name.clone());
        let now: BTreeSet<(SettingKind, String)> = settings.iter().map(named).collect();
        let before = match &mut self.sharing {
            Some(sharing) => {
                sharing.settings.seal = seal(&settings);
                std::mem::replace(&mut sharing.settings.named, now.clone())
            }
            None => return,
        };
        let gone = before.difference(&now).cloned();
        let gone = gone.map(|(kind, name)| Setting { kind, name, document: None });
        for setting in gone.chain(settings) {
            match understand(&setting) {
                Ok(understood) => self.set(understood),
                Err(error) => {
                    let name = setting.name;
                    tracing::warn!(%error, name, "a setting is not understood and does not count");
                }
            }
        }
    }
}

/// What tells settings from others. Neither tokens nor what is asked for are settings that hold.
pub(crate) fn seal(settings: &[Setting]) -> String {
    let holds = |one: &&Setting| !matches!(one.kind, SettingKind::Token | SettingKind::Asked);
    let mut hasher = Sha256::new();
    for Setting { kind, name, document } in settings.iter().filter(holds) {
        let document = document.as_deref().unwrap_or_default();
        for part in [kind.name(), name, document] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
    }
    hexadecimal(&hasher.finalize()[..8])
}
