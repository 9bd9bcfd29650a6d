//! What operators ask of whoever leads, or has a worker that can do it. It is kept in the store and
//! told to all that share it, so that any scheduler can be asked.
//!
//! **Invariant:** what was asked for is there until what came of it is kept.

use futures_util::FutureExt as _;
use proto::Invalid;
use serde::{Deserialize, Serialize};
use store::{Setting, SettingKind};

use crate::scheduler::{Answer, Scheduler};

/// Something that an operator asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) what: What,
    /// The type that it is about.
    pub(crate) kind: String,
    /// When.
    pub(crate) at_ms: i64,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// Look for work now.
    Detect,
    /// Call off this run.
    CallOff(String),
    /// Ask a worker what it says about the type.
    Describe,
}

impl Asked {
    /// As it is kept: one of each about a type.
    pub(crate) fn setting(&self) -> Setting {
        let what = match self.what {
            What::Detect => "detect",
            What::CallOff(_) => "call-off",
            What::Describe => "describe",
        };
        let document = serde_json::to_string(self).expect("its names are strings");
        let name = format!("{what}/{}", self.kind);
        Setting { kind: SettingKind::Asked, name, document: Some(document) }
    }

    /// As it was kept.
    pub(crate) fn read(document: &str) -> Result<Self, Invalid> {
        serde_json::from_str(document).map_err(|error| Invalid::new("asked", error.to_string()))
    }
}

/// What removes some of what was asked for.
pub(super) fn removals(names: impl IntoIterator<Item = String>) -> Vec<Setting> {
    let removal = |name| Setting { kind: SettingKind::Asked, name, document: None };
    names.into_iter().map(removal).collect()
}

impl Scheduler {
    /// Somebody asked for something, or it is done.
    pub(crate) fn set_asked(&mut self, name: String, asked: Option<Asked>) {
        match asked {
            Some(asked) => drop(self.detection.asked.insert(name, asked)),
            None => drop(self.detection.asked.remove(&name)),
        }
        self.detection.is_dirty = true;
    }

    /// Does in a lane what was asked for; it is removed once the lane is kept.
    pub(super) fn heed(&mut self, lane: &str) {
        let Some(led) = self.detection.lanes.get_mut(lane) else { return };
        for (name, asked) in &self.detection.asked {
            let Asked { what, kind, at_ms } = asked;
            match what {
                What::Detect => {
                    let known = self.detection.types.get(kind);
                    if known.is_none_or(|known| known.now.policy.lane != lane) {
                        continue;
                    }
                    // A run that began since then is what was asked for.
                    let began = led.lane.began_ms.get(kind);
                    if began.is_none_or(|began| began <= at_ms) {
                        led.lane.ask(kind);
                    }
                }
                What::CallOff(run) => {
                    if run.rsplit_once('/').is_none_or(|(of, _)| of != lane) {
                        continue;
                    }
                    let is_on = led.lane.group.as_ref().is_some_and(|group| group.run == *run);
                    if is_on && led.lane.cancel() {
                        led.n_unfinished = None;
                    }
                }
                What::Describe => continue,
            }
            led.heeded.insert(name.clone());
            led.is_unkept = true;
        }
    }

    /// Whether somebody asked for something that can be done here by whoever leads this lane.
    pub(super) fn is_asked_of(&self, lane: &str) -> bool {
        self.detection.asked.values().any(|asked| match &asked.what {
            What::Detect => {
                let known = self.detection.types.get(&asked.kind);
                let is_of = known.is_some_and(|known| known.now.policy.lane == lane);
                is_of && !self.detectors(&asked.kind).is_empty()
            }
            What::CallOff(run) => run.rsplit_once('/').is_some_and(|(of, _)| of == lane),
            What::Describe => false,
        })
    }

    /// Asks workers that are here what somebody wants to know about their types.
    pub(super) fn describe_asked(&mut self) {
        let asked = self.detection.asked.iter();
        let asked = asked.filter(|(_, asked)| asked.what == What::Describe);
        let asked: Vec<(String, String)> =
            asked.map(|(name, asked)| (name.clone(), asked.kind.clone())).collect();
        for (name, kind) in asked {
            if self.describe_again(&kind).is_some() {
                self.detection.asked.remove(&name);
                let gone = removals([name]);
                self.call(|store| async move { Answer::Written(store.set(gone).await) }.boxed());
            }
        }
    }
}
