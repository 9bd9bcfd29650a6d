//! Minute series: their fields, their readers, and a restart.

use model::Millis;
use proto::v1;
use proto::v1::worker_message::Message as Ours;
use serde_json::{Value, json};
use server::Config;

use crate::puppet::{having, succeeded};
use crate::site::{Site, hello, spec};

const MINUTE: Millis = Millis::from_secs(60);

/// A lease that no test outlives by moving the clock.
fn patient() -> Config {
    Config { lease: Millis::from_secs(100 * 3_600), ..Config::default() }
}

fn of(tenant: &str) -> v1::Spec {
    v1::Spec { tenant: tenant.to_owned(), ..spec() }
}

impl Site {
    /// The series since the minute in which the test began, once the last minute is stored.
    async fn series(&self, rest: &str, token: Option<&str>) -> Value {
        let path = format!("/v1/series?from=1800000000000&step=1m{rest}");
        self.until("the last minute is stored", async || {
            let (status, series) = self.say(("GET", &path), token, "").await;
            assert_eq!(status, 200, "{series}");
            let queued = series["total"]["queued"].as_array()?.last()?;
            (!queued.is_null()).then_some(series.clone())
        })
        .await
    }

    async fn refused_series(&self, query: &str, token: Option<&str>) -> (u16, String) {
        let (status, said) = self.say(("GET", &format!("/v1/series{query}")), token, "").await;
        (status, said["error"].as_str().unwrap_or_default().to_owned())
    }
}

/// The entry of this name.
fn named<'v>(series: &'v Value, name: &str) -> &'v Value {
    let all = series["series"].as_array().expect("it is a list");
    let own = all.iter().find(|one| one["name"] == name);
    own.unwrap_or_else(|| panic!("no {name} in {series}"))
}

