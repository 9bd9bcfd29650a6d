//! What a scheduler learns while it runs: hints, averages, usage, progress.

use model::{Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;
use serde_json::{Value, json};
use server::Config;

use crate::puppet::{Puppet, attempt, succeeded};
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

#[tokio::test]
async fn hints_outlive_the_scheduler() {
    let mut site = Site::with(Config { hints_learned: 2, ..Config::default() }).await;
    let mut worker = site.worker("w").await;
    for hint in ["a", "b", "c"] {
        site.submit(hinted(hint)).await;
        worker.serve().await;
    }
    site.stop().await;
    site.go().await;
    let mut worker = site.worker("w").await;
    assert_eq!(hints(&site).await, ["b", "c"]);
    // The next one takes the place of the oldest.
    site.submit(hinted("d")).await;
    worker.serve().await;
    assert_eq!(hints(&site).await, ["c", "d"]);
}

/// Does the next job, having used so much memory.
async fn serve_using(worker: &mut Puppet, ram_peak_mb: u64) {
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    let measured = v1::Measured {
        ram_peak_mb: Some(ram_peak_mb),
        cpu_ms: Some(10 * ram_peak_mb),
        disk_bytes: Some(7),
        out_of_memory: ram_peak_mb == 2_000,
    };
    worker
        .say(Ours::Complete(v1::Complete { measured: Some(measured), ..succeeded(&offer) }))
        .await;
    worker.ack().await;
}

#[tokio::test]
async fn what_runs_of_a_key_used_is_expected_of_the_next_and_decides_where_it_goes() {
    let mut site = Site::start().await;
    let of_key = |key: &str| v1::Spec { history_key: key.to_owned(), ..spec() };
    let mut worker = site.worker("w").await;
    // Nineteen of twenty use no more than 900 MB: that is what 95 of 100 do not exceed.
    for ram in [100; 18].into_iter().chain([900, 2_000]) {
        site.submit(of_key("big")).await;
        serve_using(&mut worker, ram).await;
    }
    site.submit(of_key("small")).await;
    serve_using(&mut worker, 10).await;
    worker.say(Ours::Goodbye(v1::Goodbye {})).await;
    // What was learned is known after a restart.
    site.stop().await;
    site.go().await;
    site.set(v1::SettingKind::Policy, "", "resource-aware").await;
    let mut narrow = site.worker_with(v1::Hello { slots: 2, ..hello("narrow") }).await;
    narrow.beat(free_ram(100)).await;
    let jobs = site.submit_all(vec![of_key("big"), of_key("new")]).await;
    // It has room for both, but not the memory: the job without a past goes there, the other waits.
    assert_eq!(narrow.offer().await.job, jobs[1]);
    let told = site.why(jobs[0]).await;
    assert_eq!(told.reason, "below-zero", "{told:?}");
    assert!(told.detail.contains("more memory helps"), "{told:?}");
    let world = site.world().await;
    let history = &world["jobs"][0]["history"];
    assert_eq!((&history["samples"], &history["ram_peak_mb"]), (&json!(20), &json!(900)));
    assert_eq!((&history["cpu_ms"], &history["disk_bytes"]), (&json!(2_350), &json!(7)));
    assert_eq!(history["oom_rate"], json!(0.05));
    let mut wide = site.worker_with(hello("wide")).await;
    assert_eq!(wide.offer().await.job, jobs[0]);
}

#[tokio::test]
async fn skill_of_predictions_is_measured_by_type_and_claims_alone_make_no_job_shorter() {
    let site = Site::with(patient()).await;
    let mut worker = site.worker("w").await;
    let of_key = |key: &str| v1::Spec { history_key: key.to_owned(), ..spec() };
    for n in 0..60 {
        let (key, length) = if n % 2 == 0 { ("short", 2) } else { ("long", 200) };
        site.submit(of_key(key)).await;
        let offer = worker.offer().await;
        worker.accept(&offer).await;
        site.pass(Millis::from_secs(length)).await;
        worker.say(Ours::Complete(succeeded(&offer))).await;
        worker.ack().await;
        worker.beat(v1::Heartbeat::default()).await;
    }
    let metrics = site.metrics().await;
    let of_type = |name: &str| metrics[&format!("{name}{{type=\"t\"}}")];
    assert!((of_type("maitre_predictions_judged_total") - 52.0).abs() < 0.5, "{metrics:#?}");
    assert!(of_type("maitre_prediction_skill") > 0.5, "{metrics:#?}");
    let request = v1::TypeRequest { r#type: "t".to_owned() };
    let told = site.detection.clone().r#type(request).await.expect("it ran").into_inner();
    let known = told.prediction.expect("it was predicted");
    assert!(known.skill_thousandths > 500 && known.judged == 52, "{known:?}");
    assert!((2_000..200_000).contains(&known.typical_ms), "{known:?}");
    // Nothing is placed while no worker is there.
    worker.say(Ours::Goodbye(v1::Goodbye {})).await;
    let lie = |key| v1::Spec { estimate_ms: Some(1), ..of_key(key) };
    site.submit_all(vec![of_key("long"), lie("long"), of_key("short")]).await;
    site.turn().await;
    let jobs = site.world().await["jobs"].clone();
    let [long, lie, short] = [0, 1, 2].map(|n| jobs[n]["estimate_s"].as_f64().expect("known"));
    assert!((long - lie).abs() < 0.001 && long > 20.0 * short, "{long} {lie} {short}");
}

fn free_ram(ram_free_mb: u64) -> v1::Heartbeat {
    let metrics = v1::Metrics {
        ram_free_mb: Some(ram_free_mb),
        ram_total_mb: Some(ram_free_mb),
        ..v1::Metrics::default()
    };
    v1::Heartbeat { metrics: Some(metrics), ..v1::Heartbeat::default() }
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
async fn what_jobs_cost_counts_for_its_window_though_they_are_forgotten() {
    let mut site = Site::with(Config { retention: MINUTE, ..patient() }).await;
    site.set(v1::SettingKind::Tenant, "default", r#"{"budget": 2}"#).await;
    let mut worker = site.worker("w").await;
    let done = site.submit(v1::Spec { cost: Some(2.0), ..spec() }).await;
    worker.serve().await;
    site.pass(Millis(10 * MINUTE.0)).await;
    site.until("it is forgotten", async || {
        site.jobs.clone().get(v1::GetRequest { id: done }).await.is_err().then_some(())
    })
    .await;
    let waiting = site.submit(spec()).await;
    // All that is known is what the store still has.
    site.stop().await;
    site.go().await;
    let mut worker = site.worker("w").await;
    worker.beat(v1::Heartbeat::default()).await;
    site.turn().await;
    assert_eq!(site.why(waiting).await.reason, "budget-spent");
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
    let progress =
        v1::Progress { fraction: 0.5, note: "half".to_owned(), ..v1::Progress::default() };
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

#[tokio::test]
async fn a_start_waits_to_be_written_down_but_not_behind_what_comes_after_it() {
    let start_pause = Millis::from_secs(1);
    let site = Site::sealed(Config { start_pause, ..Config::default() }, "").await;
    let mut worker = site.worker_with(v1::Hello { slots: 2, ..hello("w") }).await;
    let mut offers = Vec::new();
    for _ in 0..2 {
        site.submit(spec()).await;
        let offer = worker.offer().await;
        worker.accept(&offer).await;
        offers.push(offer);
    }
    site.turn().await;
    for offer in &offers {
        assert_eq!(site.record(offer.job).await.state, State::Claimed);
    }
    let progress = Some(v1::Progress { fraction: 0.5, ..v1::Progress::default() });
    let report = v1::ProgressReport { attempt: Some(attempt(&offers[0])), progress };
    worker.say(Ours::Progress(report)).await;
    let is_told = |record: &model::Record| {
        record.current.as_ref().is_some_and(|current| current.progress.is_some())
    };
    let record = site.record_when(offers[0].job, is_told).await;
    assert_eq!(record.state, State::Running);

    site.submit(spec()).await;
    worker.say(Ours::Complete(succeeded(&offers[0]))).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.turn().await;
    assert_eq!(site.record(offer.job).await.state, State::Claimed);
    site.pass(start_pause).await;
    site.record_when(offer.job, |record| record.state == State::Running).await;
}

#[tokio::test]
async fn what_changes_do_not_say_cannot_be_watched_for() {
    let site = Site::start().await;
    let refused = async |filter| {
        let request = v1::WatchRequest { filter: Some(filter), ids: Vec::new() };
        site.jobs.clone().watch(request).await.map(|_| ()).unwrap_err().message().to_owned()
    };
    let group = v1::JobFilter { group: "g".to_owned(), ..v1::JobFilter::default() };
    let told = refused(group).await;
    assert!(told.starts_with("`filter.group` cannot be watched for; list such jobs"), "{told}");
    let told = refused(v1::JobFilter { parent: 1, ..v1::JobFilter::default() }).await;
    assert!(told.starts_with("`filter.parent` "), "{told}");
}
