//! What a scheduler knows after a restart, before its workers are back.

use proto::v1;

use crate::puppet::having;
use crate::site::{Site, hello, spec};

#[tokio::test]
async fn what_runs_in_a_pool_counts_there_before_its_worker_is_back() {
    let mut site = Site::start().await;
    let quota = r#"{"quotas": [{"pool": "gpu", "max": 1}]}"#;
    site.set(v1::SettingKind::Tenant, "default", quota).await;
    let in_gpu = |name| v1::Hello { pool: "gpu".to_owned(), ..hello(name) };
    let mut first = site.worker_with(in_gpu("w1")).await;
    // Neither job says which pool it belongs to.
    let jobs = site.submit_all(vec![spec(); 2]).await;
    let offer = first.offer().await;
    first.accept(&offer).await;
    first.beat(having(&[&offer])).await;
    site.stop().await;
    site.go().await;
    let mut second = site.worker_with(in_gpu("w2")).await;
    second.beat(v1::Heartbeat::default()).await;
    site.turn().await;
    assert_eq!(site.why(jobs[1]).await.reason, "tenant-at-max");
}
