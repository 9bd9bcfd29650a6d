//! What would become of jobs, when they may start, and how much there is to do.

use model::Millis;
use proto::v1;
use server::Config;

use crate::puppet::{Puppet, having};
use crate::site::{Site, hello, spec};

/// A scheduler whose leases no test outlives by moving the clock.
async fn patient() -> Site {
    Site::with(Config { lease: Millis::from_secs(360_000), ..Config::default() }).await
}

async fn dry_run(site: &Site, job: v1::Spec, array: u32) -> Vec<v1::Foreseen> {
    let request = v1::SubmitRequest { jobs: vec![job], array, ..v1::SubmitRequest::default() };
    site.jobs.clone().dry_run(request).await.expect("it answers").into_inner().jobs
}

/// Takes the next job and does it in ten seconds.
async fn serve_slowly(site: &Site, worker: &mut Puppet) {
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    worker.beat(having(&[&offer])).await;
    site.pass(Millis::from_secs(10)).await;
    worker.beat(having(&[&offer])).await;
    let done = crate::puppet::succeeded(&offer);
    worker.say(v1::worker_message::Message::Complete(done)).await;
    worker.ack().await;
}

#[tokio::test]
async fn a_dry_run_says_where_jobs_would_go_and_keeps_nothing() {
    let site = patient().await;
    let gpu = v1::Values { values: vec!["a100".to_owned()] };
    let needy = v1::Spec { needs: [("gpu".to_owned(), gpu.clone())].into(), ..spec() };
    let told = dry_run(&site, needy.clone(), 0).await;
    assert_eq!((told[0].worker.as_str(), told[0].reason.as_str()), ("", "no-worker-ever"));
    let has = [("gpu".to_owned(), gpu)].into();
    let mut worker = site.worker_with(v1::Hello { slots: 2, has, ..hello("w") }).await;
    // As many as there is room for; the others wait for it.
    let told = dry_run(&site, needy, 3).await;
    assert_eq!([&*told[0].worker, &*told[1].worker, &*told[2].worker], ["w", "w", ""]);
    assert!(told[0].why_there.starts_with("score "), "{told:?}");
    assert_eq!((told[2].reason.as_str(), told[2].ahead), ("workers-full", Some(0)));
    // Nothing is kept, and what is submitted afterwards is the first job.
    let job = site.submit(spec()).await;
    assert_eq!((job, worker.offer().await.job), (1, 1));
    let told = dry_run(&site, v1::Spec { after: vec![job], ..spec() }, 0).await;
    assert_eq!(told[0].reason, "not-ready");
    let told = dry_run(&site, v1::Spec { on_hold: true, ..spec() }, 0).await;
    assert_eq!(told[0].reason, "on-hold");
    // What would be refused is refused.
    let wrong = v1::Spec { after: vec![99], ..spec() };
    let request = v1::SubmitRequest { jobs: vec![wrong], ..v1::SubmitRequest::default() };
    let refused = site.jobs.clone().dry_run(request).await.unwrap_err();
    assert_eq!(refused.message(), "job 99 of `after` does not exist");
}

#[tokio::test]
async fn a_start_is_estimated_from_what_jobs_took() {
    let site = patient().await;
    let mut worker = site.worker("w").await;
    site.submit(spec()).await;
    let waiting = site.submit(spec()).await;
    site.turn().await;
    let told = site.why(waiting).await;
    assert_eq!((told.reason.as_str(), told.starts_in_ms), ("workers-full", None), "no past yet");
    for _ in 0..2 {
        serve_slowly(&site, &mut worker).await;
    }
    let jobs = site.submit_all(vec![spec(); 4]).await;
    worker.offer().await;
    let told = site.why(jobs[3]).await;
    assert_eq!((told.reason.as_str(), told.ahead), ("workers-full", Some(2)));
    let estimate = told.starts_in_ms.expect("there is a past");
    assert!((30_000..31_000).contains(&estimate), "{estimate}");
    assert!(told.estimate_basis.starts_with("2 jobs before it, 1 slot that fit"), "{told:?}");
    // A second worker halves it.
    let _other = site.worker_with(v1::Hello { types: types(&["t"]), ..hello("x") }).await;
    site.worker_with(v1::Hello { types: types(&["other"]), ..hello("y") }).await;
    let told = dry_run(&site, spec(), 0).await;
    assert!(told[0].estimate_basis.contains("2 slots that fit"), "{told:?}");
    // One that is to wait says until when.
    let now_ms = site.record(jobs[3]).await.created.0;
    let later = v1::Spec { not_before_ms: Some(now_ms + 5_000), ..spec() };
    let later = site.submit(later).await;
    let told = site.why(later).await;
    assert_eq!((told.reason.as_str(), told.starts_in_ms), ("not-before", Some(5_000)));
}

