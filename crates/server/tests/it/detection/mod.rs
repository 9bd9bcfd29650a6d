//! Work that workers find: asked for, taken in, done, remembered.

mod find;
mod group;
mod lead;
mod told;
mod promise;

use model::Millis;
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::Puppet;
use crate::site::{Site, hello};

const DESCRIPTOR: &str = r#"{
    "display_name": "Vacuum",
    "admin": [{"name": "threshold", "kind": "number", "default": 0.3, "min": 0, "max": 1}],
    "worker": [{"name": "pause", "kind": "length", "default": "1s"}],
    "policy": {"interval": "10m", "detect_timeout": "30s", "runtime_max": "5m", "drain_grace": "1m"}
}"#;

pub(crate) fn detector(name: &str, kinds: &[&str]) -> v1::Hello {
    let kind = |kind: &&str| v1::WorkerType {
        name: (*kind).to_owned(),
        detect_max: 1,
        ..v1::WorkerType::default()
    };
    v1::Hello { types: kinds.iter().map(kind).collect(), slots: 4, ..hello(name) }
}

/// Somebody who does work and does not look for any.
fn hand(name: &str, kind: &str) -> v1::Hello {
    let types = vec![v1::WorkerType { name: kind.to_owned(), ..v1::WorkerType::default() }];
    v1::Hello { types, ..hello(name) }
}

/// Somebody who looks for work and does none.
fn only_detector(name: &str, kinds: &[&str]) -> v1::Hello {
    let mut hello = detector(name, kinds);
    hello.types.iter_mut().for_each(|kind| kind.detects_only = true);
    hello
}

fn proposal(kind: &str, key: &str) -> v1::Proposal {
    let (r#type, dedupe_key) = (kind.to_owned(), key.to_owned());
    let spec = Some(v1::Spec { r#type, dedupe_key, ..v1::Spec::default() });
    v1::Proposal { spec, ..v1::Proposal::default() }
}

impl Puppet {
    /// Describes every type that it is asked about, until it is told to look.
    pub(crate) async fn detect(&mut self) -> v1::Detect {
        loop {
            let next = self.next().await.expect("the stream goes on");
            if let Theirs::Describe(describe) = &next {
                self.describe(&describe.r#type, DESCRIPTOR).await;
            }
            if let Theirs::Detect(detect) = next {
                return detect;
            }
        }
    }

    async fn describe(&self, kind: &str, json: &str) {
        let (r#type, json) = (kind.to_owned(), json.to_owned());
        self.say(Ours::Described(v1::Described { r#type, json })).await;
    }

    /// Describes every type that it is asked about, until something else comes.
    async fn described(&mut self, n_types: usize) {
        let mut n_described = 0;
        while n_described < n_types {
            if let Theirs::Describe(describe) = self.next().await.expect("the stream goes on") {
                self.describe(&describe.r#type, DESCRIPTOR).await;
                n_described += 1;
            }
        }
    }

    async fn propose(&self, run: &str, proposals: Vec<v1::Proposal>) {
        let run = run.to_owned();
        self.say(Ours::Proposals(v1::Proposals { run, proposals })).await;
    }

    async fn looked(&self, run: &str, end: v1::DetectionEnd) {
        let (run, end) = (run.to_owned(), end.into());
        self.say(Ours::Detected(v1::Detected { run, end, ..v1::Detected::default() })).await;
    }

    /// Looks once, and finds this.
    pub(crate) async fn find(&mut self, kind: &str, keys: &[&str]) -> String {
        let detect = self.detect().await;
        assert_eq!(detect.r#type, kind);
        let proposals = keys.iter().map(|key| proposal(kind, key)).collect();
        self.propose(&detect.run, proposals).await;
        self.looked(&detect.run, v1::DetectionEnd::Complete).await;
        detect.run
    }

    async fn stopped_detection(&mut self) -> v1::StopDetection {
        loop {
            if let Theirs::StopDetection(stop) = self.next().await.expect("the stream goes on") {
                return stop;
            }
        }
    }
}

impl Site {
    /// Lets so many seconds pass in which a worker does nothing but live.
    async fn idle(&self, worker: &mut Puppet, seconds: i64) {
        for _ in 0..seconds / 5 {
            self.pass(Millis::from_secs(5)).await;
            worker.beat(v1::Heartbeat::default()).await;
        }
    }

    async fn runs(&self, kind: &str) -> Vec<v1::RunRecord> {
        let request = v1::RunsRequest { r#type: kind.to_owned() };
        self.detection.clone().runs(request).await.expect("it answers").into_inner().runs
    }

    /// Waits until so many runs are remembered; the newest first.
    pub(crate) async fn n_runs(&self, kind: &str, n: usize) -> Vec<v1::RunRecord> {
        self.until(&format!("{n} runs of {kind}"), async || {
            let runs = self.runs(kind).await;
            (runs.len() >= n).then_some(runs)
        })
        .await
    }

    async fn kind(&self, kind: &str) -> v1::TypeResponse {
        let request = v1::TypeRequest { r#type: kind.to_owned() };
        self.detection.clone().r#type(request).await.expect("it answers").into_inner()
    }

    async fn set_kind(
        &self,
        kind: &str,
        values: &[(&str, &str)],
    ) -> Result<v1::TypeResponse, String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let request = v1::SetTypeRequest { r#type: kind.to_owned(), values: values.collect() };
        let response = self.detection.clone().set_type(request).await;
        response.map(tonic::Response::into_inner).map_err(|status| status.message().to_owned())
    }

    async fn detect_now(&self, kind: &str) -> Result<bool, String> {
        let request = v1::DetectRequest { r#type: kind.to_owned() };
        let response = self.detection.clone().detect(request).await;
        let response = response.map_err(|status| status.message().to_owned())?;
        Ok(response.into_inner().is_running)
    }

    /// How many jobs of a type are in each of these states.
    async fn tally(&self, kind: &str, states: &[v1::State]) -> Vec<usize> {
        let mut counts = Vec::new();
        for state in states {
            let states = vec![(*state).into()];
            let filter =
                v1::JobFilter { r#type: kind.to_owned(), states, ..v1::JobFilter::default() };
            let request = v1::ListRequest {
                filter: Some(filter),
                page_size: 500,
                ..v1::ListRequest::default()
            };
            let jobs = self.jobs.clone().list(request).await.expect("it answers").into_inner().jobs;
            counts.push(jobs.len());
        }
        counts
    }

    async fn activity(&self, kind: &str) -> Vec<v1::ActivityEntry> {
        let request =
            v1::ActivityRequest { kind: kind.to_owned(), ..v1::ActivityRequest::default() };
        let response = self.detection.clone().activity(request).await.expect("it answers");
        response.into_inner().entries
    }
}

fn value<'a>(kind: &'a v1::TypeResponse, name: &str) -> (&'a str, &'a str) {
    let found = kind.policy.iter().find(|one| one.name == name).expect("there is one");
    (&found.value, &found.origin)
}
