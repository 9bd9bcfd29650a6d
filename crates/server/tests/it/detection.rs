//! Work that workers find: asked for, taken in, done, remembered.

use model::{Cause, Millis, State};
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::{Puppet, having, succeeded};
use crate::site::{Site, hello, spec};

const DESCRIPTOR: &str = r#"{
    "display_name": "Vacuum",
    "admin": [{"name": "threshold", "kind": "number", "default": 0.3, "min": 0, "max": 1}],
    "worker": [{"name": "pause", "kind": "length", "default": "1s"}],
    "policy": {"interval": "10m", "detect_timeout": "30s", "runtime_max": "5m", "drain_grace": "1m"}
}"#;

fn detector(name: &str, kinds: &[&str]) -> v1::Hello {
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
    async fn detect(&mut self) -> v1::Detect {
        loop {
            match self.next().await.expect("the stream goes on") {
                Theirs::Describe(describe) => self.describe(&describe.r#type, DESCRIPTOR).await,
                Theirs::Detect(detect) => return detect,
                _ => {}
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
    async fn find(&mut self, kind: &str, keys: &[&str]) -> String {
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
    async fn n_runs(&self, kind: &str, n: usize) -> Vec<v1::RunRecord> {
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

#[tokio::test]
async fn what_a_worker_finds_is_done_like_any_other_job_and_remembered() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let detect = worker.detect().await;
    assert_eq!((detect.r#type.as_str(), detect.proposals_max), ("vacuum", 1_000));
    assert_eq!((detect.last_success_ms, detect.timeout_ms), (None, 30_000));
    worker.propose(&detect.run, vec![proposal("vacuum", "a"), proposal("vacuum", "b")]).await;
    let odd = v1::Proposal { spec: None, ..v1::Proposal::default() };
    let greedy = v1::Proposal {
        spec: Some(v1::Spec {
            tenant: "other".to_owned(),
            ..proposal("vacuum", "t").spec.unwrap()
        }),
        ..v1::Proposal::default()
    };
    let page = vec![proposal("vacuum", "a"), proposal("balance", "c"), odd, greedy];
    worker.propose(&detect.run, page).await;
    worker.looked(&detect.run, v1::DetectionEnd::Complete).await;
    // One at a time, as the policy says.
    let first = worker.offer().await;
    assert_eq!(first.spec.as_ref().unwrap().group, format!("detected/{}", detect.run));
    assert_eq!(first.spec.as_ref().unwrap().run_timeout_ms, Some(90_000));
    worker.accept(&first).await;
    worker.say(Ours::Complete(succeeded(&first))).await;
    let second = worker.serve_next(&first).await;
    assert_ne!(first.job, second.job);
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!(
        (run.status.as_str(), run.worker.as_str(), run.error.as_str()),
        ("succeeded", "w", "")
    );
    assert_eq!((run.proposed, run.taken, run.succeeded), (6, 2, 2));
    let mut refused: Vec<(String, u32)> = run.refused.into_iter().collect();
    refused.sort();
    let expected = [("foreign", 1), ("malformed", 2), ("repeated", 1)];
    assert_eq!(refused, expected.map(|(reason, n)| (reason.to_owned(), n)));
    // Nothing more is asked before the interval is over.
    let kind = site.kind("vacuum").await;
    assert_eq!(kind.next_due_ms, Some(run.started_ms + 600_000));
    assert_eq!((kind.last_success_ms, kind.running), (Some(run.started_ms), None));
    site.idle(&mut worker, 595).await;
    assert_eq!(site.counter("detections").await, 1);
    site.idle(&mut worker, 5).await;
    assert_eq!(worker.detect().await.last_success_ms, Some(run.started_ms));
}

impl Puppet {
    /// Takes the next job that is another, and does it.
    async fn serve_next(&mut self, before: &v1::Offer) -> v1::Offer {
        loop {
            let offer = self.offer().await;
            if offer.job != before.job {
                self.accept(&offer).await;
                self.say(Ours::Complete(succeeded(&offer))).await;
                return offer;
            }
        }
    }
}

#[tokio::test]
async fn what_is_being_done_is_not_taken_in_again() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let mine = v1::Spec { r#type: "vacuum".to_owned(), dedupe_key: "a".to_owned(), ..spec() };
    let held = site.submit(v1::Spec { on_hold: true, ..mine }).await;
    worker.find("vacuum", &["a", "b"]).await;
    let offer = worker.offer().await;
    assert_eq!(offer.spec.as_ref().unwrap().dedupe_key, "b");
    worker.accept(&offer).await;
    worker.say(Ours::Complete(succeeded(&offer))).await;
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.proposed, run.taken, run.refused["live"]), (2, 1, 1));
    assert_eq!(site.record(held).await.state, State::Queued);
}

#[tokio::test]
async fn a_worker_that_does_not_answer_is_given_up_and_the_next_is_asked() {
    let site = Site::start().await;
    let mut slow = site.worker_with(detector("a", &["vacuum"])).await;
    let first = slow.detect().await;
    let mut next = site.worker_with(detector("b", &["vacuum"])).await;
    for _ in 0..6 {
        site.pass(Millis::from_secs(5)).await;
        slow.beat(v1::Heartbeat::default()).await;
        next.beat(v1::Heartbeat::default()).await;
    }
    assert_eq!(slow.stopped_detection().await.run, first.run);
    let second = next.detect().await;
    assert_eq!(second.run, first.run, "it is the same run");
    // What the first says now is not heard.
    slow.propose(&first.run, vec![proposal("vacuum", "late")]).await;
    slow.looked(&first.run, v1::DetectionEnd::Complete).await;
    slow.beat(v1::Heartbeat::default()).await;
    next.looked(&second.run, v1::DetectionEnd::Complete).await;
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.status.as_str(), run.worker.as_str(), run.taken), ("succeeded", "b", 0));
}

#[tokio::test]
async fn when_the_last_worker_is_lost_the_run_has_failed() {
    let site = Site::start().await;
    let mut busy = site.worker_with(detector("a", &["vacuum"])).await;
    let detect = busy.detect().await;
    let mut lost = site.worker_with(detector("b", &["vacuum"])).await;
    site.turn().await;
    busy.looked(&detect.run, v1::DetectionEnd::AtCapacity).await;
    lost.detect().await;
    drop(lost);
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.status.as_str(), run.error.as_str()), ("failed", "worker `b` was lost"));
    // It is not tried again before it is due.
    site.turn().await;
    assert_eq!(site.counter("detections").await, 2);
}

#[tokio::test]
async fn when_the_time_is_out_what_waits_is_called_off_and_what_runs_ends() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &["a", "b", "c"]).await;
    let running = worker.offer().await;
    worker.accept(&running).await;
    for _ in 0..60 {
        site.pass(Millis::from_secs(5)).await;
        worker.beat(having(&[&running])).await;
    }
    site.until("what waits is called off", async || {
        let cancelled = site.tally("vacuum", &[v1::State::Cancelled]).await[0];
        (cancelled == 2).then_some(())
    })
    .await;
    assert_eq!(site.record(running.job).await.state, State::Running);
    assert_eq!(site.kind("vacuum").await.running.unwrap().phase, "draining");
    worker.say(Ours::Complete(succeeded(&running))).await;
    site.pass(Millis::from_secs(2)).await;
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.status.as_str(), run.succeeded, run.cancelled), ("out-of-time", 1, 2));
}

