//! A worker is asked, and what it finds is taken in and done.

use model::{Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use super::{detector, hand, only_detector, proposal};
use crate::puppet::{Puppet, succeeded};
use crate::site::{Site, spec};

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
