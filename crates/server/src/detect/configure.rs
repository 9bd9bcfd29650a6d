//! What holds for each type, who is told, and what workers say about types.

use ::detect::{Descriptor, Policy, Shown};
use futures_util::FutureExt as _;
use model::{Event, JobType, Name, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;
use serde_json::{Map, Value};
use store::{Setting, SettingKind};

use super::note::Activity;
use crate::scheduler::{Answer, Scheduler};

/// What an operator set for a type: its policy and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeWords {
    pub(crate) policy: Map<String, Value>,
    pub(crate) admin: Map<String, Value>,
    pub(crate) worker: Map<String, Value>,
}

/// What is known of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// As its document says.
    pub(crate) job_type: Option<JobType>,
    pub(crate) words: TypeWords,
    /// `None` until a worker described it.
    pub(crate) descriptor: Option<Descriptor>,
    /// What comes of the two.
    pub(crate) now: Resolved,
    /// What workers were told of it last.
    told: Option<v1::Configured>,
}

/// What holds for a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) policy: Policy,
    pub(crate) shown: Vec<Shown>,
    pub(crate) admin: Map<String, Value>,
    pub(crate) worker: Map<String, Value>,
}

impl Known {
    fn resolve(&mut self) -> Result<(), ::detect::Problem> {
        let Some(descriptor) = &self.descriptor else {
            // What is configured can be read once somebody says what there is to configure.
            let (policy, shown) = Policy::resolve(&self.words.policy, &Map::new())?;
            self.now = Resolved { policy, shown, ..Resolved::default() };
            return Ok(());
        };
        let (policy, shown) = Policy::resolve(&self.words.policy, &descriptor.policy)?;
        let admin = descriptor.admin_values(&self.words.admin)?;
        let worker = descriptor.worker_values(&self.words.worker)?;
        self.now = Resolved { policy, shown, admin, worker };
        Ok(())
    }
}

impl Scheduler {
    /// An operator set something about a type.
    pub(crate) fn set_words(&mut self, job_type: JobType, words: TypeWords) {
        let name = job_type.name.to_string();
        let known = self.detection.types.entry(name.clone()).or_default();
        known.job_type = Some(job_type);
        known.words = words;
        self.reconfigure(&name);
    }

    /// A worker described a type, or did so before a restart.
    pub(crate) fn set_descriptor(&mut self, kind: &Name, descriptor: Descriptor) {
        let name = kind.to_string();
        self.detection.describing.remove(&name);
        self.detection.types.entry(name.clone()).or_default().descriptor = Some(descriptor);
        self.reconfigure(&name);
    }

    /// What is set and what is described come to something: it holds from now on.
    fn reconfigure(&mut self, name: &str) {
        let Some(known) = self.detection.types.get_mut(name) else { return };
        if let Err(problem) = known.resolve() {
            // What was set for another descriptor does not fit this one.
            tracing::warn!(kind = name, %problem, "what is set for a type does not count");
            let words = std::mem::take(&mut known.words);
            known.resolve().expect("a descriptor that was checked goes with its own defaults");
            known.words = words;
        }
        if known.descriptor.is_none() {
            return;
        }
        let policy = &known.now.policy;
        let base = known.job_type.clone().unwrap_or_else(|| JobType::new(Name::new(name)));
        let job_type = JobType {
            jobs_max: Some(policy.jobs_max),
            worker_max: Some(policy.worker_max),
            ..base
        };
        self.note_type(&job_type);
        self.world.apply(Event::Type(job_type));
        self.detection.is_dirty = true;
        self.tell_configured(name);
    }

    /// Workers hear what holds for a type, if they have not heard it yet.
    fn tell_configured(&mut self, name: &str) {
        let Some(configured) = self.configured(name) else { return };
        let Some(known) = self.detection.types.get_mut(name) else { return };
        if known.told.as_ref() == Some(&configured) {
            return;
        }
        known.told = Some(configured.clone());
        let kind = Name::new(name);
        let seats = self.fleet.seats.values();
        let streams: Vec<_> =
            seats.filter(|seat| seat.names(&kind)).filter_map(|seat| seat.stream).collect();
        for stream in streams {
            self.send(stream, Message::Configured(configured.clone()));
        }
    }

    fn configured(&self, name: &str) -> Option<v1::Configured> {
        let known = self.detection.types.get(name)?;
        known.descriptor.as_ref()?;
        Some(v1::Configured {
            r#type: name.to_owned(),
            admin: Value::Object(known.now.admin.clone()).to_string(),
            worker: Value::Object(known.now.worker.clone()).to_string(),
        })
    }

    /// A worker came: it is told what holds, and asked what nobody knows yet.
    pub(crate) fn introduce(&mut self, worker: &WorkerId) {
        let Some(seat) = self.fleet.seats.get(worker) else { return };
        let Some(stream) = seat.stream else { return };
        let kinds: Vec<Name> = seat.detects.keys().chain(&seat.said.types).cloned().collect();
        let can_detect: Vec<Name> = seat.detects.keys().cloned().collect();
        if self.detection.published.version > 0 {
            self.send(stream, Message::Context(self.detection.published.context()));
        }
        for kind in &kinds {
            if let Some(configured) = self.configured(&kind.to_string()) {
                self.send(stream, Message::Configured(configured));
            }
        }
        for kind in can_detect {
            let name = kind.to_string();
            let known = self.detection.types.get(&name);
            if known.is_none_or(|known| known.descriptor.is_none()) {
                self.ask_to_describe(&name, worker);
            }
        }
        self.detection.is_dirty = true;
    }

    /// Asks a worker about a type. It is asked again when it comes back.
    pub(crate) fn ask_to_describe(&mut self, kind: &str, worker: &WorkerId) {
        let Some(stream) = self.fleet.stream_of(worker) else { return };
        self.detection.describing.insert(kind.to_owned(), worker.clone());
        self.send(stream, Message::Describe(v1::Describe { r#type: kind.to_owned() }));
    }

    /// Asks some worker about a type once more; which.
    pub(crate) fn describe_again(&mut self, kind: &str) -> Option<String> {
        let detector = self.detectors(kind).into_iter().next()?.worker;
        self.ask_to_describe(kind, &WorkerId::new(&detector));
        Some(detector)
    }

    /// A worker described a type, because it was asked to.
    pub(crate) fn described(&mut self, worker: &WorkerId, kind: &str, json: &str) {
        if self.detection.describing.get(kind) != Some(worker) {
            self.counters.add("stale_words", 1);
            return;
        }
        let descriptor = match Descriptor::parse(json) {
            Ok(descriptor) => descriptor,
            Err(problem) => {
                self.detection.describing.remove(kind);
                self.counters.add("descriptors_refused", 1);
                let what = format!("its descriptor of `{kind}` was refused");
                let activity = Activity::new("descriptor", &worker.to_string(), kind, what);
                self.write_down(&activity.because(&problem.to_string()));
                return;
            }
        };
        let what = format!("described `{kind}`");
        self.write_down(&Activity::new("descriptor", &worker.to_string(), kind, what));
        let (name, document) = (kind.to_owned(), Some(descriptor.to_text()));
        let setting = Setting { kind: SettingKind::Descriptor, name, document };
        self.call(|store| async move { Answer::Written(store.set(vec![setting]).await) }.boxed());
        self.set_descriptor(&Name::new(kind), descriptor);
    }
}
