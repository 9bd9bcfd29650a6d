//! What a scheduler learns while it runs: hints, averages, usage, progress.

use model::{Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;
use serde_json::{Value, json};
use server::Config;

use crate::puppet::{attempt, succeeded};
use crate::site::{Site, hello, spec};

const MINUTE: Millis = Millis::from_secs(60);

/// A lease that no test outlives by moving the clock.
fn patient() -> Config {
    let lease = Millis::from_secs(100 * 3_600);
    Config { lease, usage_window: Millis::from_secs(3_600), ..Config::default() }
}

fn hinted(hint: &str) -> v1::Spec {
    v1::Spec { hint: hint.to_owned(), ..spec() }
}

async fn hints(site: &Site) -> Vec<String> {
    let hints = &site.world().await["workers"][0]["hints"];
    let hints = hints.as_array().cloned().unwrap_or_default();
    hints.iter().map(|hint| hint.as_str().expect("it is a name").to_owned()).collect()
}

#[tokio::test]
async fn a_worker_has_the_hints_of_its_last_successful_jobs_and_its_own() {
    let site = Site::with(Config { hints_learned: 2, ..Config::default() }).await;
    let mut worker =
        site.worker_with(v1::Hello { hints: vec!["own".to_owned()], ..hello("w") }).await;
    for hint in ["a", "b", "c"] {
        site.submit(hinted(hint)).await;
        worker.serve().await;
    }
    assert_eq!(hints(&site).await, ["b", "c", "own"]);
    // One that fails teaches nothing.
    site.submit(hinted("d")).await;
    let offer = worker.offer().await;
    let ending = v1::Ending::Permanent.into();
    worker.say(Ours::Complete(v1::Complete { ending, ..succeeded(&offer) })).await;
    worker.ack().await;
    assert_eq!(hints(&site).await, ["b", "c", "own"]);
    // The next job that wants one of them goes there, and says so.
    let _other = site.worker("a").await;
    let job = site.submit(hinted("c")).await;
    assert_eq!(worker.offer().await.job, job);
    let why = site.why(job).await.why_there;
    assert!(why.starts_with("on `w`") && why.contains("hint 300"), "{why}");
}

#[tokio::test]
async fn hints_are_of_ten_jobs_unless_it_is_set() {
    assert_eq!(Config::default().hints_learned, 10);
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    for n in 0..12 {
        site.submit(hinted(&format!("h{n:02}"))).await;
        worker.serve().await;
    }
    let learned: Vec<String> = (2..12).map(|n| format!("h{n:02}")).collect();
    assert_eq!(hints(&site).await, learned);
}

async fn wait_averages(site: &Site) -> Value {
    let cluster = site.world().await["cluster"].clone();
    let windows = ["avg_5m", "avg_1h", "avg_24h"];
    json!(windows.map(|window| cluster[window]["wait_s"].clone()))
}

#[tokio::test]
async fn averages_cover_five_minutes_an_hour_and_a_day_and_are_counted_when_it_is_time() {
    let every = Millis::from_secs(10);
    let site = Site::with(Config { averages_every: every, ..patient() }).await;
    // One job waits for 90 s, and one for 30 s two hours later.
    for (wait, pause) in [(90, 2 * 3_600), (30, 0)] {
        site.submit(spec()).await;
        site.pass(Millis::from_secs(wait)).await;
        let mut worker = site.worker(&format!("w{wait}")).await;
        worker.serve().await;
        worker.say(Ours::Goodbye(v1::Goodbye {})).await;
        site.pass(Millis::from_secs(pause)).await;
    }
    let before = wait_averages(&site).await;
    site.time.pass(Millis(every.0 - 1));
    site.turn().await;
    assert_eq!(wait_averages(&site).await, before, "it is not time yet");
    site.pass(Millis(1)).await;
    assert_eq!(wait_averages(&site).await, json!([30, 30, 60]));
    site.pass(Millis(6 * MINUTE.0)).await;
    assert_eq!(wait_averages(&site).await, json!([null, 30, 60]));
    site.pass(Millis(22 * 60 * MINUTE.0)).await;
    assert_eq!(wait_averages(&site).await, json!([null, null, 30]));
}

async fn used(site: &Site) -> (f64, u64) {
    let tenants = site.admin.clone().tenants(v1::TenantsRequest {}).await.expect("it answers");
    tenants.into_inner().tenants.first().map_or((0.0, 0), |tenant| (tenant.used, tenant.completed))
}

#[tokio::test]
async fn usage_ages_out_of_its_window_and_frees_the_budget() {
    let site = Site::with(patient()).await;
    site.set(v1::SettingKind::Tenant, "default", r#"{"budget": 3}"#).await;
    let mut worker = site.worker("w").await;
    let costly = |cost| v1::Spec { cost: Some(cost), ..spec() };
    site.submit(costly(2.0)).await;
    worker.serve().await;
    site.pass(Millis(30 * MINUTE.0)).await;
    worker.beat(v1::Heartbeat::default()).await;
    site.submit(costly(1.0)).await;
    worker.serve().await;
    assert_eq!(used(&site).await, (3.0, 2));
    let waiting = site.submit(costly(2.0)).await;
    site.turn().await;
    assert_eq!(site.why(waiting).await.reason, "budget-spent");
    // The first is forgiven an hour after it, the second is not.
    site.pass(Millis(31 * MINUTE.0 + 1)).await;
    worker.beat(v1::Heartbeat::default()).await;
    assert_eq!(worker.offer().await.job, waiting);
    assert_eq!(used(&site).await, (1.0, 1));
}

#[tokio::test]
async fn what_was_used_before_a_restart_is_counted_before_the_first_claim() {
    let mut site = Site::with(patient()).await;
    site.set(v1::SettingKind::Tenant, "default", r#"{"budget": 2}"#).await;
    let mut worker = site.worker("w").await;
    site.submit(v1::Spec { cost: Some(2.0), ..spec() }).await;
    worker.serve().await;
    let waiting = site.submit(spec()).await;
    site.stop().await;
    // What is asked after the start is not answered in time.
    site.go_holding("usage").await;
    let mut worker = site.worker("w").await;
    worker.beat(v1::Heartbeat::default()).await;
    site.turn().await;
    assert_eq!(site.record(waiting).await.counts.attempts, 0);
    assert_eq!(site.why(waiting).await.reason, "budget-spent");
}

#[tokio::test]
async fn progress_is_kept_and_told_to_those_who_watch() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    let job = site.submit(spec()).await;
    let request = v1::WatchRequest { ids: vec![job], filter: None };
    let mut watch = site.jobs.clone().watch(request).await.unwrap().into_inner();
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    let progress = v1::Progress { fraction: 0.5, note: "half".to_owned() };
    let (attempt, progress) = (Some(attempt(&offer)), Some(progress));
    let report = v1::ProgressReport { attempt, progress: progress.clone() };
    worker.say(Ours::Progress(report)).await;
    let told = async {
        loop {
            let response = watch.message().await.unwrap().expect("it goes on");
            if let Some(change) = response.changes.into_iter().find(|one| one.progress.is_some()) {
                return change;
            }
        }
    };
    let change = tokio::time::timeout(crate::site::PATIENCE, told).await.expect("it is told");
    assert_eq!((change.id, change.state()), (job, v1::State::Running));
    assert_eq!((change.worker.as_str(), &change.progress), ("w", &progress));
    let is_kept = |record: &model::Record| {
        let current = record.current.as_ref();
        current.and_then(|one| one.progress.as_ref()).is_some_and(|one| one.note == "half")
    };
    let record = site.record_when(job, is_kept).await;
    assert_eq!(record.state, State::Running);
}
