//! A worker is told to look for work, and says what it found.

use ::detect::{Phase, Refused, Sieve};
use futures_util::FutureExt as _;
use model::{Name, Timestamp, WorkerId};
use proto::v1;
use proto::v1::server_message::Message;
use store::{Refusal, Submission, Submitted};

use super::note::Activity;
use super::propose::{new_job, proposal};
use crate::scheduler::{Answer, Scheduler};

/// Pages that may be on their way to the store; a worker that sends more is not read to the end.
const PAGES_MAX: usize = 64;

impl Scheduler {
    /// Tells a worker to look for work of the group's type.
    pub(super) fn tell_to_look(&mut self, name: &str, worker: &WorkerId) {
        let stream = self.fleet.stream_of(worker);
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        let Some(group) = &led.lane.group else { return };
        let policy = self.detection.types.get(&group.kind).map(|known| known.now.policy.clone());
        let policy = policy.unwrap_or_default();
        let until = Timestamp(group.until_ms);
        let left = until.since(self.store.now()).min(policy.detect_timeout);
        let detect = v1::Detect {
            run: group.run.clone(),
            r#type: group.kind.clone(),
            last_success_ms: led.lane.succeeded_ms.get(&group.kind).copied(),
            proposals_max: policy.proposals_max,
            timeout_ms: left.0.max(0).unsigned_abs(),
        };
        // Work that another worker found before it was lost is not found twice.
        let sieve = || Sieve::new(Name::new(&group.kind), policy.proposals_max, until);
        led.sieve.get_or_insert_with(sieve);
        led.told = Some(worker.clone());
        (led.ended, led.n_pages) = (None, 0);
        self.counters.add("detections", 1);
        if let Some(stream) = stream {
            self.send(stream, Message::Detect(detect));
        }
    }

    /// A worker that was told to look and is not to any more hears of it.
    pub(super) fn stop_looking(&mut self, name: &str) {
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        if led.told.is_none() || led.is_looking() {
            return;
        }
        let (worker, group) = (led.told.take(), led.lane.group.as_ref());
        let Some((worker, group)) = worker.zip(group) else { return };
        let (run, reason) = (group.run.clone(), group.error.clone());
        let about = group.kind.clone();
        if let Some(stream) = self.fleet.stream_of(&worker) {
            let stop = v1::StopDetection { run: run.clone(), reason: reason.clone() };
            self.send(stream, Message::StopDetection(stop));
        }
        let what = format!("run {run} does not wait for worker `{worker}` any more");
        let who = self.detection.holder.clone();
        self.write_down(&Activity::new("detection", &who, &about, what).because(&reason));
    }

    /// A worker found something. What nobody asked for is not heard.
    pub(crate) fn proposed(&mut self, worker: &WorkerId, proposals: v1::Proposals) {
        let run = proposals.run;
        let mut lanes = self.detection.lanes.iter_mut();
        let Some((name, led)) = lanes.find(|(_, led)| led.is_told(worker, &run)) else {
            self.counters.add("stale_words", 1);
            return;
        };
        let Some(group) = &led.lane.group else { return };
        let known = self.detection.types.get(&group.kind);
        let Some((policy, sieve)) = known.map(|known| &known.now.policy).zip(led.sieve.as_mut())
        else {
            return;
        };
        let page = proposals.proposals.into_iter().map(|one| proposal(one, policy)).collect();
        let taken = sieve.sift(self.store.now(), page);
        if taken.is_empty() {
            return;
        }
        if led.n_pages >= PAGES_MAX {
            for one in &taken {
                sieve.refuse(Refused::TooMany, &one.key);
            }
            return;
        }
        led.n_pages += 1;
        let (tenant, lane) = (policy.tenant.clone(), name.clone());
        let jobs = taken.into_iter().map(|one| new_job(one, policy, &run)).collect();
        let submission = Submission::new(tenant, jobs);
        self.call(|store| {
            async move { Answer::TakenIn(lane, run, store.submit(submission).await) }.boxed()
        });
    }

    /// The store took in a page, or not.
    pub(crate) fn taken_in(
        &mut self,
        name: &str,
        run: &str,
        answer: Result<Result<Submitted, Refusal>, store::Error>,
    ) {
        let answer = self.ok(answer);
        if let Some(Ok(submitted)) = &answer {
            for record in submitted.jobs.iter().chain(&submitted.changed) {
                self.changed(record);
                self.told(record);
            }
            let n_new = submitted.is_new.iter().filter(|is_new| **is_new).count();
            self.counters.add("detected", n_new);
        }
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        if led.lane.group.as_ref().is_none_or(|group| group.run != run) {
            return;
        }
        led.n_pages = led.n_pages.saturating_sub(1);
        led.n_unfinished = None;
        if let Some(sieve) = &mut led.sieve {
            match &answer {
                Some(Ok(submitted)) => {
                    let same = submitted.is_new.iter().filter(|is_new| !**is_new);
                    same.for_each(|_| sieve.refuse(Refused::Live, ""));
                }
                Some(Err(refusal)) => led.ended = Some(Err(refusal.to_string())),
                None => led.ended = Some(Err("the store did not take in its jobs".to_owned())),
            }
            led.lane.count(sieve);
        }
        led.is_unkept = true;
        self.detection.is_dirty = true;
        self.end_detection(name);
    }

    /// A worker has looked to the end, or will not.
    pub(crate) fn looked_to_the_end(&mut self, worker: &WorkerId, detected: &v1::Detected) {
        let mut lanes = self.detection.lanes.iter_mut();
        let found = lanes.find(|(_, led)| led.is_told(worker, &detected.run));
        let Some((name, led)) = found else {
            self.counters.add("stale_words", 1);
            return;
        };
        let error = || {
            let error = if detected.error.is_empty() { "no reason" } else { &detected.error };
            format!("worker `{worker}`: {error}")
        };
        let ended = match detected.end() {
            v1::DetectionEnd::Complete => Ok(()),
            v1::DetectionEnd::AtCapacity => Err(format!("worker `{worker}` was at capacity")),
            v1::DetectionEnd::Failed
            | v1::DetectionEnd::Stopped
            | v1::DetectionEnd::Unspecified => Err(error()),
        };
        // What the store said about its pages goes before what it says itself.
        led.ended.get_or_insert(ended);
        let name = name.clone();
        self.end_detection(&name);
    }

    /// Once all pages are in the store, the detection is over.
    fn end_detection(&mut self, name: &str) {
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        if led.n_pages > 0 {
            return;
        }
        let is_detecting = led.lane.group.as_ref();
        let is_detecting =
            is_detecting.is_some_and(|group| matches!(group.phase, Phase::Detecting { .. }));
        let Some(ended) = led.ended.take().filter(|_| is_detecting) else { return };
        if let Some(sieve) = &led.sieve {
            led.lane.count(sieve);
        }
        led.told = None;
        match ended {
            Ok(()) => led.lane.detected(),
            Err(error) => led.lane.fail(&error),
        }
        led.is_unkept = true;
        self.detection.is_dirty = true;
    }
}
