//! Work that workers find, by HTTP.

use proto::v1;
use serde_json::{Value, json};

use crate::detection::detector;
use crate::site::Site;

async fn look(site: &Site, path: &str) -> (u16, Value) {
    site.say(("GET", path), None, "").await
}

/// What holds, and who says so.
fn told<'k>(kind: &'k Value, field: &str) -> (&'k str, &'k str) {
    let field = &kind["policy"][field];
    (field["value"].as_str().unwrap_or_default(), field["origin"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn types_are_shown_and_changed_runs_asked_for_and_what_happened_read() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &[]).await;
    site.n_runs("vacuum", 1).await;
    let (status, kind) = look(&site, "/v1/types/vacuum").await;
    assert_eq!((status, &kind["policy"]["interval"]["value"]), (200, &json!("10m")));
    let (_, list) = look(&site, "/v1/types").await;
    assert_eq!(list["types"][0]["type"], "vacuum");
    let change = r#"{"interval": "2m", "admin.threshold": 0.5, "jobs_max": 7}"#;
    let (status, kind) = site.say(("PATCH", "/v1/types/vacuum"), None, change).await;
    assert_eq!((status, &kind["admin"]["threshold"]), (200, &json!(0.5)), "{kind}");
    assert_eq!(told(&kind, "jobs_max"), ("7", "set"));
    let (_, kind) = site.say(("PATCH", "/v1/types/vacuum"), None, r#"{"interval": null}"#).await;
    assert_eq!(told(&kind, "interval"), ("10m", "descriptor"));
    let (status, asked) = site.say(("POST", "/v1/types/vacuum/detect"), None, "").await;
    assert_eq!((status, &asked["is_running"]), (200, &json!(false)));
    let detect = worker.detect().await;
    let (_, called_off) = site.say(("POST", "/v1/types/vacuum/cancel"), None, "").await;
    assert_eq!(called_off["run"], json!(detect.run));
    site.n_runs("vacuum", 2).await;
    let (_, runs) = look(&site, "/v1/types/vacuum/runs").await;
    assert_eq!(
        (&runs["runs"][0]["asked"], &runs["runs"][1]["asked"]),
        (&json!(true), &json!(false))
    );
    let (_, asked) = site.say(("POST", "/v1/types/vacuum/describe"), None, "").await;
    assert_eq!(asked["worker"], "w");
    let (_, page) = look(&site, "/v1/activity?kind=group&page_size=1").await;
    assert_eq!(page["entries"][0]["who"], "local", "{page}");
    let body = r#"{"context": {"n": 1}, "publisher": "w"}"#;
    let (_, context) = site.say(("PUT", "/v1/context"), None, body).await;
    assert_eq!(context, json!({ "version": 1, "publisher": "w", "context": { "n": 1 } }));
    assert_eq!(look(&site, "/v1/context").await.1, context);
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_changed_by_accident() {
    let site = Site::start().await;
    let mut worker = site.worker_with(detector("w", &["vacuum"])).await;
    worker.find("vacuum", &[]).await;
    site.n_runs("vacuum", 1).await;
    let patch = ("PATCH", "/v1/types/vacuum");
    for (line, body, status, error) in [
        (patch, r#"{"interval": "5"}"#, 400, "`interval` is `5`"),
        (patch, r#"{"interval": [5]}"#, 400, "`interval` is neither a number"),
        (patch, "[]", 400, "`body` is not a JSON object"),
        (("PUT", "/v1/context"), r#"{"text": 1}"#, 400, "`text` is none of"),
        (("GET", "/v1/types/nothing"), "", 404, "there is no type `nothing`"),
        (("GET", "/v1/activity?kind=odd"), "", 400, "`kind` is `odd`"),
        (("GET", "/v1/activity?before=x"), "", 400, "`before` is `x`"),
        (("POST", "/v1/types/nothing/detect"), "", 409, "no worker ever said"),
    ] {
        let (answered, said) = site.say(line, None, body).await;
        let said = said["error"].as_str().expect("it says what is wrong");
        assert!(answered == status && said.starts_with(error), "{line:?}: {answered} {said}");
    }
    // A page of somebody else's in a browser on this machine can send this much.
    let plain = "content-type: text/plain\r\ncontent-length: 0\r\n\r\n";
    let (status, said) = site.http(("POST", "/v1/types/vacuum/detect"), None, plain).await;
    assert_eq!(status, 400);
    assert!(said.contains("application/json"), "{said}");
    assert_eq!(site.counter("detections").await, 1);
}

#[tokio::test]
async fn whoever_may_read_changes_nothing_and_who_did_what_is_written_down() {
    let site = Site::start().await;
    let first = site.admin_token().await;
    let reader = first.make("", &["read"]).await.expect("it is made");
    let request = v1::NewTokenRequest {
        name: "ops".to_owned(),
        scopes: vec!["admin".to_owned()],
        ..v1::NewTokenRequest::default()
    };
    let admin = first.admin.clone().new_token(request).await.expect("it is made");
    let admin = admin.into_inner().secret;
    let patch = ("PATCH", "/v1/types/vacuum");
    assert_eq!(site.say(patch, None, "{}").await.0, 401);
    assert_eq!(site.say(patch, Some(&reader), r#"{"interval": "5m"}"#).await.0, 403);
    assert_eq!(site.say(("PUT", "/v1/context"), Some(&reader), "{}").await.0, 403);
    let (status, _) = site.say(patch, Some(&admin), r#"{"interval": "5m"}"#).await;
    assert_eq!(status, 200);
    let (status, page) = site.say(("GET", "/v1/activity"), Some(&reader), "").await;
    assert_eq!((status, &page["entries"][0]["who"]), (200, &json!("ops")), "{page}");
}
