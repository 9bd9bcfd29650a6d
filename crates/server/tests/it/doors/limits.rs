//! At a limit, what is asked is refused by its name, and nothing of it is done.

use std::collections::BTreeSet;

use model::maxima::PAYLOAD_BYTES_MAX;
use proto::v1;
use proto::v1::jobs_client::JobsClient;
use serde_json::json;
use server::{Config, Limits};
use tonic::{Code, Status};

use crate::puppet::Puppet;
use crate::site::{Site, hello, spec};

async fn with(limits: Limits) -> Site {
    Site::with(Config { limits, ..Config::default() }).await
}

fn many(n: usize) -> v1::SubmitRequest {
    v1::SubmitRequest { jobs: vec![spec(); n], ..v1::SubmitRequest::default() }
}

async fn submit(site: &Site, request: v1::SubmitRequest) -> Result<usize, Status> {
    Ok(site.jobs.clone().submit(request).await?.into_inner().jobs.len())
}

/// It is refused for this limit, and there are as many jobs as before.
async fn assert_refused(site: &Site, request: v1::SubmitRequest, limit: &str) {
    let list = || async {
        let listed = site.jobs.clone().list(v1::ListRequest::default()).await;
        listed.expect("it answers").into_inner().jobs.len()
    };
    let before = list().await;
    let refused = submit(site, request).await.expect_err(limit);
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains(limit), "{refused:?}");
    assert!(refused.message().contains("hint: "), "{refused:?}");
    assert_eq!(list().await, before);
}

