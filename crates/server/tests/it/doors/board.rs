//! The board's files, and what browsers are told about everything that is said by HTTP.

use serde_json::json;

use crate::site::Site;

const FOREIGN: &str = "sec-fetch-site: cross-site\r\norigin: https://evil.example\r\n";
const POST: (&str, &str) = ("PUT", "/v1/schedules/nightly");

#[tokio::test]
async fn the_board_is_there_without_a_token_and_what_it_shows_is_not() {
    let site = Site::start().await;
    let admin = site.admin_token().await;
    let (status, head, body) = site.whole(("GET", "/"), "").await;
    assert!(status == 200 && body.contains("<title>Maitre</title>"), "{body}");
    for header in [
        "content-type: text/html",
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; ",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    assert!(!head.contains("set-cookie") && !head.contains("access-control"), "{head}");
    let (_, head, _) = site.whole(("GET", "/board/main.js"), "").await;
    assert!(head.contains("content-type: text/javascript"), "{head}");
    assert_eq!(site.whole(("GET", "/board/nothing.js"), "").await.0, 404);
    for path in ["/v1/overview", "/v1/jobs", "/v1/me", "/v1/types", "/v1/schedules"] {
        assert_eq!(site.say(("GET", path), None, "").await.0, 401, "{path}");
        assert_eq!(site.say(("GET", path), Some(&admin.secret), "").await.0, 200, "{path}");
    }
    let (_, me) = site.say(("GET", "/v1/me"), Some(&admin.secret), "").await;
    assert_eq!((&me["may_change"], &me["needs_token"]), (&json!(true), &json!(true)), "{me}");
    let (status, head, _) = site.whole(("GET", "/v1/overview"), "").await;
    assert!(status == 401 && head.contains("no-store") && head.contains("nosniff"), "{head}");
    let bearer = format!("authorization: Bearer {}\r\n", admin.secret);
    let (_, head, _) = site.whole(("GET", "/v1/overview"), &bearer).await;
    assert!(head.contains("cache-control: no-store") && head.contains("nosniff"), "{head}");
}

#[tokio::test]
async fn a_page_of_somebody_elses_changes_nothing() {
    let site = Site::start().await;
    let body = r#"{"every": "30s", "command": ["true"]}"#;
    let kind = "content-type: application/json\r\n";
    let rest = format!("{kind}content-length: {}\r\n\r\n{body}", body.len());
    for headers in [FOREIGN, "sec-fetch-site: same-site\r\n", "origin: null\r\n"] {
        let (status, said) = site.http(POST, None, &format!("{headers}{rest}")).await;
        assert!(status == 403 && said.contains("another origin"), "{headers}: {status} {said}");
    }
    assert_eq!(site.say(("GET", "/v1/schedules"), None, "").await.1["schedules"], json!([]));
    let own = format!("sec-fetch-site: same-origin\r\n{rest}");
    assert_eq!(site.http(POST, None, &own).await.0, 200);
    // To look is no use to it: nothing says that it may read the answer.
    let (status, head, _) = site.whole(("GET", "/v1/schedules"), FOREIGN).await;
    assert!(status == 200 && !head.contains("access-control"), "{head}");
    // A name that was led to this machine is nobody's here.
    let led = "host: evil.example:7070\r\n";
    assert_eq!(site.called(("GET", "/v1/schedules"), led).await, 403);
    assert_eq!(site.called(("GET", "/v1/schedules"), "host: localhost\r\n").await, 200);
}

#[tokio::test]
async fn jobs_are_listed_and_explained_to_whom_they_belong() {
    let site = Site::start().await;
    let mut ids = Vec::new();
    for (tenant, kind) in [("acme", "t"), ("initech", "t"), ("acme", "u")] {
        ids.push(site.submit(of(tenant, kind)).await);
    }
    let (_, all) = site.say(("GET", "/v1/jobs?type=t&state=queued,running"), None, "").await;
    let listed: Vec<&serde_json::Value> =
        all["jobs"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(listed, [&json!(ids[1]), &json!(ids[0])], "{all}");
    let (_, job) = site.say(("GET", &format!("/v1/jobs/{}", ids[2])), None, "").await;
    assert_eq!(
        (&job["type"], &job["why"]["reason"]),
        (&json!("u"), &json!("no-worker-ever")),
        "{job}"
    );
    let (_, site_now) = site.say(("GET", "/v1/overview"), None, "").await;
    assert_eq!((&site_now["queued"], &site_now["workers"]), (&json!(3), &json!([])));
    for (path, error) in [
        ("/v1/jobs?state=odd", "`state` has `odd`, which is no state"),
        ("/v1/jobs?before=x", "`before` is `x`, which is no whole number"),
        ("/v1/jobs?colour=red", "`colour` is none of"),
        ("/v1/jobs/99", "there is no job 99"),
    ] {
        let (status, said) = site.say(("GET", path), None, "").await;
        let said = said["error"].as_str().unwrap_or_default().to_owned();
        assert!((status == 400 || status == 404) && said.starts_with(error), "{status} {said}");
    }
    let admin = site.admin_token().await;
    let acme = admin.make("acme", &["read"]).await.expect("it is made");
    let (_, own) = site.say(("GET", "/v1/jobs"), Some(&acme), "").await;
    assert_eq!(own["jobs"].as_array().map(Vec::len), Some(2), "{own}");
    let other = format!("/v1/jobs/{}", ids[1]);
    assert_eq!(site.say(("GET", &other), Some(&acme), "").await.0, 404);
    assert_eq!(site.say(("GET", "/v1/overview"), Some(&acme), "").await.0, 403);
}

fn of(tenant: &str, kind: &str) -> proto::v1::Spec {
    let (tenant, r#type) = (tenant.to_owned(), kind.to_owned());
    proto::v1::Spec { tenant, r#type, ..proto::v1::Spec::default() }
}
