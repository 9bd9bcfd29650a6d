//! What the passing of time brings about for jobs, and what an operator closes meanwhile.

use model::{Millis, State};
use proto::v1;
use server::Config;
use tonic::Code;

use crate::site::{Site, spec};

#[tokio::test]
async fn a_job_that_asked_to_wait_starts_at_its_moment_and_not_before() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let at = site.time.now() + Millis(1_000);
    let job = site.submit(v1::Spec { not_before_ms: Some(at.0), ..spec() }).await;
    site.pass(Millis(999)).await;
    assert_eq!(site.why(job).await.reason, "not-before");
    site.pass(Millis(1)).await;
    assert_eq!(worker.offer().await.job, job);
}

#[tokio::test]
async fn a_job_that_finished_is_kept_for_its_time_and_then_forgotten() {
    let (lease, retention) = (Millis::from_secs(1_000), Millis::from_secs(300));
    let site = Site::with(Config { lease, retention, ..Config::default() }).await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    worker.serve().await;
    site.pass(Millis::from_secs(299)).await;
    assert_eq!(site.record(job).await.state, State::Succeeded);
    site.pass(Millis::from_secs(61)).await;
    let gone = site.jobs.clone().get(v1::GetRequest { id: job }).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test]
async fn a_pool_that_is_paused_takes_no_work_until_it_is_opened() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    site.set(v1::SettingKind::Pool, "default", r#"{"paused": true}"#).await;
    let job = site.submit(spec()).await;
    site.turn().await;
    assert_eq!(site.why(job).await.reason, "pool-paused");
    site.set(v1::SettingKind::Pool, "default", r#"{"paused": false}"#).await;
    assert_eq!(worker.offer().await.job, job);
}
