//! Groups and lanes: one after the other, within their time.

use model::{Cause, Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use super::{detector, hand, proposal};
use crate::puppet::{having, succeeded};
use crate::site::Site;

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
