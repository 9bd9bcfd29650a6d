//! Attempts that nobody heard of are given up.

use model::{Cause, Ending, Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;
use server::Config;

use crate::puppet::{Puppet, attempt, having};
use crate::site::{Site, hello, spec};

const MINUTE: Millis = Millis::from_secs(60);

async fn minutes(site: &Site, worker: &mut Puppet, offer: &v1::Offer, n: usize) {
    for _ in 0..n {
        site.pass(MINUTE).await;
        worker.beat(having(&[offer])).await;
        site.turn().await;
    }
}

async fn progress(worker: &Puppet, offer: &v1::Offer, fraction: f64) {
    let (attempt, note) = (Some(attempt(offer)), "copying".to_owned());
    let progress = Some(v1::Progress { fraction, note, ..v1::Progress::default() });
    worker.say(Ours::Progress(v1::ProgressReport { attempt, progress })).await;
}

#[tokio::test]
async fn an_attempt_of_a_detected_type_without_progress_is_given_up() {
    let lease = Millis::from_secs(300);
    let stale_progress = Millis::from_secs(3_600);
    let site = Site::with(Config { lease, stale_progress, ..Config::default() }).await;
    let kind = v1::WorkerType { name: "t".to_owned(), detect_max: 1, ..v1::WorkerType::default() };
    let mut worker = site.worker_with(v1::Hello { types: vec![kind], ..hello("w") }).await;
    let (r#type, json) = ("t".to_owned(), r#"{"policy": {"enabled": false}}"#.to_owned());
    worker.say(Ours::Described(v1::Described { r#type, json })).await;
    let retry = Some(v1::Retry { attempts_max: 2, backoff_ms: 1, backoff_ms_max: 1 });
    let id = site.submit(v1::Spec { retry, ..spec() }).await;
    let first = worker.offer().await;
    worker.accept(&first).await;
    minutes(&site, &mut worker, &first, 50).await;
    progress(&worker, &first, 0.5).await;
    worker.beat(having(&[&first])).await;
    minutes(&site, &mut worker, &first, 50).await;
    assert_eq!(site.record(id).await.state, State::Running, "it said something in between");
    minutes(&site, &mut worker, &first, 14).await;
    // It follows its retry policy, and has one try left.
    let second = worker.offer().await;
    assert_eq!((second.job, second.attempt), (id, 2));
    let pasts = site.past(id).await;
    assert_eq!(pasts[0].ending, Ending::Stale);
    assert_eq!(pasts[0].error.as_deref(), Some("no progress for 1h"));
    worker.accept(&second).await;
    minutes(&site, &mut worker, &second, 64).await;
    let record = site.record_when(id, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.cause), (State::Failed, Some(Cause::Stale)));
    assert_eq!(site.counter("stale").await, 2);
}

#[tokio::test]
async fn an_attempt_of_another_type_may_be_silent() {
    let lease = Millis::from_secs(300);
    let stale_progress = Millis::from_secs(600);
    let site = Site::with(Config { lease, stale_progress, ..Config::default() }).await;
    let mut worker = site.worker("w").await;
    let id = site.submit(spec()).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    minutes(&site, &mut worker, &offer, 20).await;
    assert_eq!(site.record(id).await.state, State::Running);
}

#[tokio::test]
async fn a_worker_that_is_not_heard_of_loses_its_attempts_however_long_its_lease() {
    let config = Config {
        lease: Millis::from_secs(3_600),
        stale_heartbeat: Millis::from_secs(900),
        ..Config::default()
    };
    let site = Site::with(config).await;
    let mut worker = site.worker("w").await;
    let retry = Some(v1::Retry { attempts_max: 1, ..v1::Retry::default() });
    let id = site.submit(v1::Spec { retry, ..spec() }).await;
    let offer = worker.offer().await;
    worker.accept(&offer).await;
    worker.beat(having(&[&offer])).await;
    for _ in 0..14 {
        site.pass(MINUTE).await;
    }
    assert_eq!(site.record(id).await.state, State::Running);
    site.pass(MINUTE).await;
    site.pass(MINUTE).await;
    let record = site.record_when(id, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.cause), (State::Failed, Some(Cause::Stale)));
    assert_eq!(record.error.as_deref(), Some("no heartbeat of worker `w` for 15m"));
}
