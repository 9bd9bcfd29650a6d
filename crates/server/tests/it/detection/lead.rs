//! Who leads a lane, and what becomes of it when the leader goes.

use model::Millis;
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use super::{detector, only_detector, proposal};
use crate::puppet::{having, succeeded};
use crate::site::Site;

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
    assert!(leads.is_empty(), "nobody went on with what another began: {leads:?}");
}

#[tokio::test]
async fn a_leader_that_hangs_is_followed_and_changes_nothing_when_it_wakes() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let first = worker.detect().await;
    worker.propose(&first.run, vec![proposal("vacuum", "a")]).await;
    site.until("the proposal is a job", async || {
        (site.kind("vacuum").await.running?.taken == 1).then_some(())
    })
    .await;
    // Its store does not answer it any more, and its lease runs out in the middle of a detection.
    for method in ["lead", "keep", "note", "submit"] {
        site.store.hold(method);
    }
    let other = site.another().await;
    let mut scout = other.worker_with(detector("scout", &["vacuum"])).await;
    let mut n_passed = 0;
    while other.activity("lane").await.is_empty() {
        other.pass(Millis::from_secs(1)).await;
        scout.beat(v1::Heartbeat::default()).await;
        n_passed += 1;
        assert!(n_passed < 60, "nobody takes over");
    }
    assert!(n_passed >= 10, "the lease lasts ten seconds: {n_passed}");
    // What the first had begun cannot come to an end, and is begun anew.
    let offer = scout.offer().await;
    assert_eq!(offer.spec.as_ref().unwrap().dedupe_key, "a");
    scout.accept(&offer).await;
    scout.say(Ours::Complete(succeeded(&offer))).await;
    let lost = other.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((lost.run.as_str(), lost.status.as_str()), (first.run.as_str(), "failed"));
    assert_eq!(lost.error, "the scheduler that led the lane went away");
    let second = scout.detect().await;
    assert_ne!(second.run, first.run);
    // The first wakes up: what it says and keeps does not count.
    for method in ["lead", "keep", "note", "submit"] {
        site.store.let_go(method);
    }
    worker.looked(&first.run, v1::DetectionEnd::Complete).await;
    site.turn().await;
    scout.looked(&second.run, v1::DetectionEnd::Complete).await;
    let runs = other.n_runs("vacuum", 2).await;
    let names: Vec<&str> = runs.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(names, [second.run.as_str(), first.run.as_str()], "each once");
}
