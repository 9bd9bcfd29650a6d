//! What a proposal and a policy say about a job is so, and what became of runs is remembered.

use model::State;
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use super::{detector, hand, proposal};
use crate::puppet::{Puppet, succeeded};
use crate::site::Site;

/// A proposal that says more than what it is about.
fn saying(key: &str, say: impl FnOnce(&mut v1::Spec)) -> v1::Proposal {
    let mut proposal = proposal("vacuum", key);
    say(proposal.spec.as_mut().expect("it has one"));
    proposal
}

impl Puppet {
    /// The next offer of another job than these; it is accepted.
    async fn other(&mut self, seen: &[u64]) -> v1::Offer {
        loop {
            let offer = self.offer().await;
            if !seen.contains(&offer.job) {
                self.accept(&offer).await;
                return offer;
            }
        }
    }
}

fn key(offer: &v1::Offer) -> &str {
    &offer.spec.as_ref().expect("it has one").dedupe_key
}

#[tokio::test]
async fn priority_labels_delay_and_estimate_of_a_proposal_count() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Policy, "", "detected").await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    let detect = worker.detect().await;
    let at = site.time.now().0 + 60_000;
    let later = saying("later", |spec| (spec.priority, spec.not_before_ms) = (9, Some(at)));
    let urgent = saying("urgent", |spec| {
        spec.priority = 5;
        spec.labels.insert("team".to_owned(), "ops".to_owned());
        spec.estimate_ms = Some(36_000_000);
    });
    let long = saying("long", |spec| spec.estimate_ms = Some(600_000));
    worker.propose(&detect.run, vec![later, long, urgent]).await;
    worker.looked(&detect.run, v1::DetectionEnd::Complete).await;
    let first = worker.other(&[]).await;
    let spec = first.spec.clone().unwrap();
    assert_eq!((key(&first), spec.labels["team"].as_str()), ("urgent", "ops"));
    assert_eq!(spec.run_timeout_ms, Some(8 * 3_600_000), "as long as it expects, up to 8 hours");
    worker.say(Ours::Complete(succeeded(&first))).await;
    let second = worker.other(&[first.job]).await;
    assert_eq!(key(&second), "long");
    assert_eq!(second.spec.as_ref().unwrap().run_timeout_ms, Some(600_000));
    worker.say(Ours::Complete(succeeded(&second))).await;
    site.record_when(second.job, |record| record.state == State::Succeeded).await;
    let ids: Vec<u64> = (1..=3).filter(|id| ![first.job, second.job].contains(id)).collect();
    assert_eq!(site.why(ids[0]).await.reason, "not-before", "urgent, but not yet");
    site.idle(&mut worker, 60).await;
    let third = worker.other(&[first.job, second.job]).await;
    assert_eq!((key(&third), third.job), ("later", ids[0]));
}

#[tokio::test]
async fn a_job_that_fails_is_tried_again_elsewhere_as_often_as_its_policy_says() {
    let site = Site::start().await;
    let policy = [("retries_max", "1"), ("retry_backoff", "10s")];
    site.set_kind("vacuum", &policy).await.unwrap();
    let mut first = site.worker_with(detector("a", &["vacuum"])).await;
    let mut second = site.worker_with(hand("b", "vacuum")).await;
    first.find("vacuum", &["x"]).await;
    let offer = first.other(&[]).await;
    let failing = |offer: &v1::Offer| {
        let (ending, error) = (v1::Ending::Transient.into(), "no luck".to_owned());
        Ours::Complete(v1::Complete { ending, error, ..succeeded(offer) })
    };
    first.say(failing(&offer)).await;
    site.record_when(offer.job, |record| record.counts.failures == 1).await;
    for _ in 0..2 {
        site.pass(model::Millis::from_secs(5)).await;
        first.beat(v1::Heartbeat::default()).await;
        second.beat(v1::Heartbeat::default()).await;
    }
    let again = second.other(&[]).await;
    assert_eq!((again.job, again.attempt), (offer.job, 2), "the other one has it now");
    second.say(failing(&again)).await;
    let record = site.record_when(offer.job, |record| record.state == State::Failed).await;
    assert_eq!(record.counts.failures, 2);
    let run = site.n_runs("vacuum", 1).await.remove(0);
    assert_eq!((run.status.as_str(), run.succeeded, run.failed), ("succeeded", 0, 1));
}

#[tokio::test]
async fn a_job_that_is_refused_goes_to_the_next_worker_and_costs_no_try() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Policy, "", "detected").await;
    site.set_kind("vacuum", &[("retries_max", "0")]).await.unwrap();
    let mut first = site.worker_with(detector("a", &["vacuum"])).await;
    let mut second = site.worker_with(hand("b", "vacuum")).await;
    first.find("vacuum", &["x"]).await;
    let offer = first.offer().await;
    first.refuse(&offer).await;
    site.record_when(offer.job, |record| record.counts.refusals == 1).await;
    site.pass(model::Millis(100)).await;
    let again = second.other(&[]).await;
    assert_eq!((again.job, again.attempt), (offer.job, 2));
    second.say(Ours::Complete(succeeded(&again))).await;
    let record = site.record_when(offer.job, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.counts.failures), (State::Succeeded, 0));
}

#[tokio::test]
async fn the_last_ten_runs_that_went_well_and_the_last_ten_that_did_not_outlive_a_restart() {
    let mut site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    for n in 0..24 {
        if n > 0 {
            site.detect_now("vacuum").await.unwrap();
        }
        let detect = worker.detect().await;
        // The first twelve fail: what goes well later pushes none of them out.
        let end = if n < 12 { v1::DetectionEnd::Failed } else { v1::DetectionEnd::Complete };
        worker.looked(&detect.run, end).await;
        site.until("it is over", async || {
            site.kind("vacuum").await.running.is_none().then_some(())
        })
        .await;
    }
    let runs = site.n_runs("vacuum", 20).await;
    let statuses: Vec<&str> = runs.iter().map(|run| run.status.as_str()).collect();
    assert_eq!(statuses, [["succeeded"; 10], ["failed"; 10]].concat());
    assert_eq!((runs[0].run.as_str(), runs[19].run.as_str()), ("default/24", "default/3"));
    drop(worker);
    site.stop().await;
    site.go().await;
    assert_eq!(site.runs("vacuum").await, runs);
    let due = site.kind("vacuum").await.next_due_ms;
    assert_eq!(due, Some(runs[0].started_ms + 600_000), "and when it is due is still known");
}