#[tokio::test]
async fn a_tenant_and_all_together_can_have_too_many_jobs() {
    let site = with(Limits { tenant_jobs_max: 3, jobs_max: 5, ..Limits::DEFAULT }).await;
    let of = |tenant: &str, n| v1::SubmitRequest {
        jobs: vec![v1::Spec { tenant: tenant.to_owned(), ..spec() }; n],
        ..v1::SubmitRequest::default()
    };
    assert_eq!(submit(&site, of("a", 3)).await.unwrap(), 3);
    assert_refused(&site, of("a", 1), "`tenant_jobs_max` = 3").await;
    assert_refused(&site, of("b", 3), "`jobs_max` = 5").await;
    assert_eq!(submit(&site, of("b", 2)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_submission_can_be_too_large_in_every_way() {
    let limits = Limits {
        submission_max: 4,
        array_max: 6,
        payload_bytes_max: 100,
        submission_bytes_max: 400,
        ..Limits::DEFAULT
    };
    let site = with(limits).await;
    let payload = |n| v1::SubmitRequest {
        jobs: vec![v1::Spec { payload: vec![7; n], ..spec() }],
        ..v1::SubmitRequest::default()
    };
    assert_eq!(submit(&site, many(4)).await.unwrap(), 4);
    assert_refused(&site, many(5), "`submission_max` = 4").await;
    assert_eq!(submit(&site, v1::SubmitRequest { array: 6, ..many(1) }).await.unwrap(), 6);
    let array = v1::SubmitRequest { array: 7, ..many(1) };
    assert_refused(&site, array, "`array_max` = 6").await;
    assert_eq!(submit(&site, payload(100)).await.unwrap(), 1);
    assert_refused(&site, payload(101), "`payload_bytes_max` = 100").await;
    let array = v1::SubmitRequest { array: 4, ..payload(100) };
    assert_refused(&site, array, "`submission_bytes_max` = 400").await;
}

#[tokio::test]
async fn a_message_can_be_too_large() {
    let limits = Limits { message_bytes_max: 1_000, ..Limits::DEFAULT };
    let site = with(limits).await;
    let payload = |n| v1::SubmitRequest {
        jobs: vec![v1::Spec { payload: vec![7; n], ..spec() }],
        ..v1::SubmitRequest::default()
    };
    assert_eq!(submit(&site, payload(900)).await.unwrap(), 1);
    assert_refused(&site, payload(1_000), "`message_bytes_max` = 1000").await;
    let by_default = Site::start().await;
    assert_eq!(submit(&by_default, payload(PAYLOAD_BYTES_MAX)).await.unwrap(), 1);
    assert_refused(&by_default, payload(PAYLOAD_BYTES_MAX + 1), "`payload_bytes_max`").await;
}

#[tokio::test]
async fn too_many_cannot_watch_and_a_place_is_free_again_when_one_goes() {
    let site = with(Limits { watches_max: 2, ..Limits::DEFAULT }).await;
    let id = site.submit(spec()).await;
    let watch = || site.jobs.clone();
    let request = || v1::WatchRequest { ids: Vec::new(), filter: None };
    let first = watch().watch(request()).await.unwrap();
    let follow = v1::LogsRequest { id, follow: true, ..v1::LogsRequest::default() };
    let _second = watch().logs(follow).await.unwrap();
    let refused = watch().watch(request()).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("`watches_max` = 2"), "{refused:?}");
    let wait = v1::WaitRequest { ids: vec![id], timeout_ms: 10 };
    assert_eq!(watch().wait(wait).await.unwrap_err().code(), Code::ResourceExhausted);
    drop(first);
    site.until("there is a place again", async || watch().watch(request()).await.ok()).await;
}

#[tokio::test]
async fn too_many_workers_are_refused_by_name() {
    let site = with(Limits { workers_max: 1, ..Limits::DEFAULT }).await;
    let _first = site.worker("one").await;
    let refused = Puppet::connect(&site, hello("two")).await.map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("`workers_max` = 1"), "{refused:?}");
}

#[tokio::test]
async fn a_body_can_be_too_large() {
    let site = with(Limits { message_bytes_max: 1_000, ..Limits::DEFAULT }).await;
    let put = async |n: usize| {
        let nightly = json!({ "cron": "0 3 * * *", "type": "t", "payload": "x".repeat(n) });
        site.say(("PUT", "/v1/schedules/nightly"), None, &nightly.to_string()).await
    };
    let n_schedules = async || {
        let listed = site.say(("GET", "/v1/schedules"), None, "").await.1;
        listed["schedules"].as_array().unwrap().len()
    };
    let (status, said) = put(1_000).await;
    let error = said["error"].as_str().unwrap_or_default();
    assert!(error.contains("`message_bytes_max` = 1000") && error.contains("hint: "), "{said}");
    assert_eq!((status, n_schedules().await), (413, 0));
    let (status, said) = put(900).await;
    assert_eq!((status, n_schedules().await), (200, 1), "{said}");
}

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_the_others_go_on() {
    let site = with(Limits { connections_max: 2, ..Limits::DEFAULT }).await;
    let request = || v1::ListRequest::default();
    let mut second = JobsClient::new(site.connect().await);
    second.list(request()).await.unwrap();
    // By both doors.
    let refused = JobsClient::new(site.connect().await).list(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    for words in ["`connections_max` = 2", "nothing was done", "hint: "] {
        assert!(refused.message().contains(words), "{refused:?}");
    }
    let (status, said) = site.say(("GET", "/v1/jobs"), None, "").await;
    assert!(said["error"].as_str().unwrap().contains("`connections_max` = 2"), "{said}");
    assert_eq!(status, 429);
    // Whoever looks whether there is life is answered.
    assert_eq!(site.whole(("GET", "/healthz"), "").await.0, 200);
    second.list(request()).await.unwrap();
    site.submit(spec()).await;
    drop(second);
    site.until("there is a place again", async || {
        JobsClient::new(site.connect().await).list(request()).await.ok()
    })
    .await;
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
async fn requests_beyond_the_limit_of_a_connection_wait_and_none_is_lost() {
    let site = with(Limits { requests_max: 100, ..Limits::DEFAULT }).await;
    let mut jobs = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let mut client = site.jobs.clone();
        jobs.spawn(
            async move { client.submit(many(1)).await.map(|it| it.into_inner().jobs[0].id) },
        );
    }
    let ids: BTreeSet<u64> = jobs.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids, (1..=500).collect());
}
