//! Who leads a lane, and what becomes of it when the leader goes.

use model::Millis;
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use super::{detector, only_detector};
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