#[tokio::test]
async fn what_still_runs_after_the_grace_is_stopped() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &["a"]).await;
    let running = worker.offer().await;
    worker.accept(&running).await;
    let mut n_beats = 0;
    let stop = loop {
        site.pass(Millis::from_secs(5)).await;
        worker.beat(having(&[&running])).await;
        n_beats += 1;
        assert!(n_beats < 200, "it is never stopped");
        if site.record(running.job).await.cancelling {
            break n_beats;
        }
    };
    assert!(stop >= 72, "five minutes, and one of grace: {stop}");
    let ending = v1::Ending::Cancelled.into();
    worker.say(Ours::Complete(v1::Complete { ending, ..succeeded(&running) })).await;
    site.pass(Millis::from_secs(2)).await;
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.status.as_str(), run.cancelled), ("out-of-time", 1));
    assert_eq!(site.record(running.job).await.cause, Some(Cause::Asked));
}

#[tokio::test]
async fn types_of_a_lane_go_one_after_the_other_and_lanes_side_by_side() {
    let site = Site::start().await;
    site.set_kind("zip", &[("lane", "other")]).await.unwrap();
    let mut worker = site.worker_with(detector("w", &["balance", "vacuum", "zip"])).await;
    worker.described(3).await;
    let (one, other) = (worker.detect().await, worker.detect().await);
    let mut kinds = [one.r#type.as_str(), other.r#type.as_str()];
    kinds.sort_unstable();
    assert_eq!(kinds, ["balance", "zip"]);
    let balance = if one.r#type == "balance" { &one } else { &other };
    worker.propose(&balance.run, vec![proposal("balance", "a")]).await;
    worker.looked(&balance.run, v1::DetectionEnd::Complete).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    worker.beat(having(&[&offer])).await;
    assert_eq!(site.counter("detections").await, 2, "its jobs are part of the group");
    worker.say(Ours::Complete(succeeded(&offer))).await;
    assert_eq!(worker.detect().await.r#type, "vacuum");
}

#[tokio::test]
async fn whoever_leads_next_goes_on_without_detecting_again() {
    let mut site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let run = worker.find("vacuum", &["a", "b"]).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    worker.beat(having(&[&offer])).await;
    site.stop().await;
    site.go().await;
    let attempts = vec![crate::puppet::attempt(&offer)];
    let back = v1::Hello { attempts, ..detector("w", &["vacuum"]) };
    let mut worker = site.worker_with(back).await;
    worker.say(Ours::Complete(succeeded(&offer))).await;
    let second = worker.offer().await;
    worker.accept(&second).await;
    worker.say(Ours::Complete(succeeded(&second))).await;
    let runs = site.n_runs("vacuum", 1).await;
    assert_eq!((runs.len(), runs[0].run.as_str(), runs[0].succeeded), (1, run.as_str(), 2));
    assert_eq!(site.counter("detections").await, 0, "by the second scheduler");
}

#[tokio::test]
async fn of_two_schedulers_one_leads_and_the_other_takes_over_without_detecting_again() {
    let mut site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let run = worker.find("vacuum", &["a"]).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    let other = site.another().await;
    let mut scout = other.worker_with(only_detector("scout", &["vacuum"])).await;
    other.turn().await;
    assert_eq!(other.counter("detections").await, 0, "the first leads");
    assert_eq!(other.kind("vacuum").await.running.unwrap().run, run, "both know what runs");
    worker.say(Ours::Complete(succeeded(&offer))).await;
    site.n_runs("vacuum", 1).await;
    site.stop().await;
    drop(worker);
    for _ in 0..118 {
        other.pass(Millis::from_secs(5)).await;
        scout.beat(v1::Heartbeat::default()).await;
    }
    assert_eq!(other.counter("detections").await, 0, "it is not due yet");
    for _ in 0..3 {
        other.pass(Millis::from_secs(5)).await;
        scout.beat(v1::Heartbeat::default()).await;
    }
    assert_ne!(scout.detect().await.run, run);
    let leads = other.activity("lane").await;
    assert_eq!(leads.len(), 2);
}

#[tokio::test]
async fn a_policy_is_set_field_by_field_and_counts_at_once() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &[]).await;
    site.n_runs("vacuum", 1).await;
    let kind = site.kind("vacuum").await;
    assert_eq!(value(&kind, "interval"), ("10m", "descriptor"));
    assert_eq!(value(&kind, "jobs_max"), ("1", "default"));
    let values =
        [("interval", "2m"), ("jobs_max", "3"), ("worker_max", "3"), ("admin.threshold", "0.5")];
    let kind = site.set_kind("vacuum", &values).await.unwrap();
    assert_eq!(value(&kind, "interval"), ("2m", "set"));
    assert_eq!((kind.admin[0].value.as_str(), kind.admin[0].is_set), ("0.5", true));
    let configured = loop {
        if let Theirs::Configured(configured) = worker.next().await.unwrap() {
            if configured.admin.contains("0.5") {
                break configured;
            }
        }
    };
    assert_eq!(configured.worker, r#"{"pause":"1s"}"#);
    site.idle(&mut worker, 120).await;
    worker.find("vacuum", &["a", "b", "c", "d"]).await;
    site.until("three run at once", async || {
        (site.tally("vacuum", &[v1::State::Claimed]).await == [3]).then_some(())
    })
    .await;
    let unset = site.set_kind("vacuum", &[("interval", "")]).await.unwrap();
    assert_eq!(value(&unset, "interval"), ("10m", "descriptor"));
    assert!(site.activity("setting").await[0].what.starts_with("set interval="));
    let wrong = |values: &'static [(&'static str, &'static str)]| site.set_kind("vacuum", values);
    assert_eq!(
        wrong(&[("admin.threshold", "7")]).await.unwrap_err(),
        "`admin.threshold` is \"7\", which is not between 0 and 1"
    );
    assert!(wrong(&[("interval", "5")]).await.unwrap_err().starts_with("`interval` is `5`"));
    assert!(wrong(&[("colour", "red")]).await.unwrap_err().starts_with("`colour` is no field"));
    assert!(wrong(&[("x.y", "red")]).await.unwrap_err().starts_with("`x.y` is in `x`"));
}

#[tokio::test]
async fn a_run_can_be_asked_for_and_called_off() {
    let site = Site::start().await;
    assert!(site.detect_now("vacuum").await.unwrap_err().starts_with("no worker ever said"));
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &[]).await;
    site.n_runs("vacuum", 1).await;
    site.turn().await;
    assert_eq!(site.detect_now("vacuum").await, Ok(false));
    let detect = worker.detect().await;
    worker.propose(&detect.run, vec![proposal("vacuum", "a"), proposal("vacuum", "b")]).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    assert_eq!(site.detect_now("vacuum").await, Ok(true), "another follows");
    let request = v1::CancelRunRequest { r#type: "vacuum".to_owned() };
    let cancelled = site.detection.clone().cancel_run(request).await.unwrap().into_inner();
    assert_eq!(cancelled.run, detect.run);
    assert_eq!(worker.stopped_detection().await.run, detect.run);
    site.record_when(offer.job, |record| record.cancelling).await;
    let ending = v1::Ending::Cancelled.into();
    worker.say(Ours::Complete(v1::Complete { ending, ..succeeded(&offer) })).await;
    let run = site.n_runs("vacuum", 2).await.remove(0);
    assert_eq!((run.asked, run.error.as_str()), (true, "somebody called it off"));
    assert_eq!(run.cancelled, 2);
    assert!(worker.detect().await.run > detect.run);
    site.set_kind("vacuum", &[("enabled", "false")]).await.unwrap();
    assert!(site.detect_now("vacuum").await.unwrap_err().contains("is not enabled"));
}

#[tokio::test]
async fn an_exclusive_resource_is_held_by_each_job_and_others_get_it_in_between() {
    let site = Site::start().await;
    site.set_kind("vacuum", &[("resource", "lock"), ("jobs_max", "9"), ("worker_max", "9")])
        .await
        .unwrap();
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let mut other = site.worker_with(hand("v", "admin")).await;
    worker.find("vacuum", &["a", "b"]).await;
    let first = worker.offer().await;
    assert_eq!(first.resource, "lock");
    worker.accept(&first).await;
    let mine = v1::Spec {
        r#type: "admin".to_owned(),
        resource: "lock".to_owned(),
        on_demand: true,
        priority: 9,
        ..v1::Spec::default()
    };
    let mine = site.submit(mine).await;
    assert_eq!(site.why(mine).await.reason, "resource-held");
    worker.say(Ours::Complete(succeeded(&first))).await;
    let offer = other.offer().await;
    assert_eq!(offer.job, mine);
    other.accept(&offer).await;
    other.say(Ours::Complete(succeeded(&offer))).await;
    assert_eq!(worker.offer().await.resource, "lock");
}

#[tokio::test]
async fn who_only_looks_for_work_gets_none() {
    let site = Site::start().await;
    let mut scout = site.worker_with(only_detector("scout", &["vacuum"])).await;
    scout.find("vacuum", &["a"]).await;
    let id = site
        .until("it is taken in", async || {
            let jobs = site.jobs.clone().list(v1::ListRequest::default()).await.unwrap();
            jobs.into_inner().jobs.first().map(|job| job.id)
        })
        .await;
    site.turn().await;
    assert_eq!(site.why(id).await.reason, "no-worker-ever");
    let mut hand = site.worker_with(hand("hand", "vacuum")).await;
    assert_eq!(hand.offer().await.job, id);
}

#[tokio::test]
async fn what_is_published_reaches_every_worker_and_only_the_chosen_one_may_publish() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let put = |json: Option<&str>, publisher: Option<&str>| {
        let json = json.map(str::to_owned);
        let request = v1::PutContextRequest { json, publisher: publisher.map(str::to_owned) };
        let mut client = site.detection.clone();
        async move { client.put_context(request).await.map(tonic::Response::into_inner) }
    };
    assert_eq!(put(Some(r#"{"n": 1}"#), None).await.unwrap().version, 1);
    assert_eq!(worker.context().await, (1, r#"{"n": 1}"#.to_owned()));
    let wrong = put(Some("[]"), None).await.unwrap_err();
    assert_eq!(wrong.message(), "`json` is not a JSON object");
    let json = r#"{"n": 2}"#.to_owned();
    worker.say(Ours::Publish(v1::Publish { json: json.clone() })).await;
    worker.beat(v1::Heartbeat::default()).await;
    assert_eq!(site.counter("publications_refused").await, 1);
    assert_eq!(put(None, Some("w")).await.unwrap().version, 1);
    worker.say(Ours::Publish(v1::Publish { json: json.clone() })).await;
    assert_eq!(worker.context().await, (2, json.clone()));
    // Also whoever comes later.
    assert_eq!(site.worker("v").await.context().await, (2, json));
}

impl Puppet {
    async fn context(&mut self) -> (u64, String) {
        loop {
            if let Theirs::Context(context) = self.next().await.expect("the stream goes on") {
                return (context.version, context.json);
            }
        }
    }
}
