//! Jobs that recur, by HTTP.

use serde_json::json;

use crate::site::Site;

const NIGHTLY: (&str, &str) = ("PUT", "/v1/schedules/nightly");

#[tokio::test]
async fn a_schedule_is_set_listed_run_paused_and_removed() {
    let site = Site::start().await;
    let body = r#"{"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "type": "backup",
        "payload": {"disk": 1}, "priority": 5, "labels": {"team": "ops"}, "timeout": "1h 30m"}"#;
    let (status, set) = site.say(NIGHTLY, None, body).await;
    assert_eq!((status, &set["time_zone"]), (200, &json!("Europe/Berlin")), "{set}");
    assert!(set["next_ms"].is_i64() && set["last_ms"].is_null());
    let (_, list) = site.say(("GET", "/v1/schedules"), None, "").await;
    assert_eq!(list["schedules"], json!([set]));
    // Now, besides what is due.
    let (status, ran) = site.say(("POST", "/v1/schedules/nightly/run"), None, "").await;
    assert_eq!((status, &ran["schedule"]), (200, &json!("nightly")), "{ran}");
    let spec = site.record(ran["job"].as_u64().unwrap()).await.spec;
    assert_eq!(
        (spec.kind.to_string(), spec.payload.clone()),
        ("backup".to_owned(), b"{\"disk\":1}".to_vec())
    );
    assert_eq!((&*spec.labels["schedule"], &*spec.labels["team"]), ("nightly", "ops"));
    assert_eq!(spec.run_timeout.map(|length| length.0), Some(5_400_000));
    let (_, rests) = site.say(("POST", "/v1/schedules/nightly/pause"), None, "").await;
    assert_eq!((&rests["paused"], &rests["next_ms"]), (&json!(true), &json!(null)));
    let (_, goes_on) = site.say(("POST", "/v1/schedules/nightly/resume"), None, "").await;
    assert_eq!(goes_on["next_ms"], set["next_ms"]);
    let (_, page) = site.say(("GET", "/v1/activity?kind=schedule"), None, "").await;
    let whats = page["entries"].as_array().unwrap().iter().map(|entry| &entry["what"]);
    let expected = [
        json!("resumed the schedule"),
        json!("paused the schedule"),
        json!(format!("submitted job {} now", ran["job"])),
        json!("set the schedule"),
    ];
    assert_eq!(whats.collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    let remove = ("DELETE", "/v1/schedules/nightly");
    assert_eq!(site.say(remove, None, "").await.1["was_there"], true);
    assert_eq!(site.say(remove, None, "").await.1["was_there"], false);
    let (_, list) = site.say(("GET", "/v1/schedules"), None, "").await;
    assert_eq!(list["schedules"], json!([]));
}

#[tokio::test]
async fn a_command_recurs_and_what_is_wrong_with_a_schedule_is_named() {
    let site = Site::start().await;
    let body = r#"{"every": "30s", "command": ["true"], "catch_up": "none"}"#;
    let (_, set) = site.say(NIGHTLY, None, body).await;
    assert_eq!(
        (&set["every_ms"], &set["payload"]),
        (&json!(30_000), &json!("{\"argv\":[\"true\"]}"))
    );
    let run = ("POST", "/v1/schedules/nothing/run");
    for (line, body, status, error) in [
        (NIGHTLY, r#"{"every": "30", "command": ["true"]}"#, 400, "`every` is `30`, which is no"),
        (NIGHTLY, r#"{"cron": "often", "command": ["true"]}"#, 400, "`schedule.cron` is `often`"),
        (NIGHTLY, r#"{"every": "5s"}"#, 400, "`schedule.jobs[0].type` is"),
        (NIGHTLY, r#"{"evry": "5s"}"#, 400, "`body` cannot be read: unknown field `evry`"),
        (NIGHTLY, r#"{"every": "5s", "type": "x", "command": ["true"]}"#, 400, "`command` goes"),
        (run, "", 404, "there is no schedule `nothing`"),
        (("POST", "/v1/schedules/nothing/pause"), "", 404, "there is no schedule `nothing`"),
    ] {
        let (answered, said) = site.say(line, None, body).await;
        let said = said["error"].as_str().expect("it says what is wrong");
        assert!(answered == status && said.starts_with(error), "{line:?}: {answered} {said}");
    }
    let (_, list) = site.say(("GET", "/v1/schedules"), None, "").await;
    assert_eq!(list["schedules"], json!([set]), "nothing of that was kept");
    // A page of somebody else's cannot say that it sends JSON.
    let plain = "content-type: text/plain\r\ncontent-length: 0\r\n\r\n";
    let line = ("POST", "/v1/schedules/nightly/run");
    assert_eq!(site.http(line, None, plain).await.0, 400);
    // Nor does it take more than to read to look, or less than an admin to change.
    let admin = site.admin_token().await;
    let reader = admin.make("", &["read"]).await.expect("it is made");
    assert_eq!(site.say(("GET", "/v1/schedules"), Some(&reader), "").await.0, 200);
    for line in [NIGHTLY, line, ("DELETE", "/v1/schedules/nightly")] {
        assert_eq!(site.say(line, Some(&reader), "{}").await.0, 403, "{line:?}");
    }
}
