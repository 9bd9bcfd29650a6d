//! What is asked by HTTP, on the same port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::Millis;
use proto::v1;
use serde_json::Value;
use server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::{Site, spec};
use crate::store::Faulty;

impl Site {
    /// The status and the body that a path is answered with.
    async fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        self.http(("GET", path), token, "").await
    }

    /// Says something; what came of it.
    pub(super) async fn say(
        &self,
        line: (&str, &str),
        token: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        let (status, body) = self.http(line, token, &format!("{kind}\r\n{body}")).await;
        (status, serde_json::from_str(&body).expect("it is JSON"))
    }

    pub(super) async fn http(
        &self,
        line: (&str, &str),
        token: Option<&str>,
        rest: &str,
    ) -> (u16, String) {
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let rest = if rest.is_empty() { "\r\n" } else { rest };
        let own = format!("host: {}\r\n{}", self.authority(), token.unwrap_or_default());
        let (status, _, body) = self.send(line, &format!("{own}{rest}")).await;
        (status, body)
    }

    /// The status, the head and the body that a path is answered with.
    pub(super) async fn whole(&self, line: (&str, &str), headers: &str) -> (u16, String, String) {
        self.send(line, &format!("host: {}\r\n{headers}\r\n", self.authority())).await
    }

    /// What somebody is told who calls it by another name.
    pub(super) async fn called(&self, line: (&str, &str), host: &str) -> u16 {
        self.send(line, &format!("{host}\r\n")).await.0
    }

    fn authority(&self) -> String {
        self.url().split("://").last().expect("it is a URL").to_owned()
    }

    async fn send(&self, line: (&str, &str), rest: &str) -> (u16, String, String) {
        send(&self.authority(), line, rest).await
    }

    pub(crate) async fn metrics(&self) -> BTreeMap<String, f64> {
        let (status, body) = self.get("/metrics", None).await;
        assert_eq!(status, 200, "{body}");
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let pair = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        lines.map(|line| pair(line).unwrap_or_else(|| panic!("{line}"))).collect()
    }
}

