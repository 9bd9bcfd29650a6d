//! Settings that others change too: whoever shares the store goes by the same.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use sha2::{Digest as _, Sha256};
use store::{Setting, SettingKind};

use crate::scheduler::{Answer, Scheduler};
use crate::settings::understand;
use crate::tokens::hexadecimal;

impl Scheduler {
    /// They are read again.
    pub(super) fn ask_settings(&self) {
        self.call(|store| async move { Answer::Settings(store.settings().await) }.boxed());
    }

    /// These settings are there: should one be gone later, what it said holds no longer.
    pub(crate) fn note_settings(&mut self, settings: &[Setting]) {
        if let Some(sharing) = &mut self.sharing {
            sharing.seal = seal(settings);
            let named = settings.iter().map(|setting| (setting.kind, setting.name.clone()));
            sharing.settings.extend(named.filter(|(kind, _)| *kind != SettingKind::Token));
        }
    }

    /// All settings were read: those that are there hold, and those that are gone do not.
    pub(crate) fn read_settings(&mut self, answer: Result<Vec<Setting>, store::Error>) {
        let Some(mut settings) = self.ok(answer) else { return };
        // Doors look after tokens themselves.
        settings.retain(|setting| setting.kind != SettingKind::Token);
        let named = |setting: &Setting| (setting.kind, setting.name.clone());
        let now: BTreeSet<(SettingKind, String)> = settings.iter().map(named).collect();
        let before = match &mut self.sharing {
            Some(sharing) => {
                sharing.seal = seal(&settings);
                std::mem::replace(&mut sharing.settings, now.clone())
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
