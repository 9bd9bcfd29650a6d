//! Offers: how large, and what becomes of those that nobody takes.

use model::{Cause, Millis, State};
use prost::Message as _;
use proto::v1;

use crate::puppet::{attempt, having};
use crate::site::{Site, hello, spec};

#[tokio::test]
async fn no_batch_for_a_worker_is_larger_than_a_mebibyte() {
    let site = Site::start().await;
    let mut worker = site.worker_with(v1::Hello { slots: 8, ..hello("w") }).await;
    let large = v1::Spec { payload: vec![7; 250 << 10], ..spec() };
    site.submit_all(vec![large; 8]).await;
    for _ in 0..8 {
        worker.offer().await;
    }
    let sizes: Vec<usize> = worker.batches.iter().map(v1::ServerBatch::encoded_len).collect();
    // A few bytes for each message come on top.
    assert!(sizes.iter().all(|size| *size <= (1 << 20) + 1_000), "{sizes:?}");
    assert!(sizes.len() <= 4, "offers share batches: {sizes:?}");
}

#[tokio::test]
async fn a_job_that_kills_workers_before_they_take_it_up_is_parked_too() {
    let site = Site::start().await;
    let job = site.submit(spec()).await;
    for n in 1..=3 {
        let instance = format!("life-{n}");
        let mut worker = site.worker_with(v1::Hello { instance, ..hello("w") }).await;
        assert_eq!(worker.offer().await.attempt, n);
        // It dies: another process of its name comes without the job.
        drop(worker);
        site.until("its stream has ended", async || {
            let workers = site.admin.clone().workers(v1::WorkersRequest {}).await.unwrap();
            (!workers.into_inner().workers[0].connected).then_some(())
        })
        .await;
    }
    let instance = "life-4".to_owned();
    let _worker = site.worker_with(v1::Hello { instance, ..hello("w") }).await;
    let record = site.record_when(job, |record| record.state == State::Failed).await;
    assert_eq!((record.cause, record.counts.losses), (Some(Cause::Poison), 3));
}

#[tokio::test]
async fn a_job_that_is_refused_again_and_again_waits_longer_each_time() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let mut waits = Vec::new();
    for n in 1..=5 {
        let offer = worker.offer().await;
        worker.refuse(&offer).await;
        let record = site.record_when(job, |record| record.counts.refusals == n).await;
        let wait = record.backoff_until.expect("it waits").since(site.time.now());
        waits.push(wait.0);
        // Not a moment sooner.
        site.pass(Millis(wait.0 - 1)).await;
        assert_eq!(site.record(job).await.counts.attempts, n);
        worker.beat(v1::Heartbeat::default()).await;
        site.pass(Millis(1)).await;
    }
    assert_eq!(waits, [100, 200, 400, 800, 1_600]);
    assert_eq!(site.record(job).await.counts.failures, 0);
}

#[tokio::test]
async fn an_offer_that_nobody_answers_is_taken_back_after_two_leases() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let offer = worker.offer().await;
    // It lives, and says nothing of the job.
    let lease = site.config.lease;
    for _ in 0..10 {
        assert_eq!(site.record(job).await.counts.refusals, 0);
        site.pass(Millis(lease.0 / 5)).await;
        worker.beat(v1::Heartbeat::default()).await;
    }
    let record = site.record_when(job, |record| record.counts.refusals == 1).await;
    assert_eq!((record.counts.losses, record.counts.failures), (0, 0));
    // Others, or the same, may have it; the first offer counts no more.
    site.pass(Millis(100)).await;
    let again = worker.offer().await;
    assert_eq!((again.job, again.attempt), (job, offer.attempt + 1));
    worker.accept(&offer).await;
    worker.beat(having(&[&again])).await;
    assert_eq!(site.counter("stale_words").await, 1);
    assert_ne!(attempt(&offer), attempt(&again));
}

#[tokio::test]
async fn a_job_that_came_too_late_is_given_up_also_if_the_store_fails_first() {
    let site = Site::start().await;
    let at = site.time.now() + Millis(500);
    let job = site.submit(v1::Spec { start_before_ms: Some(at.0), ..spec() }).await;
    let error = store::Error::Unavailable { doing: "give up", cause: "a test".to_owned() };
    site.store.fail("give_up", 1, error);
    site.pass(Millis(500)).await;
    site.until("the store failed", async || {
        (site.counter("store_errors").await == 1).then_some(())
    })
    .await;
    assert_eq!(site.record(job).await.state, State::Queued);
    // The store is left alone for a moment.
    site.pass(Millis(250)).await;
    let record = site.record_when(job, |record| record.state == State::Failed).await;
    assert_eq!(record.cause, Some(Cause::TooLate));
}
