//! Jobs come in: whole, and not too much at once.

use model::maxima::SUBMISSION_BYTES_MAX;
use model::{JobId, State};
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use store::{Error, Store as _};
use tonic::Code;

use crate::puppet::{attempt, succeeded};
use crate::site::{PATIENCE, Site, hello, spec};

#[tokio::test]
async fn a_job_whose_submitter_went_away_before_the_answer_is_placed_all_the_same() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    site.store.hold("submit");
    let mut jobs = site.jobs.clone();
    let request = v1::SubmitRequest { jobs: vec![spec()], ..v1::SubmitRequest::default() };
    let mut asking = Box::pin(jobs.submit(request));
    let is_kept = site.until("the store has it", async || {
        site.store.job(JobId::number(1)).await.expect("the store answers")
    });
    let record = tokio::select! {
        record = is_kept => record,
        answer = asking.as_mut() => panic!("it was not to be answered yet: {answer:?}"),
    };
    assert!(matches!(record.state, State::Queued | State::Claimed), "{record:?}");
    drop(asking);
    // The scheduler has time to notice that nobody waits any more.
    site.turn().await;
    site.turn().await;
    site.store.let_go("submit");
    let offer = tokio::time::timeout(PATIENCE, worker.offer()).await.expect("it is placed");
    assert_eq!(offer.job, 1);
}

#[tokio::test]
async fn a_job_is_given_away_while_it_is_written_down() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    // The store has done it, and is slow to say so: its claim came along.
    site.store.hold("submit");
    let mut jobs = site.jobs.clone();
    let request = v1::SubmitRequest { jobs: vec![spec()], ..v1::SubmitRequest::default() };
    let mut asking = Box::pin(jobs.submit(request));
    let offer = tokio::select! {
        offer = worker.offer() => offer,
        answer = asking.as_mut() => panic!("it was not to be answered yet: {answer:?}"),
    };
    assert_eq!((offer.job, offer.attempt), (1, 1));
    // It may also end before anybody knows that the store has it.
    worker.accept(&offer).await;
    worker.say(Ours::Complete(succeeded(&offer))).await;
    assert!(!worker.ack().await.stale);
    site.store.let_go("submit");
    let answer = asking.await.expect("it is taken").into_inner();
    assert_eq!(answer.jobs[0].id, 1);
    let record = site.record_when(1, |record| record.state == State::Succeeded).await;
    assert_eq!(record.counts.attempts, 1);
    // Its slot is free once, and its worker hears of it no more.
    let id = site.submit(spec()).await;
    assert_eq!(worker.offer().await.job, id);
}

