//! What happened, for people: runs of each type, and activities of each kind.

use ::detect::Run;
use futures_util::FutureExt as _;
use serde_json::json;
use store::Note;

use crate::scheduler::{Answer, Scheduler};

/// Where activities are written down.
pub(crate) const TOPIC: &str = "activity";
/// The kinds of activities.
pub(crate) const KINDS: [&str; 8] =
    ["detection", "group", "setting", "descriptor", "stale", "lane", "schedule", "context"];
/// Activities of one kind that are kept.
const ACTIVITIES_MAX: usize = 1_000;
/// Runs of a type that went well, and that did not, that are kept.
const RUNS_MAX: usize = 10;

/// Who did what, to what, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    kind: &'static str,
    who: String,
    about: String,
    what: String,
    why: String,
}

impl Activity {
    pub(crate) fn new(kind: &'static str, who: &str, about: &str, what: String) -> Self {
        debug_assert!(KINDS.contains(&kind));
        let (who, about) = (who.to_owned(), about.to_owned());
        Self { kind, who, about, what, why: String::new() }
    }

    pub(crate) fn because(mut self, why: &str) -> Self {
        why.clone_into(&mut self.why);
        self
    }

    pub(crate) fn note(&self) -> Note {
        let Self { kind, who, about, what, why } = self;
        Note {
            topic: TOPIC.to_owned(),
            kind: (*kind).to_owned(),
            key: String::new(),
            document: json!({ "who": who, "about": about, "what": what, "why": why }).to_string(),
            n_max: ACTIVITIES_MAX,
            ages: true,
        }
    }
}

/// Where the runs of a type are written down.
pub(crate) fn run_topic(kind: &str) -> String {
    format!("run/{kind}")
}

/// A run, to be remembered once, whoever says so.
pub(super) fn run_note(run: &Run) -> Note {
    Note {
        topic: run_topic(&run.kind),
        kind: if run.is_success() { "succeeded" } else { "failed" }.to_owned(),
        key: run.run.clone(),
        document: serde_json::to_string(run).expect("its names are strings"),
        n_max: RUNS_MAX,
        ages: false,
    }
}

impl Scheduler {
    /// Writes an activity down. Nobody waits for it.
    pub(crate) fn write_down(&self, activity: &Activity) {
        let notes = vec![activity.note()];
        self.call(|store| async move { Answer::Written(store.note(notes).await) }.boxed());
    }
}