fn types(names: &[&str]) -> Vec<v1::WorkerType> {
    let kind =
        |name: &&str| v1::WorkerType { name: (*name).to_owned(), ..v1::WorkerType::default() };
    names.iter().map(kind).collect()
}

#[tokio::test]
async fn the_load_says_how_much_waits_and_what_waits_longest() {
    let site = patient().await;
    let hello = |name, pool: &str| v1::Hello { slots: 2, pool: pool.to_owned(), ..hello(name) };
    let mut worker = site.worker_with(hello("w", "default")).await;
    let _gpu = site.worker_with(hello("g", "gpu")).await;
    let in_default = || v1::Spec { pool: "default".to_owned(), slots: 2, ..spec() };
    let jobs = site.submit_all(vec![in_default(); 5]).await;
    for _ in 0..2 {
        serve_slowly(&site, &mut worker).await;
    }
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    // Averages are taken every half minute, and with them how many wait.
    site.pass(Millis::from_secs(60)).await;
    worker.beat(having(&[&offer])).await;
    let load = site.admin.clone().load(v1::LoadRequest {}).await.unwrap().into_inner();
    assert_eq!((load.queued, load.running), (2, 1));
    let waits = load.waits.unwrap();
    assert_eq!((waits.n, waits.p50_ms.unwrap() / 1_000, waits.p99_ms.unwrap() / 1_000), (2, 0, 10));
    assert_eq!(load.minutes.iter().map(|minute| minute.ended).sum::<u64>(), 2);
    assert_eq!(load.minutes.last().unwrap().queued, Some(2));
    let pool = |at: usize| (load.pools[at].pool.as_str(), load.pools[at].slots_used);
    assert_eq!((pool(0), pool(1)), (("default", 2), ("gpu", 0)));
    assert_eq!((load.pools[0].slots, load.pools[0].workers), (2, 1));
    let slowest: Vec<(u64, &str, u64)> =
        load.slowest.iter().map(|one| (one.id, one.reason.as_str(), one.alike)).collect();
    assert_eq!(slowest, [(jobs[3], "workers-full", 1)]);
}

#[tokio::test]
async fn types_are_counted_with_who_takes_them_and_what_they_took() {
    let site = patient().await;
    let of = |kind: &str| v1::Spec { r#type: kind.to_owned(), ..spec() };
    let mut worker = site.worker_with(v1::Hello { types: types(&["pdf"]), ..hello("w") }).await;
    site.submit_all(vec![of("pdf"), of("pdf"), of("train"), of("train")]).await;
    serve_slowly(&site, &mut worker).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    site.set(v1::SettingKind::Type, "rest", r#"{"jobs_max": 3}"#).await;
    let types = site.admin.clone().types(v1::TypesRequest {}).await.unwrap().into_inner().types;
    let shown: Vec<(&str, u64, u64, u32)> =
        types.iter().map(|one| (&*one.name, one.queued, one.running, one.workers)).collect();
    assert_eq!(shown, [("pdf", 0, 1, 1), ("rest", 0, 0, 0), ("train", 2, 0, 0)]);
    assert_eq!((types[0].samples, types[0].duration_ms.unwrap() / 1_000), (1, 10));
    assert_eq!(types[1].json, r#"{"jobs_max": 3}"#);
}