#[tokio::test]
async fn a_job_that_could_not_be_written_down_is_called_back() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    site.store.fail("submit", 1, Error::Full { doing: "take in jobs" });
    let request = v1::SubmitRequest { jobs: vec![spec()], ..v1::SubmitRequest::default() };
    site.jobs.clone().submit(request).await.expect_err("there is no room");
    let offer = worker.offer().await;
    let Theirs::Stop(stop) = worker.next().await.unwrap() else { panic!("it is not stopped") };
    assert_eq!((stop.attempt, stop.reason()), (Some(attempt(&offer)), v1::StopReason::Stale));
    // Whatever it says of it counts for nothing.
    worker.say(Ours::Complete(succeeded(&offer))).await;
    assert!(worker.ack().await.stale);
    // Its slot is free again, and its number is not.
    let id = site.submit(spec()).await;
    assert!(id > offer.job);
    assert_eq!(worker.offer().await.job, id);
    assert!(site.store.job(JobId::number(offer.job)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_job_that_may_come_again_is_given_to_nobody_before_it_is_written_down() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    site.store.fail("submit", 1, Error::Full { doing: "take in jobs" });
    let request = v1::SubmitRequest {
        jobs: vec![spec()],
        idempotency_key: "once".to_owned(),
        ..v1::SubmitRequest::default()
    };
    site.jobs.clone().submit(request).await.expect_err("there is no room");
    site.turn().await;
    assert_eq!(site.counter("claims_lost").await, 1);
    let id = site.submit(spec()).await;
    let offer = tokio::time::timeout(PATIENCE, worker.offer()).await.expect("it is placed");
    assert_eq!(offer.job, id);
    assert!(site.store.job(JobId::number(id - 1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_submission_that_comes_again_takes_no_slot() {
    let site = Site::start().await;
    let mut worker = site.worker_with(v1::Hello { slots: 2, ..hello("w") }).await;
    let request = v1::SubmitRequest {
        jobs: vec![spec()],
        idempotency_key: "once".to_owned(),
        ..v1::SubmitRequest::default()
    };
    let first = site.jobs.clone().submit(request.clone()).await.unwrap().into_inner();
    let again = site.jobs.clone().submit(request).await.unwrap().into_inner();
    assert_eq!(first.jobs[0].id, again.jobs[0].id);
    assert_eq!(worker.offer().await.job, first.jobs[0].id);
    // The room that the second was to have is there for another.
    let id = site.submit(spec()).await;
    assert_eq!(worker.offer().await.job, id);
}

#[tokio::test]
async fn a_small_request_cannot_make_a_large_submission() {
    let site = Site::start().await;
    let payload = vec![0; 100 << 10];
    let most = u32::try_from(SUBMISSION_BYTES_MAX / payload.len()).unwrap();
    let array = |n| v1::SubmitRequest {
        jobs: vec![v1::Spec { payload: payload.clone(), ..spec() }],
        array: n,
        ..v1::SubmitRequest::default()
    };
    let refused = site.jobs.clone().submit(array(most + 1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let told = refused.message();
    assert!(
        told.contains("`jobs` have") && told.contains("`submission_bytes_max` = 16777216"),
        "{told}"
    );
    let taken = site.jobs.clone().submit(array(most - 1)).await.unwrap().into_inner();
    assert_eq!(taken.jobs.len(), usize::try_from(most - 1).unwrap());
}

fn after(indexes: &[u32]) -> v1::Spec {
    v1::Spec { after_indexes: indexes.to_vec(), ..spec() }
}

#[tokio::test]
async fn a_cycle_of_dependencies_is_refused_and_its_jobs_are_named() {
    let site = Site::start().await;
    let refused = async |jobs| {
        let request = v1::SubmitRequest { jobs, ..v1::SubmitRequest::default() };
        let status = site.jobs.clone().submit(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    assert_eq!(
        refused(vec![spec(), after(&[0, 3]), after(&[1]), after(&[0, 2])]).await,
        "`jobs[1].after_indexes` makes a cycle, in which no job could ever start: jobs[1] waits \
         for jobs[3], jobs[3] waits for jobs[2], jobs[2] waits for jobs[1]"
    );
    assert_eq!(
        refused(vec![after(&[0])]).await,
        "`jobs[0].after_indexes` makes a cycle, in which no job could ever start: jobs[0] waits \
         for jobs[0]"
    );
    // What is no cycle says what is wrong with it.
    let told = refused(vec![after(&[1]), spec()]).await;
    assert!(told.contains("has 1, which is not before 0"), "{told}");
    let told = refused(vec![spec(), after(&[9])]).await;
    assert!(told.contains("has 9, which is not before 1"), "{told}");
    // Many ways to one job are no cycle, and nothing of what was refused is there.
    let ids = site.submit_all(vec![spec(), after(&[0]), after(&[0]), after(&[1, 2, 0])]).await;
    assert_eq!(ids, [1, 2, 3, 4]);
}

#[tokio::test]
async fn whoever_cannot_be_served_now_is_told_how_soon_to_ask_again() {
    let site = Site::start().await;
    let error = Error::Unavailable { doing: "take in jobs", cause: "a test".to_owned() };
    site.store.fail("submit", 1, error);
    let request = v1::SubmitRequest { jobs: vec![spec()], ..v1::SubmitRequest::default() };
    let told = site.jobs.clone().submit(request).await.expect_err("the store fails");
    assert_eq!(told.code(), Code::Unavailable);
    let after = told.metadata().get("retry-after");
    assert_eq!(after.map(tonic::metadata::MetadataValue::as_bytes), Some(&b"1"[..]));
    // The number of the one that failed is nobody's.
    assert_eq!(site.submit(spec()).await, 2);
}