#[tokio::test]
async fn minutes_survive_a_restart_and_downtime_is_unknown() {
    let mut site = Site::with(patient()).await;
    site.set(v1::SettingKind::Tenant, "a", r#"{"weight": 3}"#).await;
    for tenant in ["a", "b"] {
        site.submit_all(vec![of(tenant); 6]).await;
    }
    let mut worker = site.worker_with(v1::Hello { slots: 4, ..hello("w") }).await;
    let mut offers = Vec::new();
    for _ in 0..4 {
        let offer = worker.offer().await;
        worker.accept(&offer).await;
        offers.push(offer);
    }
    site.pass(Millis(59_000)).await;
    worker.beat(having(&offers.iter().collect::<Vec<_>>())).await;
    site.pass(Millis(1_000)).await;
    let before = site.series("&by=tenant", None).await;
    let due = |tenant: &str| named(&before, tenant)["due"].clone();
    assert_eq!((due("a"), due("b")), (json!([3]), json!([1])), "{before}");
    assert_eq!(named(&before, "a")["competes"], json!([1]));
    let slots: i64 = ["a", "b"]
        .iter()
        .map(|tenant| named(&before, tenant)["slots"][0].as_i64().expect("it is whole"))
        .sum();
    assert_eq!(slots, 4, "{before}");
    assert_eq!(before["total"]["queued"], json!([8]));
    let by_reason = site.series("&by=reason", None).await;
    assert_eq!(named(&by_reason, "workers-full")["queued"], json!([8]));

    drop(worker);
    site.stop().await;
    for _ in 0..3 {
        site.time.pass(MINUTE);
    }
    site.go().await;
    site.pass(MINUTE).await;
    let after = site.series("&by=tenant", None).await;
    let total = |name: &str| after["total"][name].clone();
    assert_eq!(total("queued"), json!([8, null, null, null, 8]), "{after}");
    assert_eq!(total("running"), json!([4, null, null, null, 4]));
    assert_eq!(total("started"), json!([4, null, null, null, 0]));
    let slots = named(&after, "a")["slots"].as_array().expect("it is a list").clone();
    let is_known: Vec<bool> = slots.iter().map(|n| !n.is_null()).collect();
    assert_eq!(is_known, [true, false, false, false, true]);
    let wide = site.series("&by=reason&step=5m", None).await;
    assert_eq!(wide["total"]["queued"], json!([8]), "the mean of the minutes that are known");
}

#[tokio::test]
async fn a_minute_tells_what_began_ended_and_failed_in_it_and_how_long_jobs_waited() {
    let site = Site::with(patient()).await;
    site.submit_all(vec![of("a"); 4]).await;
    site.pass(Millis(16_000)).await;
    let mut worker = site.worker("w").await;
    worker.serve().await;
    let offer = worker.offer().await;
    let ending = v1::Ending::Permanent.into();
    worker.say(Ours::Complete(v1::Complete { ending, ..succeeded(&offer) })).await;
    worker.ack().await;
    let _running = worker.offer().await;
    site.pass(Millis(44_000)).await;
    let series = site.series("&by=type", None).await;
    let total = |name: &str| series["total"][name][0].clone();
    let counts = ["started", "ended", "failed", "running", "queued"].map(total);
    assert_eq!(counts, [json!(3), json!(2), json!(1), json!(1), json!(1)], "{series}");
    let p50 = total("wait_p50_ms").as_u64().expect("some jobs began");
    assert!((16_000..=18_000).contains(&p50), "at most an eighth too long: {p50}");
    assert!(total("oldest_wait_ms").as_u64() >= Some(60_000), "{series}");
    let kind = named(&series, "t");
    assert_eq!((&kind["queued"], &kind["running"]), (&json!([1]), &json!([1])), "{series}");
    let pools = site.series("&by=pool", None).await;
    assert_eq!(named(&pools, "default")["running"], json!([1]), "{pools}");
    assert_eq!(named(&pools, "")["queued"], json!([1]), "no pool is asked for");
}

#[tokio::test]
async fn a_token_of_one_tenant_reads_the_series_of_that_tenant_alone() {
    let site = Site::start().await;
    site.submit_all(vec![of("acme"); 2]).await;
    site.submit_all(vec![of("globex"); 3]).await;
    site.pass(MINUTE).await;
    let admin = site.admin_token().await;
    let acme = admin.make("acme", &["read"]).await.expect("it is made");
    let submits = admin.make("acme", &["submit"]).await.expect("it is made");
    let all = site.series("&by=tenant", Some(&admin.secret)).await;
    assert_eq!(all["total"]["queued"], json!([5]), "{all}");
    for by in ["", "&by=tenant", "&by=reason", "&tenant=acme&by=tenant"] {
        let own = site.series(by, Some(&acme)).await;
        assert_eq!((&own["tenant"], &own["total"]["queued"]), (&json!("acme"), &json!([2])));
        assert!(own["total"]["started"].is_null() && own["other"].is_null(), "{own}");
        assert!(!own.to_string().contains("globex"), "{own}");
    }
    let named_by_admin = site.series("&tenant=globex&by=reason", Some(&admin.secret)).await;
    assert_eq!(named(&named_by_admin, "no-worker-ever")["queued"], json!([3]));
    let stranger = site.series("&tenant=nobody", Some(&admin.secret)).await;
    assert_eq!(stranger["total"]["queued"], json!([0]), "the minute names all tenants");
    for (query, token, expected) in [
        ("?tenant=globex", Some(&*acme), 403),
        ("?by=type", Some(&*acme), 400),
        ("?by=tenant", Some(&*submits), 403),
        ("", None, 401),
    ] {
        let (status, said) = site.refused_series(query, token).await;
        assert_eq!(status, expected, "{query}: {said}");
        assert!(!said.is_empty() && !said.contains("queued"), "{said}");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_the_field_the_value_the_limit_and_a_hint() {
    let site = Site::start().await;
    for (query, words) in [
        ("from=x", ["`from` is `x`", "milliseconds", "digits"]),
        ("to=-1", ["`to` is `-1`", "milliseconds", "digits"]),
        ("from=2&to=2", ["`from` is 2", "`to` = 2", "smaller"]),
        ("step=90s", ["`step` is `90s`", "`1m` to `1day`", "use `1m`"]),
        ("step=7", ["`step` is `7`", "length of time", "write"]),
        ("from=0&step=1m", ["`step` is `1m`", "more than 1500", "or longer"]),
        ("by=colour", ["`by` is `colour`", "tenant, type, pool, reason", "leave it out"]),
        ("by=pool&tenant=a", ["`by` is `pool`", "`tenant` and `reason`", "use one of"]),
        ("since=1", ["`since` is none of", "from, to, step, by, tenant", "leave it out"]),
    ] {
        let (status, said) = site.refused_series(&format!("?{query}"), None).await;
        assert!(status == 400 && words.iter().all(|word| said.contains(word)), "{query}: {said}");
    }
    let (status, series) = site.say(("GET", "/v1/series"), None, "").await;
    assert_eq!((status, series["steps"].as_i64()), (200, Some(60)), "{series}");
    assert_eq!(series["total"]["queued"], json!(vec![Value::Null; 60]));
}
