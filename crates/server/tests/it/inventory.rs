//! Workers say which inputs they hold; jobs go where theirs are.

use model::{Millis, State};
use proto::v1;
use proto::v1::worker_message::Message as Ours;

use crate::puppet::{Puppet, succeeded};
use crate::site::{Site, hello, spec};

const MIB: u64 = 1 << 20;

fn reads(inputs: &[(&str, u64)]) -> v1::Spec {
    let input =
        |(digest, bytes): &(&str, u64)| v1::Input { digest: (*digest).to_owned(), bytes: *bytes };
    v1::Spec { inputs: inputs.iter().map(input).collect(), ..spec() }
}

async fn holder(site: &Site, name: &str, digests: &[&str]) -> Puppet {
    let puppet = site.worker_with(v1::Hello { has_inventory: true, ..hello(name) }).await;
    tell(&puppet, v1::Inventory { full: true, added: owned(digests), ..Default::default() }).await;
    puppet
}

async fn tell(puppet: &Puppet, inventory: v1::Inventory) {
    puppet.say(Ours::Inventory(inventory)).await;
}

fn owned(digests: &[&str]) -> Vec<String> {
    digests.iter().map(|digest| (*digest).to_owned()).collect()
}

/// What the world believes that a worker lacks of a job.
async fn missing(site: &Site, job: u64, worker: &str) -> (Option<u64>, Option<u64>) {
    let world = site.world().await;
    let jobs = world["jobs"].as_array().expect("it lists jobs");
    let id = job.to_string();
    let job = jobs.iter().find(|job| job["id"] == id).expect("the job waits");
    let inputs = &job["inputs"][worker];
    (inputs["missing_paths"].as_u64(), inputs["missing_bytes"].as_u64())
}

#[tokio::test]
async fn a_job_goes_to_the_worker_that_holds_its_inputs() {
    let site = Site::start().await;
    // By its name, the other would come first.
    let _empty = holder(&site, "w1", &[]).await;
    let mut full = holder(&site, "w2", &["a", "b"]).await;
    site.until("both are known", async || {
        (site.world().await["workers"].as_array()?.len() == 2).then_some(())
    })
    .await;
    let job = site.submit(reads(&[("a", 900 * MIB), ("b", 100 * MIB)])).await;
    assert_eq!(full.offer().await.job, job);
    let why = site.why(job).await.why_there;
    assert!(why.starts_with("on `w2`: score ") && why.contains("missing-bytes 500"), "{why}");
}

#[tokio::test]
async fn each_worker_takes_the_job_whose_inputs_it_holds() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Policy, "", "resource-aware").await;
    let mut first = holder(&site, "w1", &["a"]).await;
    let mut second = holder(&site, "w2", &["b"]).await;
    let jobs = [reads(&[("b", 900 * MIB)]), reads(&[("a", 900 * MIB)])];
    let jobs = site.submit_all(jobs.to_vec()).await;
    // The first that asks would get the first job.
    for (worker, job) in [(&mut first, jobs[1]), (&mut second, jobs[0])] {
        assert_eq!(worker.offer().await.job, job);
        let why = site.why(job).await.why_there;
        assert!(why.contains("missing-paths 200, missing-bytes 500"), "{why}");
    }
}

#[tokio::test]
async fn what_a_worker_lacks_follows_what_it_says() {
    let site = Site::start().await;
    // Nobody can run it, so that it stays to be looked at.
    let needs = [("gpu".to_owned(), v1::Values { values: vec!["a100".to_owned()] })].into();
    let job =
        site.submit(v1::Spec { needs, ..reads(&[("a", 10), ("b", 200), ("c", 3_000)]) }).await;
    let worker = site.worker_with(v1::Hello { has_inventory: true, ..hello("w") }).await;
    assert_eq!(missing(&site, job, "w").await, (None, None), "nothing is assumed");
    let page = v1::Inventory { full: true, more: true, added: owned(&["a"]), ..Default::default() };
    tell(&worker, page).await;
    site.turn().await;
    assert_eq!(missing(&site, job, "w").await, (None, None), "more of it follows");
    let steps = [
        (v1::Inventory { added: owned(&["b"]), ..Default::default() }, (1, 3_000)),
        (v1::Inventory { removed: owned(&["a"]), ..Default::default() }, (2, 3_010)),
        (v1::Inventory { full: true, added: owned(&["c"]), ..Default::default() }, (2, 210)),
    ];
    for (said, (paths, bytes)) in steps {
        tell(&worker, said).await;
        site.until("it is known", async || {
            (missing(&site, job, "w").await == (Some(paths), Some(bytes))).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_job_waits_some_rounds_for_word_about_its_inputs_and_no_longer() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Policy, "", "resource-aware").await;
    let mut worker = site.worker_with(v1::Hello { has_inventory: true, ..hello("w") }).await;
    let job = site.submit(reads(&[("a", MIB)])).await;
    for _ in 0..3 {
        site.pass(Millis::from_secs(5)).await;
        worker.beat(v1::Heartbeat::default()).await;
        assert_eq!(site.why(job).await.reason, "vetoed");
    }
    for _ in 0..2 {
        site.pass(Millis::from_secs(5)).await;
        worker.beat(v1::Heartbeat::default()).await;
    }
    assert_eq!(worker.offer().await.job, job);
}

#[tokio::test]
async fn word_about_its_inputs_ends_the_wait_of_a_job() {
    let site = Site::start().await;
    site.set(v1::SettingKind::Policy, "", "resource-aware").await;
    let mut worker = site.worker_with(v1::Hello { has_inventory: true, ..hello("w") }).await;
    let job = site.submit(reads(&[("a", MIB)])).await;
    site.turn().await;
    assert_eq!(site.why(job).await.reason, "vetoed");
    tell(&worker, v1::Inventory { full: true, ..Default::default() }).await;
    let offer = worker.offer().await;
    assert_eq!(offer.job, job);
    // What it had to fetch is what averages are made of.
    worker.accept(&offer).await;
    let (fetched_paths, fetched_bytes) = (Some(1), Some(MIB));
    worker
        .say(Ours::Complete(v1::Complete { fetched_paths, fetched_bytes, ..succeeded(&offer) }))
        .await;
    site.record_when(job, |record| record.state == State::Succeeded).await;
    site.pass(site.config.averages_every).await;
    let averages = &site.world().await["cluster"]["avg_1h"];
    assert_eq!((&averages["missing_paths"], &averages["missing_mib"]), (&1.into(), &1.into()));
}
