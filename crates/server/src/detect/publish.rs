//! What all workers are told: a document with a version, by an operator or by the worker that one
//! chose.
//!
//! **Invariant:** no two documents have the same version, whoever publishes where at the same time.

use futures_util::FutureExt as _;
use model::WorkerId;
use proto::v1;
use proto::v1::server_message::Message;
use serde_json::Value;
use store::{Error, SettingKind};

use super::note::Activity;
use crate::revise::revise;
use crate::scheduler::{Answer, Scheduler};

/// Bytes in what is published.
const CONTEXT_BYTES_MAX: usize = 256 << 10;
const NOT_CHOSEN: &str = "it is not the worker that the operator chose";

/// What all workers are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) version: u64,
    pub(crate) json: String,
    /// The worker that may publish.
    pub(crate) publisher: String,
}

/// What a worker wants to be told to all.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    worker: WorkerId,
    json: String,
}

impl Published {
    /// The same with another document.
    pub(crate) fn followed_by(self, json: String) -> Self {
        Self { version: self.version + 1, json, ..self }
    }

    /// As it is kept.
    pub(crate) fn document(&self) -> String {
        let document = serde_json::json!({
            "version": self.version,
            "json": self.json,
            "publisher": self.publisher,
        });
        document.to_string()
    }

    /// As it was kept.
    pub(crate) fn read(document: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(document).ok()?;
        Some(Self {
            version: document["version"].as_u64()?,
            json: document["json"].as_str()?.to_owned(),
            publisher: document["publisher"].as_str()?.to_owned(),
        })
    }

    /// What is kept now; nothing if nothing is.
    pub(crate) fn kept(document: Option<&str>) -> Self {
        document.and_then(Self::read).unwrap_or_default()
    }

    /// As workers are told.
    pub(super) fn context(&self) -> v1::Context {
        v1::Context { version: self.version, json: self.json.clone() }
    }
}

/// What is wrong with a document that is to be published.
pub(crate) fn check_context(json: &str) -> Result<(), String> {
    if json.len() > CONTEXT_BYTES_MAX {
        return Err(format!("has {} bytes of at most {CONTEXT_BYTES_MAX}", json.len()));
    }
    match serde_json::from_str::<Value>(json) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err("is not a JSON object".to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

impl Scheduler {
    /// Something was published: all workers hear of it.
    pub(crate) fn set_published(&mut self, published: Published) {
        if published.version < self.detection.published.version {
            return;
        }
        let before = std::mem::replace(&mut self.detection.published, published);
        let now = &self.detection.published;
        if (before.version, &before.json) == (now.version, &now.json) {
            return;
        }
        let streams: Vec<_> = self.fleet.seats.values().filter_map(|seat| seat.stream).collect();
        for stream in streams {
            self.send(stream, Message::Context(self.detection.published.context()));
        }
    }

    /// A worker published something. Only the one that the operator chose may.
    pub(crate) fn publish(&mut self, worker: &WorkerId, json: String) {
        let known = &self.detection.published;
        let checked = if known.publisher == worker.to_string() {
            check_context(&json)
        } else {
            Err(NOT_CHOSEN.to_owned())
        };
        if let Err(problem) = checked {
            self.publication_refused(worker, &problem);
            return;
        }
        // What waits to be published is old by now.
        self.detection.to_publish = Some(Publication { worker: worker.clone(), json });
        self.publish_next();
    }

    /// Publishes what waits for it, one after the other.
    pub(super) fn publish_next(&mut self) {
        if self.detection.is_publishing {
            return;
        }
        let Some(publication) = self.detection.to_publish.take() else { return };
        self.detection.is_publishing = true;
        self.call(|store| {
            async move {
                let change = |was: Option<&str>| {
                    let (known, json) = (Published::kept(was), publication.json.clone());
                    let is_chosen = known.publisher == publication.worker.to_string();
                    let published = is_chosen.then(|| known.followed_by(json).document());
                    published.ok_or(NOT_CHOSEN)
                };
                let kept = revise(&*store, (SettingKind::Context, ""), change).await;
                Answer::Published(publication, kept)
            }
            .boxed()
        });
    }

    /// The store has it, or not.
    pub(crate) fn published(
        &mut self,
        publication: Publication,
        answer: Result<Result<String, &'static str>, Error>,
    ) {
        self.detection.is_publishing = false;
        let worker = publication.worker.clone();
        match self.ok(answer) {
            // It is tried again when leads are renewed, unless there is something newer by then.
            None => drop(self.detection.to_publish.get_or_insert(publication)),
            Some(Err(problem)) => self.publication_refused(&worker, problem),
            Some(Ok(document)) => {
                let published = Published::kept(Some(&document));
                let what = format!("published version {}", published.version);
                self.write_down(&Activity::new("context", &worker.to_string(), "", what));
                self.set_published(published);
                self.publish_next();
            }
        }
    }

    fn publication_refused(&mut self, worker: &WorkerId, problem: &str) {
        self.counters.add("publications_refused", 1);
        let what = "its publication was refused".to_owned();
        let activity = Activity::new("context", &worker.to_string(), "", what);
        self.write_down(&activity.because(problem));
    }
}