/// The status, the head and the body that whoever listens there answers with.
async fn send(authority: &str, (method, path): (&str, &str), rest: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(authority).await.expect("it listens");
    let request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n{rest}");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut text = Vec::new();
    let read = stream.read_to_end(&mut text);
    tokio::time::timeout(Duration::from_mins(1), read).await.expect("it ends").expect("it is read");
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("it has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("it has a status"), head.to_owned(), unchunked(head, body))
}

/// The status and the body that a path is answered with there.
async fn get(authority: &str, path: &str) -> (u16, String) {
    let (status, _, body) = send(authority, ("GET", path), "host: localhost\r\n\r\n").await;
    (status, body)
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk has a size");
        whole += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

#[tokio::test]
async fn the_stages_are_counted_and_measured() {
    let site = Site::start().await;
    let mut worker = site.worker("w").await;
    for _ in 0..3 {
        let id = site.submit(v1::Spec { tenant: "acme".to_owned(), ..spec() }).await;
        assert_eq!(worker.serve().await.job, id);
        site.record_when(id, |record| record.state.is_terminal()).await;
    }
    let nothing = v1::SubmitRequest::default();
    site.jobs.clone().submit(nothing).await.expect_err("there is nothing in it");
    let needs = [("gpu".to_owned(), v1::Values { values: vec!["a100".to_owned()] })];
    let wide = site.submit(v1::Spec { needs: needs.into(), slots: 2, ..spec() }).await;
    site.turn().await;
    let metrics = site.metrics().await;
    let labels = r#"{type="t",pool="",needs="gpu=a100",slots="2",amounts=""}"#;
    for (name, value) in [
        ("maitre_jobs_submitted_total", 4.0),
        ("maitre_submissions_refused_total", 1.0),
        ("maitre_claims_total{outcome=\"won\"}", 3.0),
        ("maitre_claims_total{outcome=\"lost\"}", 0.0),
        ("maitre_jobs_succeeded_total", 3.0),
        ("maitre_jobs_failed_total", 0.0),
        ("maitre_jobs_cancelled_total", 0.0),
        ("maitre_watches", 0.0),
        ("maitre_leases_lost_total", 0.0),
        ("maitre_job_wait_seconds_count{tenant=\"acme\",type=\"t\"}", 3.0),
        ("maitre_job_run_seconds_count{tenant=\"acme\",type=\"t\"}", 3.0),
        ("maitre_job_run_seconds_bucket{le=\"+Inf\",tenant=\"acme\",type=\"t\"}", 3.0),
        ("maitre_jobs_queued{tenant=\"default\"}", 1.0),
        ("maitre_slots{pool=\"default\",state=\"free\"}", 1.0),
        ("maitre_slots{pool=\"default\",state=\"used\"}", 0.0),
        ("maitre_workers_connected", 1.0),
        (&format!("maitre_slots_wanted{labels}"), 2.0),
        (&format!("maitre_jobs_unplaceable{labels}"), 1.0),
        ("maitre_webhooks_total{outcome=\"delivered\"}", 0.0),
    ] {
        assert_eq!(metrics.get(name).copied(), Some(value), "{name} of {metrics:#?}");
    }
    assert!(metrics.contains_key("maitre_commit_seconds_count"), "{metrics:#?}");
    let (status, demand) = site.get("/v1/demand", None).await;
    let demand: Value = serde_json::from_str(&demand).expect("it is JSON");
    assert_eq!(status, 200);
    assert_eq!(demand["wanted"][0]["needs"]["gpu"][0], "a100", "{demand}");
    assert_eq!(demand["wanted"][0]["slots_wanted"], 2, "{demand}");
    let cancelled = v1::CancelRequest { ids: vec![wide] };
    site.jobs.clone().cancel(cancelled).await.expect("it is called off");
    site.turn().await;
    assert_eq!(site.metrics().await["maitre_jobs_cancelled_total"].to_string(), "1");
}

#[tokio::test]
async fn tenants_beyond_the_limit_share_one_series() {
    let site = Site::with(Config { metrics_pairs_max: 2, ..Config::default() }).await;
    for tenant in ["a", "b", "c", "d"] {
        site.submit(v1::Spec { tenant: tenant.to_owned(), ..spec() }).await;
    }
    let metrics = site.metrics().await;
    let queued: Vec<(&str, f64)> = metrics
        .iter()
        .filter(|(name, _)| name.starts_with("maitre_jobs_queued"))
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(queued.len(), 3, "{queued:?}");
    assert!(queued.contains(&("maitre_jobs_queued{tenant=\"other\"}", 2.0)), "{queued:?}");
}

#[tokio::test]
async fn what_is_about_all_tenants_needs_a_token_for_all() {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    let acme = admin.make("acme", &["tenant-admin"]).await.unwrap();
    let read = admin.make("", &["read"]).await.unwrap();
    for path in ["/metrics", "/v1/demand"] {
        assert_eq!(site.get(path, None).await.0, 401);
        assert_eq!(site.get(path, Some("wrong")).await.0, 401);
        assert_eq!(site.get(path, Some(&acme)).await.0, 403);
        assert_eq!(site.get(path, Some(&read)).await.0, 200);
        assert_eq!(site.get(path, Some(&admin.secret)).await.0, 200);
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(site.get(path, None).await.0, 200);
    }
    assert_eq!(site.get("/nothing", None).await.0, 401);
    assert_eq!(site.get("/nothing", Some(&read)).await.0, 403, "what nobody knows is for admins");
    assert_eq!(site.get("/nothing", Some(&admin.secret)).await.0, 404);
}

#[tokio::test]
async fn it_is_ready_once_the_world_is_built_and_while_the_store_answers() {
    let mut site = Site::start().await;
    assert_eq!(site.get("/readyz", None).await, (200, "ready\n".to_owned()));
    site.store.fail("expired", 1, store::Error::Full { doing: "look" });
    site.pass(Millis::from_secs(2)).await;
    assert_eq!(site.get("/healthz", None).await.0, 200);
    assert_eq!(site.get("/readyz", None).await, (503, "the store fails\n".to_owned()));
    site.pass(Millis::from_secs(6)).await;
    assert_eq!(site.get("/readyz", None).await.0, 200);
    site.stop().await;
    site.go().await;
    assert_eq!(site.get("/readyz", None).await.0, 200);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
async fn it_is_alive_and_not_ready_before_the_store_is_there_and_while_it_is_read() {
    let site = Site::start().await;
    let id = site.submit(spec()).await;
    let store = Arc::new(site.store.again());
    let doors = server::open(site.config.clone()).await.expect("it listens");
    let address = doors.address.to_string();
    let get = async |path: &str| get(&address, path).await;
    assert_eq!(get("/healthz").await.0, 200);
    assert_eq!(get("/readyz").await, (503, "the store cannot be reached yet\n".to_owned()));
    assert_eq!(get("/v1/demand").await.0, 503, "nobody waits for a store");
    // The first time it is read it does not answer, the second time it takes long.
    let cause = "a fault".to_owned();
    store.fail("look", 1, store::Error::Unavailable { doing: "look", cause });
    store.hold("look");
    let started = tokio::spawn(doors.start(Arc::<Faulty>::clone(&store)));
    site.until("it reads", async || {
        let told = (503, "the scheduler reads what it knows\n".to_owned());
        (get("/readyz").await == told).then_some(())
    })
    .await;
    let waits = tokio::spawn({
        let address = address.clone();
        async move { self::get(&address, "/v1/demand").await }
    });
    assert_eq!(get("/healthz").await.0, 200);
    store.let_go("look");
    let server = started.await.expect("it does not panic").expect("it starts");
    assert_eq!(get("/readyz").await, (200, "ready\n".to_owned()));
    let told = tokio::spawn(server.run(std::future::pending()));
    assert_eq!(waits.await.expect("it does not panic").0, 200, "who came early was let in");
    assert_eq!(site.record(id).await.state, model::State::Queued);
    told.abort();
}
