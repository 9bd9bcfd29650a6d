//! What would have happened lately under other policies: replays, one at a time.
//!
//! **Invariant:** a replay is a process of its own, which reads the store itself and is killed when
//! its time is out or nobody wants it any more. The owner of the world is asked nothing.

mod child;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Millis, Timestamp};
use serde_json::{Value, json};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::config::ConfigError;
use crate::secret::Secret;

/// Who replays what happened, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIf {
    /// Who replays; without it, nobody does.
    pub replayer: Option<Replayer>,
    /// The last so many hours at most.
    pub hours_max: u32,
    /// The newest so many jobs of them at most.
    pub jobs_max: u64,
    /// A replay that takes longer is given up.
    pub timeout: Millis,
}

/// A program that replays: `maitre`, with `simulate` as its first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayer {
    /// Where it is.
    pub program: PathBuf,
    /// The address of the store that it reads.
    pub store: Secret,
    /// The policies that it knows by name.
    pub policies: Vec<String>,
}

impl Default for WhatIf {
    fn default() -> Self {
        Self {
            replayer: None,
            hours_max: 7 * 24,
            jobs_max: 200_000,
            timeout: Millis::from_secs(120),
        }
    }
}

impl WhatIf {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, problem| Err(ConfigError { field, problem, hint: "leave it out" });
        if self.hours_max == 0 {
            return refuse("what_if_hours_max", "is 0, of at least 1".to_owned());
        }
        if self.jobs_max == 0 {
            return refuse("what_if_jobs_max", "is 0, of at least 1".to_owned());
        }
        if self.timeout.0 <= 0 {
            let problem = format!("is {} ms, which is not above zero", self.timeout.0);
            return refuse("what_if_timeout", problem);
        }
        Ok(())
    }
}

/// What somebody wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) who: String,
    pub(crate) hours: u32,
    pub(crate) policies: Vec<String>,
    /// `10x8`; `None` means the workers that were there.
    pub(crate) fleet: Option<String>,
    /// What policies believe about lengths.
    pub(crate) estimates: String,
}

/// What came of a replay. The files are what the pages of others show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Title, notes, tables, and the names of the pictures.
    pub(crate) shown: Value,
    /// By name: pictures, the page for people to keep, and every figure.
    pub(crate) files: BTreeMap<String, String>,
}

/// The replay that runs, and the one before it.
#[derive(Clone, Default)]
pub(crate) struct Replays(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    running: Option<Running>,
    last: Option<Ended>,
    n_begun: u64,
}

struct Running {
    question: Question,
    since: Timestamp,
    stop: CancellationToken,
}

struct Ended {
    number: u64,
    question: Question,
    at: Timestamp,
    took: Millis,
    report: Result<Report, String>,
}

impl Replays {
    /// Begins a replay, which the caller has to run. Fails if a replay runs already, with its user
    /// and its time.
    pub(crate) fn begin(
        &self,
        config: &WhatIf,
        store: Arc<dyn Store>,
        question: Question,
    ) -> Result<(u64, impl Future<Output = ()> + use<>), String> {
        let Some(replayer) = config.replayer.clone() else { return Err(NOBODY.to_owned()) };
        let (stop, since) = (CancellationToken::new(), store.now());
        let mut state = self.state();
        if let Some(Running { question, .. }) = &state.running {
            return Err(format!(
                "a replay of {} is under way, and there is one at a time; wait, or call it off",
                if question.who.is_empty() { "somebody" } else { &question.who }
            ));
        }
        state.n_begun += 1;
        let number = state.n_begun;
        let running = Running { question: question.clone(), since, stop: stop.clone() };
        state.running = Some(running);
        drop(state);
        let (replays, config) = (self.clone(), config.clone());
        let replay = async move {
            let report = child::replay(&replayer, &config, &question, stop).await;
            let took = store.now().since(since);
            replays.end(Ended { number, question, at: since, took, report });
        };
        Ok((number, replay))
    }

    /// Calls the replay that runs off; whether there is one.
    pub(crate) fn stop(&self) -> bool {
        let state = self.state();
        state.running.as_ref().inspect(|running| running.stop.cancel()).is_some()
    }

    fn end(&self, ended: Ended) {
        let mut state = self.state();
        state.running = None;
        state.last = Some(ended);
    }

    /// What runs, and what came of the last one.
    pub(crate) fn look(&self) -> Value {
        let state = self.state();
        let running = state.running.as_ref().map(|running| {
            let mut value = told(&running.question);
            value["since_ms"] = json!(running.since.0);
            value
        });
        let last = state.last.as_ref().map(|ended| {
            let mut value = told(&ended.question);
            value["number"] = json!(ended.number);
            value["at_ms"] = json!(ended.at.0);
            value["took_ms"] = json!(ended.took.0);
            value["error"] = json!(ended.report.as_ref().err());
            value["report"] = json!(ended.report.as_ref().ok().map(|report| &report.shown));
            value
        });
        json!({ "running": running, "last": last })
    }

    /// A file of the last report, if it is that report's.
    pub(crate) fn file(&self, number: u64, name: &str) -> Option<String> {
        let state = self.state();
        let ended = state.last.as_ref().filter(|ended| ended.number == number)?;
        ended.report.as_ref().ok()?.files.get(name).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there are no replays.
pub(crate) const NOBODY: &str = "what happened is kept in memory alone, where no other process \
     can read it; hint: `--data-dir DIR` keeps it";

fn told(question: &Question) -> Value {
    let Question { who, hours, policies, fleet, estimates } = question;
    json!({
        "who": who,
        "hours": hours,
        "policies": policies,
        "fleet": fleet,
        "estimates": estimates,
    })
}
